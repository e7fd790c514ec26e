"""Jobs: start, stop, edit and delete take effect at their commit. Time is passed as an argument."""

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import ALL_RIGHTS, Actor, Right, system_actor
from app.domain.enums import TriggerType
from app.errors import ForeignValue, InvalidInput, NotFound, PermissionDenied
from app.models.fire import Fire
from app.models.glue import GlueVersion
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.log import JobLog
from app.models.skip import Skip
from app.pipeline import claimed_ahead
from app.pipeline.claimed_run import CLAIM_AHEAD_MS
from app.services.executors.groups import GroupDraft, add_group
from app.services.installation import demo
from app.services.jobs import glue, jobs
from app.services.jobs.jobs import JobDraft, JobFilter
from app.store.fires import queue as fires
from app.store.fires.queue import NewFire
from tests.support import factories
from tests.support.narrowed import changed_column

pytestmark = pytest.mark.usefixtures("database")

#: 2024-05-01 10:20:00 in Shanghai
NOW: Millis = 1_714_530_000_000
ADMIN = system_actor("test")
MINUTE_MS = 60_000


def make_group(app_name: str = "some-app") -> int:
    with session_scope() as session:
        return add_group(session, GroupDraft(app_name=app_name, title="Some"), actor=ADMIN, now_ms=NOW)


def draft(group_id: int, **changes: Any) -> JobDraft:
    made = JobDraft(
        job_group=group_id,
        job_desc="report",
        author="ann",
        schedule_type="CRON",
        schedule_conf="0 * * * * ?",
        misfire_strategy="DO_NOTHING",
        executor_route_strategy="FIRST",
        executor_handler="demo",
        executor_block_strategy="SERIAL_EXECUTION",
        glue_type="BEAN",
    )
    return replace(made, **changes)


def make_job(*, start: bool = False, now_ms: Millis = NOW, **changes: Any) -> int:
    group_id = changes.pop("job_group", None) or make_group()
    with session_scope() as session:
        return jobs.add_job(
            session, draft(group_id, **changes), actor=ADMIN, clock=lambda: now_ms, start=start
        )


def load(job_id: int) -> Job:
    with read_scope() as session:
        job = session.get(Job, job_id)
        assert job is not None
        session.expunge(job)
        return job


def change(job_id: int, now_ms: Millis = NOW, **changes: Any) -> None:
    with session_scope() as session:
        jobs.update_job(
            session, job_id, draft(load(job_id).job_group, **changes), actor=ADMIN, clock=lambda: now_ms
        )


def plan(job_id: int, *due: Millis, state: str = "PENDING", kind: TriggerType = TriggerType.CRON) -> None:
    with session_scope() as session:
        made = fires.insert_fires(
            session, [NewFire(f"{kind}:{job_id}:{at_ms}", job_id, at_ms, kind) for at_ms in due]
        )
        for fire in made:
            row = session.get(Fire, fire.id)
            assert row is not None
            row.state = state
        job = session.get(Job, job_id)
        assert job is not None
        job.last_fire_ms = max([job.last_fire_ms, *due])


def due_times(job_id: int) -> list[Millis]:
    with read_scope() as session:
        return sorted(session.scalars(select(Fire.due_time).where(Fire.job_id == job_id)))


def skips(job_id: int) -> list[tuple[Millis, Millis, int, str]]:
    with read_scope() as session:
        return [
            (row.from_ms, row.to_ms, row.skipped, row.reason)
            for row in session.scalars(select(Skip).where(Skip.job_id == job_id))
        ]


def start(job_id: int, now_ms: Millis = NOW) -> None:
    with session_scope() as session:
        jobs.start_job(session, job_id, actor=ADMIN, clock=lambda: now_ms)


def stop(job_id: int, now_ms: Millis = NOW) -> None:
    with session_scope() as session:
        jobs.stop_job(session, job_id, actor=ADMIN, clock=lambda: now_ms)


def remove(job_id: int) -> None:
    with session_scope() as session:
        jobs.remove_job(session, job_id, actor=ADMIN, now_ms=NOW)


def trigger(session: Session, job_id: int, actor: Actor) -> None:
    jobs.trigger_job(session, job_id, executor_param=None, address_list=None, actor=actor, now_ms=NOW)


