"""Runs around a run, in the history of its job."""

from app.database.engine import read_scope
from app.domain.runs.trigger_keys import key_of, new_trigger
from app.models.audit import AuditEntry
from app.store.runs import neighbours
from tests.support.factories import T0, make_fire, make_job, make_log, save


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
        previous = [neighbours.find_previous(session, log) for log in ordered]
        following = [neighbours.find_next(session, log) for log in ordered]
        successes = [neighbours.find_previous_success(session, log) for log in ordered]
    ids = [log.id for log in ordered]
    assert [found and found.id for found in previous] == [None, *ids[:-1]]
    assert [found and found.id for found in following] == [*ids[1:], None]
    assert [found and found.id for found in successes] == [None, ids[0], ids[0], ids[0]]


def test_a_trigger_leads_to_its_waiting_fires_and_then_to_its_runs(database: str) -> None:
    job, other = make_job(), make_job()
    mine, twin = new_trigger(job.id, T0), new_trigger(job.id, T0)
    for trigger, shard in ((mine, ":0"), (mine, ":1"), (twin, "")):
        key = key_of(trigger, is_planned=False, request="0f2c4b6a") + shard
        make_fire(job, fire_key=key, trigger_type="MANUAL", due_time=T0)
    make_fire(job, fire_key="cron:1:1")
    taken = new_trigger(job.id, T0)
    make_fire(job, fire_key=key_of(taken, is_planned=False, request=""), log_id=7, state="SENDING")
    runs = [make_log(job, trigger_key=mine.number).id for _ in range(2)]
    make_log(other, trigger_key=mine.number)
    make_log(job, trigger_key=twin.number)
    moved = mine._replace(due_ms=T0 - 5)
    with read_scope() as session:
        waiting = [neighbours.find_waiting(session, trigger) for trigger in (mine, twin, taken, moved)]
        assert [len(fires) for fires in waiting] == [2, 1, 0, 0]
        assert neighbours.find_triggered(session, mine) == runs
        assert neighbours.find_triggered(session, taken) == []


def test_the_user_of_a_trigger_is_found_by_the_instant(database: str) -> None:
    job = make_job()
    for at_ms, object_id, action in ((T0 + 250, job.id, "job.trigger"), (T0 + 250, 99, "job.trigger")):
        name = "ann" if object_id == job.id else "eve"
        save(AuditEntry(at_ms=at_ms, username=name, action=action, object_type="job", object_id=object_id))
    with read_scope() as session:
        users = [neighbours.find_trigger_user(session, job.id, T0 + ms) for ms in (250, 251)]
    assert users == ["ann", ""]
