"""What becomes of jobs that follow one that does not run, in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.console.ui.promise_words import length_text
from app.console.web.language import _
from app.domain.rounds.effects import Effect
from app.domain.rounds.runs_after import RunsAfter
from app.services.rounds.effects import AffectedJob
from app.store.jobs.scheduling import JobName

#: colour and icon of an effect
SIGNS: Mapping[Effect, tuple[str, str]] = {
    Effect.NOT_RUN: ("danger", "slash-circle-fill"),
    Effect.NOT_TRIGGERED: ("danger", "slash-circle-fill"),
    Effect.DROPPED: ("danger", "hourglass-bottom"),
    Effect.WAITS: ("warning", "hourglass-split"),
    Effect.LATE: ("warning", "clock-fill"),
    Effect.RUNS: ("success", "check-circle-fill"),
}


@dataclass(frozen=True, slots=True)
class EffectRow:
    """A job that follows, and what becomes of it."""

    #: None: of a group that the reader may not view
    job: JobName | None
    tone: str
    icon: str
    text: str


def effect_rows(jobs: Sequence[AffectedJob]) -> list[EffectRow]:
    """Return the rows of a list of jobs that follow one that does not run."""
    return [EffectRow(row.job, *SIGNS[row.effect], _words(row)) for row in jobs]


def _words(row: AffectedJob) -> str:
    match row.effect:
        case Effect.NOT_RUN:
            return _("Does not run")
        case Effect.NOT_TRIGGERED:
            return _("Is not triggered as a child")
        case Effect.DROPPED:
            return _("Waits %(time)s, then does not run", time=_wait(row.rule))
        case Effect.WAITS:
            return _("Waits, 30 days at most")
        case Effect.LATE:
            return _("Runs late, after a deadline")
        case Effect.RUNS:
            return _("Runs all the same, after its other predecessors")


def _wait(rule: RunsAfter | None) -> str:
    return length_text(rule.wait_ms) if rule is not None else ""
