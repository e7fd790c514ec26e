"""History of a run: how long the job usually takes, and since when it fails for the same reason."""

import re
from dataclasses import dataclass
from statistics import median

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.enums import HandleCode
from app.domain.runs.statistics import ended_duration_ms
from app.models.log import JobLog
from app.services.runs import reasons
from app.store.runs import recent
from app.store.runs.recent import Run

#: most runs before this one that are read
RUNS_MAX = 50
#: least successes of which a usual duration is made
USUAL_MIN = 3

_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class RunHistory:
    """What the runs of the job before a run have in common with it."""

    #: median duration of the successes; None: too few of them
    usual_ms: Millis | None = None
    #: number of runs in succession with the same reason, this one included; 0: it has none
    same_count: int = 0
    #: when the first of them was triggered
    same_since_ms: Millis | None = None
    #: whether there may be more of them than were read
    is_cut: bool = False


def history_of(session: Session, log: JobLog, reason: str, *, actor: Actor) -> RunHistory:
    """Return the history of a run, in two statements; ``reason`` is its own, in English."""
    if log.trigger_time is None:
        return RunHistory()
    by_job = recent.find_newest_of_jobs(
        session,
        [log.job_id],
        group_ids=actor.group_ids(Right.VIEW),
        limit=RUNS_MAX,
        before_ms=log.trigger_time + 1,
    )
    runs = [
        run for run in by_job.get(log.job_id, []) if (run.trigger_time, run.id) < (log.trigger_time, log.id)
    ]
    return RunHistory(_usual(runs), *_same(session, log, runs, reason))


def _usual(runs: list[Run]) -> Millis | None:
    durations = [_duration(run) for run in runs if run.handle_code == HandleCode.SUCCESS]
    return round(median(durations)) if len(durations) >= USUAL_MIN else None


def _duration(run: Run) -> Millis:
    return ended_duration_ms(run.duration_ms, trigger_ms=run.trigger_time, handle_ms=run.handle_time)


def _same(session: Session, log: JobLog, runs: list[Run], reason: str) -> tuple[int, Millis | None, bool]:
    """Return how many runs have the same reason, when the first was triggered, and if there may be more."""
    if not reason:
        return 0, None, False
    reason_of = reasons.find_reasons(session, [run for run in runs if run.handle_code != HandleCode.SUCCESS])
    count, since_ms, form = 1, log.trigger_time, _form(reason)
    for run in runs:
        if _form(reason_of.get(run.id, "")) != form:
            return count, since_ms, False
        count, since_ms = count + 1, run.trigger_time
    return count, since_ms, len(runs) >= RUNS_MAX - 1


def _form(reason: str) -> str:
    """Return a reason without its numbers, such as ids and times, which differ from run to run."""
    return _DIGITS.sub("0", reason)
