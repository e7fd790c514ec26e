"""Helpers of the tests of console runs, for all that need them."""

from typing import Any

from app.clock import MINUTE_MS, now_ms
from app.models.log import JobLog
from tests.support.factories import save


def add_log(job_id: int, group_id: int, **changes: Any) -> int:
    """Store a run that succeeded a minute ago."""
    started_ms = now_ms() // 1000 * 1000 - MINUTE_MS
    values = {
        "job_group": group_id,
        "job_id": job_id,
        "executor_address": "http://127.0.0.1:9999/",
        "executor_handler": "demoJobHandler",
        "executor_param": "p=1",
        "trigger_time": started_ms,
        "trigger_code": 200,
        "trigger_msg": "Trigger type: Cron",
        "handle_time": started_ms + 9_000,
        "handle_code": 200,
        "handle_msg": "<i>done</i>",
    }
    return save(JobLog(**{**values, **changes})).id
