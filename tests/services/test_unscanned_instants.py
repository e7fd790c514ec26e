"""A stop or an edit while no scan looks leaves no instant without a fire and without a reason."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from app.clock import Millis
from app.db import read_scope, session_scope
from app.domain.permissions import system_actor
from app.models.job import Job
from app.models.skip import Skip
from app.services import jobs
from app.services.groups import GroupDraft, add_group
from app.services.jobs import JobDraft

pytestmark = pytest.mark.usefixtures("database")

NOW: Millis = 1_714_530_000_000
ADMIN = system_actor("test")
DRAFT = JobDraft(
    job_group=0,
    job_desc="report",
    author="ann",
    schedule_type="CRON",
    schedule_conf="0/2 * * * * ?",
    misfire_strategy="FIRE_ONCE_NOW",
    executor_route_strategy="FIRST",
    executor_handler="demo",
    executor_block_strategy="SERIAL_EXECUTION",
    glue_type="BEAN",
)


def start_job(**changes: str) -> tuple[int, JobDraft]:
    with session_scope() as session:
        group_id = add_group(session, GroupDraft(app_name="some-app", title="Some"), actor=ADMIN, networks=(), now_ms=NOW)
        draft = replace(DRAFT, job_group=group_id, **changes)
        return jobs.add_job(session, draft, actor=ADMIN, now_ms=NOW, start=True), draft


def skips() -> list[tuple[Millis, Millis, int, str]]:
    with read_scope() as session:
        return [(skip.from_ms - NOW, skip.to_ms - NOW, skip.skipped, skip.reason) for skip in session.scalars(select(Skip))]


@pytest.mark.parametrize("late_ms", [3_000, 60_000])
def test_a_stop_records_what_was_due_and_not_scanned(late_ms: Millis) -> None:
    job_id, _ = start_job()
    with session_scope() as session:
        jobs.stop_job(session, job_id, actor=ADMIN, now_ms=NOW + late_ms)
    last_ms = late_ms // 2_000 * 2_000
    assert skips() == [(2_000, last_ms, last_ms // 2_000, "stopped")]


def test_an_edit_records_what_the_old_schedule_still_owed() -> None:
    job_id, draft = start_job(schedule_type="FIX_RATE", schedule_conf="1")
    with session_scope() as session:
        jobs.update_job(session, job_id, replace(draft, schedule_conf="5"), actor=ADMIN, now_ms=NOW + 7_500)
    assert skips() == [(1_000, 7_000, 7, "edited")]
    with read_scope() as session:
        job = session.get(Job, job_id)
        assert job is not None
        assert job.trigger_next_time == NOW + 12_500


def test_a_stop_in_time_and_an_edit_of_something_else_record_nothing() -> None:
    job_id, draft = start_job()
    with session_scope() as session:
        jobs.update_job(session, job_id, replace(draft, job_desc="other"), actor=ADMIN, now_ms=NOW + 60_000)
    with session_scope() as session:
        session.get_one(Job, job_id).trigger_next_time = NOW + 62_000
    with session_scope() as session:
        jobs.stop_job(session, job_id, actor=ADMIN, now_ms=NOW + 61_000)
    assert skips() == []
