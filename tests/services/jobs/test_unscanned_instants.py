"""Stops and edits: each instant ends up with a fire or a skip, and never with both."""

import threading
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute

from app.clock import Clock, Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import system_actor
from app.domain.schedules.planning import MAX_COUNTED_UNIX
from app.models.base import zone_name
from app.models.fire import Fire
from app.models.job import Job
from app.models.skip import Skip
from app.pipeline.handover import hand_back
from app.pipeline.scan import scan
from app.services.executors.groups import GroupDraft, add_group
from app.services.jobs import jobs
from app.services.jobs.jobs import JobDraft, schedule_of
from app.services.jobs.replan import replan_jobs

pytestmark = pytest.mark.usefixtures("database")

NOW: Millis = 1_714_530_000_000
HOUR: Millis = 3_600_000
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


def start_job(**changes: Any) -> tuple[int, JobDraft]:
    with session_scope() as session:
        group_id = add_group(session, GroupDraft(app_name="some-app", title="Some"), actor=ADMIN, now_ms=NOW)
        draft = replace(DRAFT, job_group=group_id, **changes)
        return jobs.add_job(session, draft, actor=ADMIN, clock=lambda: NOW, start=True), draft


def plan(job_id: int, *due: Millis, trigger_type: str = "CRON", state: str = "PENDING") -> None:
    """Write fires as a scan does."""
    with session_scope() as session:
        for at_ms in due:
            key = f"{trigger_type}:{job_id}:{at_ms}"
            session.add(
                Fire(
                    job_id=job_id, fire_key=key, due_time=NOW + at_ms, trigger_type=trigger_type, state=state
                )
            )
        session.get_one(Job, job_id).trigger_next_time = NOW + max(due) + 2_000


def act_on(job_id: int, draft: JobDraft, act: str, clock: Clock) -> None:
    """Stop the job, or edit its schedule."""
    with session_scope() as session:
        if act == "stopped":
            jobs.stop_job(session, job_id, actor=ADMIN, clock=clock)
        else:
            jobs.update_job(
                session, job_id, replace(draft, schedule_conf="0 * * * * ?"), actor=ADMIN, clock=clock
            )


def skips() -> list[tuple[Millis, Millis, int, str]]:
    with read_scope() as session:
        return [
            (skip.from_ms - NOW, skip.to_ms - NOW, skip.skipped, skip.reason)
            for skip in session.scalars(select(Skip))
        ]


