"""Runs around a run, in the history of its job."""

from app.db import read_scope
from app.domain.trigger_report import format_instant
from app.models.audit import AuditEntry
from app.store import around_runs
from tests.factories import T0, make_fire, make_job, make_log, save


def test_neighbours_are_of_the_same_job_in_order_of_time_and_id(database: str) -> None:
    job = make_job()
    make_log(make_job(), trigger_time=T0 + 1_000, handle_code=200)
    late = make_log(job, trigger_time=T0 + 5_000)
    runs = [
        make_log(job, trigger_time=T0 + ms, handle_code=code)
        for ms, code in ((0, 200), (0, 500), (2_000, 502))
    ]
    ordered = [*runs, late]
    with read_scope() as session:
        previous = [around_runs.find_previous(session, log) for log in ordered]
        following = [around_runs.find_next(session, log) for log in ordered]
        successes = [around_runs.find_previous_success(session, log) for log in ordered]
    ids = [log.id for log in ordered]
    assert [found and found.id for found in previous] == [None, *ids[:-1]]
    assert [found and found.id for found in following] == [*ids[1:], None]
    assert [found and found.id for found in successes] == [None, ids[0], ids[0], ids[0]]


def test_a_fire_leads_to_its_run_also_as_the_first_shard(database: str) -> None:
    job = make_job()
    make_fire(job, fire_key="manual:1-a")
    make_fire(job, fire_key="manual:1-b:0", log_id=7)
    make_fire(job, fire_key="manual:1-b:1", log_id=8)
    with read_scope() as session:
        found = [around_runs.find_fire(session, f"manual:1-{name}") for name in "abc"]
    assert found == [(None,), (7,), None]


def test_manual_runs_and_their_user_are_found_by_the_instant(database: str) -> None:
    job = make_job()
    trace = f"Trigger: MANUAL, due {format_instant(T0 + 250, 'UTC')}"
    for ms, kind in ((-1_000, "MANUAL"), (0, "CRON"), (0, "MANUAL"), (3_000, "MANUAL")):
        make_log(job, trigger_time=T0 + ms, trigger_type=kind, trigger_msg=trace)
    for at_ms, object_id, action in ((T0 + 250, job.id, "job.trigger"), (T0 + 250, 99, "job.trigger")):
        name = "ann" if object_id == job.id else "eve"
        save(AuditEntry(at_ms=at_ms, username=name, action=action, object_type="job", object_id=object_id))
    with read_scope() as session:
        found = around_runs.find_manual_since(session, job.id, T0 + 250)
        users = [around_runs.find_trigger_user(session, job.id, T0 + ms) for ms in (250, 251)]
    assert [(log_id, text) for log_id, text in found] == [(found[0][0], trace), (found[0][0] + 1, trace)]
    assert users == ["ann", ""]
