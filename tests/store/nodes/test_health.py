"""State for monitors: the same on every kind of database."""

from sqlalchemy import insert

from app.database.engine import read_scope, session_scope
from app.domain.enums import FireState
from app.models.alarm import Alarm
from app.models.log import JobLog
from app.models.registry import Registration
from app.models.skip import Skip
from app.store.executors.registry import DEAD_AFTER_MS
from app.store.nodes import health
from app.store.pickers import overview
from tests.support.factories import T0, make_fire, make_group, make_job, make_log, make_run, save


def test_fires_are_counted_by_state_and_the_oldest_due_one_is_found(database: str) -> None:
    job = make_job()
    make_fire(job, due_time=T0 - 7_000)
    make_fire(job, due_time=T0)
    make_fire(job, due_time=T0 + 1)
    make_run(job)
    with read_scope() as session:
        found = health.find_queues(session, now_ms=T0)
        assert (found.due, found.oldest_due_ms) == (2, T0 - 7_000)
        assert {state: count for state, count in found.by_state.items() if count} == {FireState.ACCEPTED: 1}
        assert health.find_queues(session, now_ms=T0 - 8_000).oldest_due_ms is None


def test_alarms_that_wait_and_recent_failures_are_counted(database: str) -> None:
    states = [
        ("PENDING", 0),
        ("SENDING", 0),
        ("SENT", T0),
        ("FAILED", T0),
        ("FAILED", T0 - health.RECENT_MS - 1),
    ]
    for number, (state, next_ms) in enumerate(states):
        save(Alarm(log_id=number, job_id=1, reason="failed", state=state, created_ms=T0, next_ms=next_ms))
    with read_scope() as session:
        assert health.count_alarms(session, now_ms=T0) == (2, 1)


def test_instances_of_automatic_groups_are_online_while_they_send_heartbeats(database: str) -> None:
    busy = make_group(app_name="busy", address_type=0)
    empty = make_group(app_name="empty", address_type=0)
    make_group(app_name="by-hand", address_type=1)
    for app_name, number, at_ms in (
        ("busy", 1, T0),
        ("busy", 2, T0),
        ("busy", 3, T0 - DEAD_AFTER_MS - 1_000),
        ("unknown", 4, T0),
    ):
        values = {"registry_key": app_name, "registry_value": f"http://127.0.0.1:{number}/"}
        save(Registration(registry_group="EXECUTOR", update_time=at_ms, **values))
    with read_scope() as session:
        assert health.count_instances(session, now_ms=T0) == {busy.id: 2, empty.id: 0}
        assert list(health.find_group_names(session, limit=2).values()) == ["busy", "empty"]


def test_unresolved_runs_and_jobs_are_counted(database: str) -> None:
    job = make_job(trigger_status=1)
    for code, result in ((504, 0), (504, 200), (500, 0), (200, 0)):
        make_log(job, trigger_code=code, handle_code=result)
    with read_scope() as session:
        assert health.count_unresolved(session) == {job.job_group: 1}
        assert health.count_jobs(session) == {1: 1}


def test_refused_runs_hide_no_open_ones(database: str) -> None:
    job = make_job()
    unresolved, running = make_log(job, trigger_code=504), make_log(job)
    refused = {"job_group": job.job_group, "job_id": job.id, "trigger_time": T0, "trigger_code": 500}
    with session_scope() as session:
        session.execute(insert(JobLog), [refused] * 2_000)
    with read_scope() as session:
        assert health.count_unresolved(session) == {job.job_group: 1}
        opened = overview.find_open_runs(session, None)
        assert [run.id for run in opened] == [running.id, unresolved.id]


def test_instants_missed_recently_are_counted_by_group(database: str) -> None:
    job = make_job()
    for reason, skipped, ago_ms in (
        ("misfire", 7, 0),
        ("invalid", 1, 1_000),
        ("stopped", 100, 0),
        ("misfire", 1_000, health.RECENT_MS + 1),
    ):
        instants = {"from_ms": T0, "to_ms": T0, "skipped": skipped, "recorded_ms": T0 - ago_ms}
        save(Skip(job_id=job.id, reason=reason, **instants))
    with read_scope() as session:
        assert health.count_missed(session, now_ms=T0) == {job.job_group: 8}
