"""Failing jobs: the rule by which a job is failing, since when, and how many failures there were in a row.

A job fails while the newest of its runs that have ended is no success: one that failed, timed out, was
killed or was not started. If it is unresolved the job is failing too, as a kind of its own: it is unknown
whether it ran. Runs that have not ended decide nothing, so that a job stays failing while it is tried again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Generic, Protocol, TypeVar

from app.clock import Millis
from app.domain.runs.outcome import OPEN, outcome_of


class RunResult(Protocol):
    """Anything with the codes and the time of a run."""

    @property
    def trigger_time(self) -> Millis:
        """When it was triggered."""
        ...

    @property
    def trigger_code(self) -> int:
        """TriggerCode."""
        ...

    @property
    def handle_code(self) -> int:
        """HandleCode."""
        ...

    @property
    def killed(self) -> int:
        """1 if a user killed it."""
        ...


R = TypeVar("R", bound=RunResult)


@dataclass(frozen=True, slots=True)
class Failing(Generic[R]):
    """Failing: the failures of a job since its last success."""

    #: the newest run that ended
    last: R
    #: the first failure after the last success; the earliest one known if ``is_cut``
    first: R
    #: failures in a row; at least so many if ``is_cut``
    failures: int
    #: the last success; None if the job never succeeded, or if ``is_cut``
    success: R | None
    #: all the runs read are failures, and there may be more
    is_cut: bool

    @property
    def since_ms(self) -> Millis:
        """When the first failure was triggered."""
        return self.first.trigger_time

    @property
    def is_unresolved(self) -> bool:
        """Whether it is unknown if the newest run that ended has run."""
        return outcome(self.last) == "unresolved"


def outcome(run: RunResult) -> str:
    """Return the outcome of a run."""
    return outcome_of(run.trigger_code, run.handle_code, run.killed)


def failing_of(runs: Sequence[R], *, is_all: bool) -> Failing[R] | None:
    """Return the failures of a job since its last success; None if it is not failing.

    ``runs``: its newest runs, newest first; ``is_all``: it has no others.
    """
    finished_runs = [run for run in runs if outcome(run) not in OPEN]
    failures = list(takewhile(lambda run: outcome(run) != "success", finished_runs))
    if not failures:
        return None
    success = finished_runs[len(failures)] if len(failures) < len(finished_runs) else None
    return Failing(failures[0], failures[-1], len(failures), success, is_cut=success is None and not is_all)
