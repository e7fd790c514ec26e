"""Schedules that end: their jobs stop by themselves, as in XXL-JOB, and the change history says so."""

import json

from app.clock import Millis
from app.domain.enums import TriggerStatus
from app.store import bulk

#: why a job stops whose schedule is valid
NO_NEXT_TIME = "the schedule has no next time"
#: new times and status of a job that stops
STOPPED = {
    "trigger_status": TriggerStatus.STOPPED.value,
    "trigger_last_time": 0,
    "trigger_next_time": 0,
}


def ending_entry(job_id: int, now_ms: Millis, reason: str = NO_NEXT_TIME, *, node: str = "") -> bulk.Row:
    """Return the audit entry of a job that stops by itself; ``node``: the one whose scan found it."""
    details = ({"node": node} if node else {}) | {"reason": reason}
    return {
        "at_ms": now_ms,
        "action": "job.ended",
        "object_type": "job",
        "object_id": job_id,
        "changes": json.dumps(details, ensure_ascii=False),
    }
