"""Helpers of the tests of jobs, for all that need them."""

import json
from typing import Any

from app.clock import Millis
from app.database.engine import session_scope
from app.domain.access.permissions import Actor, system_actor
from app.models.code import JobVersion
from app.services.jobs import jobs
from app.services.jobs.rules import JobDraft
from tests.support.factories import T0, all_rows, only_row

ADMIN = system_actor("ada")


CI = Actor(user_id=0, username="ci", is_admin=True, via="token ci")


LATER: Millis = T0 + 60_000


def draft(group_id: int, **changes: Any) -> JobDraft:
    values = {
        "job_desc": "report",
        "author": "ann",
        "schedule_type": "NONE",
        "misfire_strategy": "DO_NOTHING",
        "executor_route_strategy": "FIRST",
        "executor_handler": "demo",
        "executor_block_strategy": "SERIAL_EXECUTION",
        "glue_type": "BEAN",
        "tags": (),
    }
    return JobDraft(job_group=group_id, **{**values, **changes})


def add(group_id: int, *, actor: Actor = ADMIN, **changes: Any) -> int:
    with session_scope() as session:
        return jobs.add_job(session, draft(group_id, **changes), actor=actor, clock=lambda: T0)


def update(
    job_id: int, group_id: int, *, actor: Actor = ADMIN, now_ms: Millis = LATER, **changes: Any
) -> None:
    with session_scope() as session:
        jobs.update_job(session, job_id, draft(group_id, **changes), actor=actor, clock=lambda: now_ms)


def kept(job_id: int) -> list[tuple[int, Millis, str, str]]:
    rows = all_rows(JobVersion, job_id=job_id)
    return [(row.number, row.at_ms, row.username, row.source) for row in rows]


def fields(job_id: int, number: int) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(only_row(JobVersion, job_id=job_id, number=number).fields)
    return read