@pytest.mark.parametrize("late_ms", [3_000, 60_000])
def test_a_stop_records_what_was_due_and_not_scanned(late_ms: Millis) -> None:
    job_id, _ = start_job()
    with session_scope() as session:
        jobs.stop_job(session, job_id, actor=ADMIN, clock=lambda: NOW + late_ms)
    last_ms = late_ms // 2_000 * 2_000
    assert skips() == [(2_000, last_ms, last_ms // 2_000, "stopped")]


def test_a_stop_after_a_long_outage_counts_no_further_than_a_scan() -> None:
    """Under the job's lock each instant of five fields costs a search by croniter."""
    job_id, _ = start_job(schedule_conf="* * * * *")
    late_ms = (MAX_COUNTED_UNIX + 1_000) * 60_000
    with session_scope() as session:
        jobs.stop_job(session, job_id, actor=ADMIN, clock=lambda: NOW + late_ms)
    assert skips() == [(60_000, late_ms, MAX_COUNTED_UNIX, "stopped")]


def test_an_edit_records_overdue_instants_of_the_old_schedule() -> None:
    job_id, draft = start_job(schedule_type="FIX_RATE", schedule_conf="1")
    with session_scope() as session:
        jobs.update_job(
            session, job_id, replace(draft, schedule_conf="5"), actor=ADMIN, clock=lambda: NOW + 7_500
        )
    assert skips() == [(1_000, 7_000, 7, "edited")]
    with read_scope() as session:
        job = session.get(Job, job_id)
        assert job is not None
        assert job.trigger_next_time == NOW + 12_500


def test_a_timely_stop_and_an_unrelated_edit_record_nothing() -> None:
    job_id, draft = start_job()
    with session_scope() as session:
        jobs.update_job(
            session, job_id, replace(draft, job_desc="other"), actor=ADMIN, clock=lambda: NOW + 60_000
        )
    with session_scope() as session:
        session.get_one(Job, job_id).trigger_next_time = NOW + 62_000
    with session_scope() as session:
        jobs.stop_job(session, job_id, actor=ADMIN, clock=lambda: NOW + 61_000)
    assert skips() == []


@pytest.mark.parametrize("act", ["stopped", "edited"])
def test_a_skip_omits_what_was_fired_or_skipped_in_between(act: str) -> None:
    job_id, draft = start_job()
    plan(job_id, -16_000, state="ACCEPTED")
    plan(job_id, -6_000, trigger_type="MISFIRE")  # its own skip starts at -12 s
    plan(job_id, -20_000, -18_000, -14_000, -4_000, -2_000, 2_000)
    act_on(job_id, draft, act, lambda: NOW)
    assert skips() == [(-20_000, -18_000, 2, act), (-14_000, -14_000, 1, act), (-6_000, -2_000, 3, act)]


@pytest.mark.parametrize("act", ["stopped", "edited"])
@pytest.mark.parametrize("locked", [Job.id, Fire.job_id], ids=["the job", "its fires"])
def test_what_falls_due_while_a_stop_or_an_edit_waits_is_skipped(
    act: str, locked: InstrumentedAttribute[int]
) -> None:
    job_id, draft = start_job()
    plan(job_id, 2_000, 4_000, 6_000)
    clock_ms = [NOW]
    waiting = threading.Thread(target=act_on, args=(job_id, draft, act, lambda: clock_ms[0]))
    with session_scope() as session:
        session.scalars(select(locked.class_).where(locked == job_id).with_for_update()).all()
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive()
        clock_ms[0] = NOW + 5_000
    waiting.join(10)
    assert skips() == [(2_000, 4_000, 2, act)]
    with read_scope() as session:
        assert session.scalars(select(Fire)).all() == []


@pytest.mark.parametrize(("claimed", "next_ms"), [((), 1_000), ((2_000,), 3_000), ((4_000,), 5_000)])
def test_an_edit_reopens_withdrawn_instants_that_are_still_to_come(
    claimed: tuple[Millis, ...], next_ms: Millis
) -> None:
    """A fire claimed by a node whose clock is a little ahead is sent; nothing before it is reopened."""
    job_id, draft = start_job()
    plan(job_id, *({2_000, 4_000} - set(claimed)))
    for at_ms in claimed:
        plan(job_id, at_ms, state="SENDING")
    with session_scope() as session:
        job = session.get_one(Job, job_id)
        job.last_fire_ms, job.trigger_next_time = NOW + 4_000, NOW + 6_000
    with session_scope() as session:
        jobs.update_job(
            session,
            job_id,
            replace(draft, schedule_conf="1/2 * * * * ?"),
            actor=ADMIN,
            clock=lambda: NOW + 500,
        )
    with read_scope() as session:
        assert session.get_one(Job, job_id).trigger_next_time == NOW + next_ms
    assert skips() == []


#: schedules whose last instant is 10 s from NOW, 10:20:00 in Shanghai, and edits that go on after it
LAST_INSTANTS = [
    ({"schedule_conf": "0/10 * * * * ?", "not_after_ms": NOW + 10_000}, {"not_after_ms": NOW + HOUR}, 10_000),
    (
        {"schedule_type": "AT", "schedule_conf": "2024-05-01 10:20:10"},
        {"schedule_conf": "2024-05-01 11:20:00"},
        HOUR,
    ),
]


def read_last_ahead(**schedule: Any) -> tuple[int, JobDraft]:
    """Start a job and let the scan read its last instant, 4 s ahead, which ends its schedule."""
    job_id, draft = start_job(**schedule)
    assert len(scan(node="one", zone="Asia/Shanghai", now_ms=NOW + 6_000)) == 1
    assert status_and_next(job_id) == (0, -NOW)
    return job_id, draft


def edit_late(job_id: int, edited: JobDraft, *, many: bool) -> None:
    """Store an edit 3 s before the last instant, as a form does or as an import of many jobs does."""
    with session_scope() as session:
        if many:
            replan_jobs(
                session, {job_id: (schedule_of(edited, "Asia/Shanghai"), 0)}, clock=lambda: NOW + 7_000
            )
        else:
            jobs.update_job(session, job_id, edited, actor=ADMIN, clock=lambda: NOW + 7_000)


def status_and_next(job_id: int) -> tuple[int, Millis]:
    with read_scope() as session:
        job = session.get_one(Job, job_id)
        return job.trigger_status, job.trigger_next_time - NOW


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(("schedule", "edit", "next_ms"), LAST_INSTANTS)
def test_an_edit_continues_a_schedule_whose_last_instant_was_read_ahead(
    schedule: dict[str, Any], edit: dict[str, Any], next_ms: Millis, many: bool
) -> None:
    job_id, draft = read_last_ahead(**schedule)
    edited = replace(draft, **edit)
    edit_late(job_id, edited, many=many)
    assert status_and_next(job_id) == (1, next_ms)
    assert skips() == []


@pytest.mark.parametrize("many", [False, True])
def test_an_edit_without_a_further_instant_leaves_such_a_job_off(many: bool) -> None:
    job_id, draft = read_last_ahead(**LAST_INSTANTS[0][0])
    edited = replace(draft, schedule_type="AT", schedule_conf="2024-04-01 00:00:00", not_after_ms=0)
    edit_late(job_id, edited, many=many)
    assert status_and_next(job_id) == (0, -NOW)


@pytest.mark.parametrize(("schedule", "_edit", "_next_ms"), LAST_INSTANTS)
def test_a_last_instant_that_a_stop_withdrew_is_there_again_after_a_start(
    schedule: dict[str, Any], _edit: dict[str, Any], _next_ms: Millis
) -> None:
    job_id, _ = read_last_ahead(**schedule)
    with session_scope() as session:
        jobs.stop_job(session, job_id, actor=ADMIN, clock=lambda: NOW + 7_000)
    assert status_and_next(job_id) == (0, -NOW)
    with session_scope() as session:
        jobs.start_job(session, job_id, actor=ADMIN, clock=lambda: NOW + 8_000)
    assert status_and_next(job_id) == (1, 10_000)


def test_an_edit_leaves_a_job_off_that_a_java_admin_has_stopped() -> None:
    """It does not know the fires, so they are still there; the schedule has more instants."""
    job_id, draft = start_job()
    plan(job_id, 2_000, 4_000)
    with session_scope() as session:
        job = session.get_one(Job, job_id)
        job.trigger_status = job.trigger_next_time = 0
    act_on(job_id, draft, "edited", lambda: NOW)
    assert status_and_next(job_id) == (0, -NOW)


def test_an_edit_after_the_workers_have_stopped_starts_at_once() -> None:
    job_id, draft = start_job(schedule_conf="0/10 * * * * ?")
    scan(node="one", zone=zone_name(), now_ms=NOW + 5_500)
    assert hand_back(node="one", zone=zone_name(), now_ms=NOW + 6_000) == 1
    with session_scope() as session:
        often = replace(draft, schedule_conf="* * * * * ?")
        jobs.update_job(session, job_id, often, actor=ADMIN, clock=lambda: NOW + 6_200)
    fired = scan(node="two", zone=zone_name(), now_ms=NOW + 6_900)
    assert [fire.due_time - NOW for fire in fired] == [7_000, 8_000, 9_000, 10_000, 11_000]
    assert skips() == []


@pytest.mark.parametrize(
    ("changes", "next_ms"),
    [
        ({"schedule_type": "CRON", "schedule_conf": "* * * * * ?"}, 6_000),
        ({"schedule_type": "AT", "schedule_conf": "2024-05-01 10:20:08"}, 8_000),
        ({"schedule_type": "AT", "schedule_conf": "2024-05-01 10:20:10"}, 10_000),
        ({"schedule_type": "FIX_DELAY", "schedule_conf": "2"}, 7_700),
    ],
)
def test_a_fixed_delay_read_ahead_holds_up_no_new_schedule(changes: dict[str, str], next_ms: Millis) -> None:
    job_id, draft = start_job(schedule_type="FIX_DELAY", schedule_conf="10")
    assert len(scan(node="one", zone=zone_name(), now_ms=NOW + 5_500)) == 1
    with session_scope() as session:
        edited = replace(draft, **changes)
        jobs.update_job(session, job_id, edited, actor=ADMIN, clock=lambda: NOW + 5_700)
    with read_scope() as session:
        assert session.get_one(Job, job_id).trigger_next_time == NOW + next_ms
        assert session.scalars(select(Fire)).all() == []
    assert skips() == []
