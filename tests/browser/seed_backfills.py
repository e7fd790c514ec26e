"""Sample backfills: one that runs, one that has stopped at a failure, one that is done."""

import json
from collections.abc import Sequence

from sqlalchemy.orm import Session

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, Millis
from app.models.backfill import Backfill, BackfillInstant
from app.models.job import Job

#: state of the backfill -> its instants by state
_SAMPLES = (
    ("done", {"succeeded": 12}),
    ("failed", {"succeeded": 5, "failed": 1, "waiting": 8}),
    ("running", {"succeeded": 96, "failed": 2, "running": 2, "waiting": 173}),
)


def add_backfills(session: Session, job: Job, now_ms: Millis) -> int:
    """Store backfills of a job that runs every 15 minutes; return the id of the last one, which runs."""
    first_ms = now_ms // DAY_MS * DAY_MS - 3 * DAY_MS
    for state, counts in _SAMPLES:
        total = sum(counts.values())
        summary = {"instants": total + 15, "succeeded": 12, "calendar": 3, "missing": total, "to_run": total}
        backfill = Backfill(
            job_id=job.id,
            job_group=job.job_group,
            job_name=job.job_desc,
            from_ms=first_ms,
            to_ms=first_ms + 3 * DAY_MS,
            which="missing",
            run_order="oldest_first",
            max_running=2,
            children="none",
            on_failure="stop" if state == "failed" else "go_on",
            state=state,
            total=total,
            summary=json.dumps(summary),
            user_id=1,
            username="lina",
            created_ms=now_ms - HOUR_MS,
            updated_ms=now_ms,
            ended_ms=0 if state == "running" else now_ms - MINUTE_MS,
        )
        session.add(backfill)
        session.flush()
        states = [each for each, count in counts.items() for _ in range(count)]
        session.add_all(_instants(backfill.id, states, first_ms, now_ms))
    return backfill.id


def _instants(
    backfill_id: int, states: Sequence[str], first_ms: Millis, now_ms: Millis
) -> list[BackfillInstant]:
    begun_ms = now_ms - HOUR_MS
    return [
        BackfillInstant(
            backfill_id=backfill_id,
            logical_ms=first_ms + 15 * number * MINUTE_MS,
            number=number,
            state=state,
            attempt=int(state != "waiting"),
            log_id=number + 1 if state in ("succeeded", "failed") else None,
            begun_ms=begun_ms + number * 20_000 if state != "waiting" else 0,
            ended_ms=begun_ms + number * 20_000 + 14_200 if state in ("succeeded", "failed") else 0,
        )
        for number, state in enumerate(states)
    ]
