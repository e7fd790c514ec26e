"""Instants of a range as a backfill lists them: what is known of each, and which of them it runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from app.clock import Millis
from app.domain.backfills.kinds import Order, Which


class Standing(StrEnum):
    """What is known of an instant before a backfill."""

    #: a run has succeeded, and none is in progress
    SUCCEEDED = "succeeded"
    #: a run waits or is in progress
    RUNNING = "running"
    #: there are runs, and none has succeeded
    FAILED = "failed"
    #: there is no run
    MISSING = "missing"
    #: the calendar leaves it out
    CALENDAR = "calendar"
    #: a blackout covers it
    BLACKOUT = "blackout"


#: of several runs of an instant the first of these counts: it must not run beside itself
_BY_WEIGHT = (Standing.RUNNING, Standing.SUCCEEDED, Standing.FAILED)
#: which instants are run; one that is running never is
RUN: Mapping[Which, frozenset[Standing]] = {
    Which.ALL: frozenset({Standing.SUCCEEDED, Standing.FAILED, Standing.MISSING}),
    Which.MISSING: frozenset({Standing.MISSING}),
    Which.FAILED: frozenset({Standing.FAILED}),
}


class ListedInstant(NamedTuple):
    """An instant of the range."""

    logical_ms: Millis
    standing: Standing
    #: whether the backfill runs it
    is_run: bool
    #: name of the day or reason of the blackout that leaves it out
    reason: str = ""


class Exclusion(NamedTuple):
    """Why an instant of the schedule is not run."""

    standing: Standing
    reason: str = ""


def list_instants(
    logical_times: Iterable[Millis],
    exclusions: Mapping[Millis, Exclusion],
    runs: Iterable[tuple[Millis, Standing]],
    which: Which,
) -> list[ListedInstant]:
    """Return the instants of a range, ascending.

    ``logical_times``: those that are to run by the schedule or because they were named; ``exclusions``: those
    that it leaves out; ``runs``: logical time and standing of each run that there is.
    """
    best: dict[Millis, Standing] = {}
    for logical_ms, standing in runs:
        former = best.get(logical_ms, standing)
        best[logical_ms] = min(former, standing, key=_BY_WEIGHT.index)
    instants = [
        ListedInstant(at_ms, standing, standing in RUN[which])
        for at_ms in {*logical_times} - exclusions.keys()
        for standing in (best.get(at_ms, Standing.MISSING),)
    ]
    instants += [ListedInstant(at_ms, why.standing, False, why.reason) for at_ms, why in exclusions.items()]
    return sorted(instants)


def run_order(instants: Iterable[ListedInstant], order: Order) -> list[Millis]:
    """Return the logical times that a backfill runs, in its order."""
    times = sorted(instant.logical_ms for instant in instants if instant.is_run)
    return times[::-1] if order is Order.NEWEST_FIRST else times


def summary_of(instants: Sequence[ListedInstant]) -> dict[str, int]:
    """Return how many instants there are of each standing, of those with any, and how many are run."""
    counts = Counter(instant.standing.value for instant in instants)
    return {**counts, "instants": len(instants), "to_run": sum(instant.is_run for instant in instants)}