@pytest.mark.parametrize(
    ("kind", "conf", "next_ms"),
    [
        ("CRON", "0 * * * * ?", NOW + MINUTE_MS),
        ("CRON", "* * * * *", NOW + MINUTE_MS),
        ("FIX_RATE", "30", NOW + 30_000),
        ("FIX_DELAY", "30", NOW + 30_000),
        ("AT", "2024-05-01 12:00:00", NOW + 100 * MINUTE_MS),
    ],
)
def test_a_start_uses_the_first_instant_after_now(kind: str, conf: str, next_ms: Millis) -> None:
    job_id = make_job(schedule_type=kind, schedule_conf=conf)
    assert load(job_id).trigger_next_time == 0
    start(job_id, NOW)
    assert (load(job_id).trigger_status, load(job_id).trigger_next_time) == (1, next_ms)
    start(job_id, NOW + 7)  # a running job stays unchanged
    assert load(job_id).trigger_next_time == next_ms


def test_a_start_never_repeats_a_fired_instant() -> None:
    job_id = make_job(start=True)
    plan(job_id, NOW + MINUTE_MS)
    stop(job_id, NOW + MINUTE_MS - 2_000)
    start(job_id, NOW + MINUTE_MS - 1_000)
    assert load(job_id).trigger_next_time == NOW + 2 * MINUTE_MS


@pytest.mark.parametrize("others", [0, 1], ids=["direct", "with a job between"])
def test_concurrent_saves_close_no_cycle(others: int) -> None:
    group_id = make_group()
    ring = [make_job(job_group=group_id) for _ in range(2 + 2 * others)]
    half = 1 + others
    for parent, child in zip(ring, ring[1:], strict=False):
        if parent not in (ring[0], ring[half]):
            change(parent, child_jobid=str(child))
    if others:  # ring[3] leads back to ring[0]; ring[0] and ring[2] have no child yet
        change(ring[3], child_jobid=str(ring[0]))
    refused: list[str] = []

    def save_second() -> None:
        try:
            change(ring[half], child_jobid=str(ring[(half + 1) % len(ring)]))
        except InvalidInput as exc:
            refused.append(str(exc))

    second = threading.Thread(target=save_second)
    with session_scope() as session:
        jobs.update_job(
            session, ring[0], draft(group_id, child_jobid=str(ring[1])), actor=ADMIN, clock=lambda: NOW
        )
        second.start()
        second.join(0.5)
        assert second.is_alive(), "the second save waits for the first"
    second.join(10)
    assert not second.is_alive()
    assert len(refused) == 1
    assert "leads back" in refused[0]
    assert load(ring[half]).child_jobid == ""


@pytest.mark.parametrize("conf", ["a\x00b", "\ud800"])
def test_text_beside_no_schedule_must_be_storable(conf: str) -> None:
    make_job(schedule_type="NONE", schedule_conf="ignored")
    with pytest.raises(InvalidInput, match="cannot be stored") as error:
        make_job(schedule_type="NONE", schedule_conf=conf)
    assert error.value.field == "scheduleConf"


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule_type": "NONE", "schedule_conf": ""},
        {"schedule_type": "AT", "schedule_conf": "2024-05-01 10:00:00"},
        {"schedule_conf": "0 0 0 1 1 ? 2020"},
        {"not_after_ms": NOW},
    ],
)
def test_a_schedule_that_never_fires_again_cannot_be_started(changes: dict[str, Any]) -> None:
    job_id = make_job(**changes)
    with pytest.raises(InvalidInput):
        start(job_id)
    assert load(job_id).trigger_status == 0


