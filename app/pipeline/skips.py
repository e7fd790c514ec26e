"""Skip rows: instants that were due and deliberately not fired; each is in at most one row."""

from collections.abc import Iterable

from app.clock import Millis
from app.database.rows import bulk
from app.domain.schedules.planning import SkippedRange, group_consecutive
from app.domain.schedules.schedule import next_after_ms
from app.errors import InvalidInput
from app.models.skip import SKIPPED_MAX
from app.store.jobs.scheduling import DueJob, schedule_of


def skip_rows(
    job: DueJob, instants: Iterable[Millis], *, zone: str, reason: str, now_ms: Millis
) -> list[bulk.Row]:
    """Return a row per series of consecutive instants, so that no row covers an instant that was fired."""
    schedule = schedule_of(job, zone)

    def next_after(instant: Millis) -> Millis | None:
        try:
            return next_after_ms(schedule, instant)
        except (ValueError, InvalidInput):  # Each instant of an unreadable schedule gets a row.
            return None

    return [
        skip_row(job.id, run, reason=reason, now_ms=now_ms) for run in group_consecutive(instants, next_after)
    ]


def skip_row(job_id: int, run: SkippedRange, *, reason: str, now_ms: Millis) -> bulk.Row:
    """Return the row of one series."""
    instants = {"from_ms": run.from_ms, "to_ms": run.to_ms, "skipped": min(run.count, SKIPPED_MAX)}
    return {"job_id": job_id, **instants, "reason": reason, "recorded_ms": now_ms}
