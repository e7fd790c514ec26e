"""Ends of schedules: their jobs stop by themselves, as in XXL-JOB, with an entry in the change history."""

import json
import logging
from collections.abc import Mapping

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import TriggerStatus
from app.pipeline.spans import keep_spans
from app.store.accounts import audit

logger = logging.getLogger(__name__)

#: why a job stops whose schedule is valid
NO_NEXT_TIME = "the schedule has no next time"
#: characters of the reason in the audit trail
REASON_MAX = 500
#: new times and status of a job that stops
STOPPED = {
    "trigger_status": TriggerStatus.STOPPED.value,
    "trigger_last_time": 0,
    "trigger_next_time": 0,
}


def record_endings(session: Session, errors: Mapping[int, str], *, now_ms: Millis, node: str = "") -> None:
    """Log jobs that stop by themselves, end their histories and write the audit entries.

    ``errors``: job id -> why its schedule is invalid; empty: it has no next time. ``node``: the node whose
    scan planned the job.
    """
    for job_id, error in errors.items():
        if error:
            logger.error("job stopped job_id=%s reason=%s", job_id, error)
        else:
            logger.info("schedule ended job_id=%s", job_id)
    keep_spans(session, errors.keys(), now_ms=now_ms)
    audit.insert_entries(
        session, [_entry(job_id, now_ms, error or NO_NEXT_TIME, node) for job_id, error in errors.items()]
    )


def _entry(job_id: int, now_ms: Millis, reason: str, node: str) -> bulk.Row:
    details = ({"node": node} if node else {}) | {"reason": reason[:REASON_MAX]}
    return {
        "at_ms": now_ms,
        "action": "job.ended",
        "object_type": "job",
        "object_id": job_id,
        "changes": json.dumps(details, ensure_ascii=False),
    }