def test_a_stop_withdraws_unsent_fires_and_records_what_was_due() -> None:
    job_id = make_job(start=True, schedule_conf="* * * * * ?")
    plan(job_id, NOW - 2_000, NOW - 1_000, NOW, NOW + 1_000)
    plan(job_id, NOW - 4_000, state="SENDING")
    plan(job_id, NOW - 500, kind=TriggerType.RETRY)
    plan(job_id, NOW - 400, kind=TriggerType.MANUAL)
    plan(job_id, NOW - 3_000, kind=TriggerType.MISFIRE)
    stop(job_id)
    assert due_times(job_id) == [NOW - 4_000, NOW - 500, NOW - 400]
    assert skips(job_id) == [(NOW - 3_000, NOW, 4, "stopped")]
    job = load(job_id)
    assert (job.trigger_status, job.trigger_last_time, job.trigger_next_time) == (0, 0, 0)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Collect the waits for the instants of claimed runs, in seconds."""
    waited: list[float] = []
    monkeypatch.setattr(claimed_ahead, "Event", lambda: SimpleNamespace(wait=waited.append))
    return waited


@pytest.mark.parametrize(("state", "expected"), [("SENDING", [0.04]), ("ACCEPTED", []), ("PENDING", [])])
@pytest.mark.parametrize("act", ["stop", "delete"])
def test_a_stop_and_a_deletion_end_after_the_instant_of_a_run_claimed_ahead(
    act: str, state: str, expected: list[float], waits: list[float]
) -> None:
    job_id = make_job(start=True, schedule_conf="* * * * * ?")
    plan(job_id, NOW + 40, state=state)
    stop(job_id) if act == "stop" else remove(job_id)
    assert waits == expected


def test_a_stop_waits_for_a_run_claimed_by_a_node_whose_clock_is_ahead(waits: list[float]) -> None:
    """It claimed the run at most CLAIM_AHEAD_MS before it sends it."""
    job_id = make_job(start=True, schedule_conf="* * * * * ?")
    plan(job_id, NOW + 700, state="SENDING")
    stop(job_id)
    assert waits == [CLAIM_AHEAD_MS / 1000]


@pytest.mark.parametrize(
    ("changes", "next_ms"),
    [
        ({"schedule_conf": "0 0/2 * * * ?"}, NOW + 4 * MINUTE_MS),
        ({"schedule_type": "FIX_RATE", "schedule_conf": "30"}, NOW + 2 * MINUTE_MS + 30_000),
        ({"not_before_ms": NOW + 10 * MINUTE_MS}, NOW + 10 * MINUTE_MS),
        ({"time_zone": "UTC"}, NOW + 3 * MINUTE_MS),
    ],
)
def test_an_edit_of_the_schedule_starts_after_its_last_instant(
    changes: dict[str, Any], next_ms: Millis
) -> None:
    job_id = make_job(start=True)
    plan(job_id, NOW + MINUTE_MS, NOW + 2 * MINUTE_MS)
    change(job_id, **changes)
    assert due_times(job_id) == []
    assert skips(job_id) == []  # nothing was due yet
    assert load(job_id).trigger_next_time == next_ms


def test_other_edits_touch_no_fire() -> None:
    job_id = make_job(start=True)
    plan(job_id, NOW + MINUTE_MS)
    before = load(job_id).trigger_next_time
    change(job_id, job_desc="renamed", executor_timeout=7, executor_route_strategy="LAST", executor_param="x")
    assert (load(job_id).job_desc, load(job_id).trigger_next_time, due_times(job_id)) == (
        "renamed",
        before,
        [NOW + MINUTE_MS],
    )


def test_a_running_job_cannot_get_a_schedule_that_never_fires() -> None:
    job_id = make_job(start=True)
    with pytest.raises(InvalidInput, match="never fires again"):
        change(job_id, schedule_conf="0 0 0 1 1 ? 2020")
    assert load(job_id).schedule_conf == "0 * * * * ?"


def test_a_fixed_delay_waits_for_the_current_run() -> None:
    job_id = make_job(start=True, schedule_type="FIX_DELAY", schedule_conf="30")
    plan(job_id, NOW, state="ACCEPTED")
    change(job_id, schedule_type="FIX_DELAY", schedule_conf="60")
    assert load(job_id).trigger_next_time == AFTER_THE_CURRENT_RUN
    stop(job_id)
    start(job_id, NOW + 1_000)
    assert load(job_id).trigger_next_time == AFTER_THE_CURRENT_RUN


def test_a_fixed_delay_continues_after_its_run_is_withdrawn() -> None:
    job_id = make_job(start=True, schedule_type="FIX_DELAY", schedule_conf="30")
    plan(job_id, NOW)
    change(job_id, schedule_type="FIX_DELAY", schedule_conf="60")
    assert (due_times(job_id), load(job_id).trigger_next_time) == ([], NOW + MINUTE_MS)


def test_a_delete_leaves_no_row_of_the_job() -> None:
    job_id = make_job(glue_type="GLUE_SHELL", executor_handler="", start=True)
    with session_scope() as session:
        glue.save_source(session, job_id, "echo 1", "four letters", actor=ADMIN, now_ms=NOW)
        for _ in range(3):
            session.add(JobLog(job_group=1, job_id=job_id, trigger_code=200, handle_code=0, trigger_time=NOW))
    plan(job_id, NOW - 1_000, NOW + 1_000)
    plan(job_id, NOW - 2_000, state="ACCEPTED")
    remove(job_id)
    with read_scope() as session:
        for model in (Job, Fire, JobLog, GlueVersion, Skip):
            assert session.scalars(select(model)).all() == []


@pytest.mark.parametrize(
    ("remark", "kept_as"), [("free disk space", "free disk space"), ("", "initial code")]
)
def test_the_first_save_keeps_the_code_before_it_as_a_version(remark: str, kept_as: str) -> None:
    code = {"glue_type": "GLUE_SHELL", "executor_handler": ""}
    job_id = make_job(glue_source="df -h /", glue_remark=remark, **code)
    empty_id = make_job(job_group=load(job_id).job_group, **code)
    for at_ms, source in enumerate(("df -h / /var", "df -h"), NOW + MINUTE_MS):
        with session_scope() as session:
            for each in (job_id, empty_id):
                glue.save_source(session, each, source, "and more", actor=ADMIN, now_ms=at_ms)
    with read_scope() as session:
        versions = glue.list_versions(session, job_id, actor=ADMIN)
        assert [version.glue_source for version in versions] == ["df -h", "df -h / /var", "df -h /"]
        first = versions[-1]
        assert (first.glue_remark, first.author, first.update_time) == (kept_as, "", NOW)
        assert len(glue.list_versions(session, empty_id, actor=ADMIN)) == 2


@pytest.mark.parametrize("started", [False, True], ids=["off", "on"])
def test_clearing_before_a_removal_keeps_the_job_and_needs_the_right(started: bool) -> None:
    job_id = make_job(start=started)
    with session_scope() as session:
        session.add_all(
            [
                JobLog(job_group=1, job_id=job_id, trigger_code=0, handle_code=0, trigger_time=NOW)
                for _ in range(1_005)
            ]
        )
    with pytest.raises(NotFound):
        jobs.clear_before_removal(
            job_id, actor=Actor(user_id=7, username="x", is_admin=False), clock=lambda: NOW
        )
    assert load(job_id).trigger_status == started
    jobs.clear_before_removal(job_id, actor=ADMIN, clock=lambda: NOW)
    with read_scope() as session:
        assert session.scalars(select(JobLog.id)).all() == []
    assert load(job_id).trigger_status == 0


@pytest.mark.parametrize(
    ("right", "act"),
    [
        (
            Right.OPERATE,
            lambda session, job, actor: jobs.start_job(session, job.id, actor=actor, clock=lambda: NOW),
        ),
        (
            Right.OPERATE,
            lambda session, job, actor: jobs.stop_job(session, job.id, actor=actor, clock=lambda: NOW),
        ),
        (Right.OPERATE, lambda session, job, actor: trigger(session, job.id, actor)),
        (
            Right.EDIT,
            lambda session, job, actor: jobs.update_job(
                session, job.id, draft(job.job_group), actor=actor, clock=lambda: NOW
            ),
        ),
        (Right.EDIT, lambda session, job, actor: jobs.remove_job(session, job.id, actor=actor, now_ms=NOW)),
        (
            Right.EDIT,
            lambda session, job, actor: jobs.add_job(
                session, draft(job.job_group), actor=actor, clock=lambda: NOW
            ),
        ),
        (
            Right.VIEW,
            lambda session, job, actor: jobs.get_job(session, job.id, actor=actor, right=Right.VIEW),
        ),
    ],
)
def test_each_action_needs_exactly_its_right(right: Right, act: Any) -> None:
    job = load(make_job())
    group_id = job.job_group
    refused = Actor(
        user_id=7, username="x", is_admin=False, rights={group_id: frozenset(ALL_RIGHTS - {right})}
    )
    foreign = Actor(user_id=8, username="y", is_admin=False, rights={group_id + 1: ALL_RIGHTS})
    allowed = Actor(
        user_id=9, username="z", is_admin=False, rights={group_id: frozenset({right, Right.VIEW})}
    )
    with session_scope() as session, pytest.raises((PermissionDenied, NotFound)):
        act(session, job, refused)
    with session_scope() as session, pytest.raises((NotFound, InvalidInput)):
        act(session, job, foreign)
    with session_scope() as session:
        act(session, job, allowed)


def test_a_list_contains_only_what_the_actor_may_see() -> None:
    first = make_job()
    second = make_job(job_group=make_group("other-app"))
    normal = Actor(
        user_id=7, username="x", is_admin=False, rights={load(first).job_group: frozenset({Right.VIEW})}
    )
    with read_scope() as session:
        assert [
            job.id for job in jobs.list_jobs(session, JobFilter(), actor=ADMIN, start=0, length=10).rows
        ] == [second, first]
        assert [
            job.id for job in jobs.list_jobs(session, JobFilter(), actor=normal, start=0, length=10).rows
        ] == [first]


def test_children_are_checked_and_joined_and_never_the_job_itself() -> None:
    group_id = make_group()
    first, second = make_job(job_group=group_id), make_job(job_group=group_id)
    change(first, child_jobid=f"{second},,")
    assert load(first).child_jobid == str(second)
    with pytest.raises(InvalidInput, match="its own child"):
        change(first, child_jobid=str(first))
    with pytest.raises(InvalidInput, match="was not found"):
        change(first, child_jobid="-1")


def test_a_child_that_the_actor_cannot_see_stays_but_is_not_added() -> None:
    child, foreign = (make_job(job_group=make_group(name)) for name in ("their-app", "other-app"))
    parent = make_job(child_jobid=str(child))
    rights = {load(parent).job_group: ALL_RIGHTS}
    actor = Actor(user_id=7, username="x", is_admin=False, rights=rights)

    def save(children: str) -> None:
        changed = draft(load(parent).job_group, child_jobid=children, job_desc="renamed")
        with session_scope() as session:
            jobs.update_job(session, parent, changed, actor=actor, clock=lambda: NOW)

    save(str(child))
    assert (load(parent).job_desc, load(parent).child_ids) == ("renamed", [child])
    with pytest.raises(ForeignValue, match="was not found"):
        save(f"{child},{foreign}")
    save("")
    with pytest.raises(ForeignValue, match="was not found"):
        save(str(child))


def test_children_that_lead_back_to_their_parent_are_refused() -> None:
    group_id = make_group()
    first, second, third = (make_job(job_group=group_id) for _ in range(3))
    change(first, child_jobid=str(second))
    change(second, child_jobid=str(third))
    with pytest.raises(InvalidInput, match="leads back"):
        change(third, child_jobid=f"{second}")
    with pytest.raises(InvalidInput, match="leads back"):
        change(third, child_jobid=f"{first}")
    assert load(third).child_jobid == ""
    change(first, child_jobid=f"{second},{third}")
    with session_scope() as session:  # as a database of the original may contain it
        session.get_one(Job, third).child_jobid = str(first)
    change(third, child_jobid=str(first), job_desc="can still be edited")
    change(third, child_jobid="")


@pytest.mark.parametrize(
    "changes",
    [
        {"schedule_conf": "* * * * *"},
        {"schedule_conf": "0 0 2 1,L * ?"},
        {"schedule_conf": "0 0 2 l, * ?"},
        {"schedule_conf": "0 0 2 ,LW * ?"},
        {"schedule_conf": "0 0 2 L,? * 2"},
        {"schedule_type": "FIX_DELAY", "schedule_conf": "30"},
        {"schedule_type": "AT", "schedule_conf": "2030-01-01 00:00:00"},
        {"time_zone": "UTC"},
        {"not_before_ms": NOW},
    ],
)
def test_with_a_java_admin_only_values_it_can_read_are_accepted(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="Java"):
        make_job(**changes, readable_by_java=True)
    make_job(**changes)


def test_the_sample_job_is_created_once() -> None:
    for made in (3, 0):
        with session_scope() as session:
            assert demo.seed(session, actor=ADMIN, clock=lambda: NOW) == made
    with read_scope() as session:
        rows = [
            (job.executor_handler, job.trigger_status)
            for job in session.scalars(select(Job).order_by(Job.id))
        ]
    assert rows == [("demoJobHandler", 1), ("sleepJobHandler", 0), ("failJobHandler", 0)]


@pytest.mark.databases("mariadb")
def test_a_parameter_that_a_fire_cannot_hold_is_refused_with_its_length() -> None:
    with changed_column("xxl_job_info", "executor_param", "mediumtext", back="varchar(2048)"):
        own = "p" * 70_000
        job = factories.make_job(executor_param=own)
        with pytest.raises(InvalidInput, match="at most 16383 characters"), session_scope() as session:
            jobs.trigger_job(
                session, job.id, executor_param=own, address_list=None, actor=system_actor("t"), now_ms=NOW
            )
