"""Rounds that are decided anew, instants that wait for rounds since the last one, and what is gone meanwhile.

Source: docs/reference/rounds.md.
"""

from app.database.engine import session_scope
from app.models.code import CodeObject
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.round import Round
from tests.pipeline.round_steps import claim_due, follow, following, look, outcomes, run, states
from tests.pipeline.steps import call_back
from tests.support.factories import T0, all_rows, make_fire, make_job, only_row, remove, save
from tests.support.plan import every_database

pytestmark = every_database


def test_a_round_decided_anew_starts_what_was_skipped_also_when_it_is_complete_later(database: str) -> None:
    first, second = make_job(), make_job()
    last = follow(first, second, job=make_job(schedule_type="CRON", schedule_conf="0 0 * * * ?"))
    make_fire(last, due_time=T0)
    claim_due()
    failed_id = run(first, 500)
    look()
    assert not all_rows(Fire, job_id=last.id)
    run(first, trigger_type="MANUAL", repeats_log_id=failed_id, logical_ms=T0)
    assert states(last) == [(f"t:{T0}", "open", "")]
    run(second)
    (fire,) = following(last)
    assert fire.logical_ms == T0


def test_instants_that_wait_since_the_last_round_wait_for_one_each(database: str) -> None:
    first = make_job()
    last = follow(first, round="since_last", job=make_job(schedule_type="CRON", schedule_conf="0 0 * * * ?"))
    for number in range(3):
        make_fire(last, due_time=T0 + number * 1_000)
    assert not claim_due(T0 + 5_000)
    for number in range(3):
        run(first, now_ms=T0 + 6_000, logical_ms=T0 + 5_000 + number)
        look(T0 + 7_000)
        assert [each.due_ms for each in claim_due(T0 + 7_000)] == [T0 + number * 1_000]


def test_two_instants_at_once_do_not_share_a_started_round_since_the_last_one(database: str) -> None:
    first = make_job()
    last = follow(first, round="since_last", job=make_job(schedule_type="CRON", schedule_conf="0 0 * * * ?"))
    run(first, logical_ms=T0 - 1_000)
    for number in range(2):
        make_fire(last, due_time=T0 + number * 1_000)
    assert [each.due_ms for each in claim_due(T0 + 5_000)] == [T0]
    look(T0 + 5_000)
    assert not claim_due(T0 + 6_000)


def test_a_deleted_predecessor_does_not_end_by_a_retry(database: str) -> None:
    first, second = make_job(executor_fail_retry_count=1), make_job()
    last = follow(first, second)
    run(first, 500)
    assert outcomes(last) == {(first.id, 0): "retrying"}
    remove(first)
    with session_scope() as session:
        session.get_one(Round, only_row(Round).id).due_ms = T0
    look()
    assert states(last) == [(f"t:{T0}", "not_run", "predecessor")]


def test_the_instants_of_a_gate_that_were_skipped_arrive_not_its_round(database: str) -> None:
    first, beside = make_job(), make_job()
    gate = follow(first, round="day", job=make_job(schedule_type="CRON", schedule_conf="0 0 * * * ?"))
    last = follow(gate, beside)
    run(first, 500, logical_ms=T0 - 4_000)
    look()
    run(beside, logical_ms=T0)
    assert states(last) == [(f"t:{T0}", "open", "")]
    make_fire(gate, due_time=T0)
    claim_due()
    look()
    assert not all_rows(Fire)
    assert states(last) == [(f"t:{T0}", "open", "")]
    look()
    assert states(last) == [(f"t:{T0}", "not_run", "predecessor")]


def test_an_unknown_zone_of_a_job_that_follows_holds_up_no_result(database: str) -> None:
    first = make_job()
    last = follow(first, round="day", job=make_job(schedule_type="NONE", time_zone="No/Where"))
    run(first)
    assert len(following(last)) == 1


def test_a_key_that_two_predecessors_have_names_neither_of_them(database: str) -> None:
    first, second, third = make_job(), make_job(), make_job()
    for job, key in ((first, "demo/load"), (second, "other/load"), (third, f"demo/{first.id}")):
        save(CodeObject(kind="job", managed_key=key, object_id=job.id, fields="{}"))
    last = follow(first, second, third)
    with session_scope() as session:
        job = session.get_one(Job, last.id)
        job.fill_parameter, job.executor_param = 1, f"${{parents.{first.id}.result}} ${{parents.load.result}}"
    for number, each in enumerate((first, second, third)):
        make_fire(each)
        (claimed,) = claim_due()
        call_back(claimed.log_id, 200, f"result {number}")
    assert not claim_due()
    assert only_row(JobLog, job_id=last.id).not_started == "parameter"
    with session_scope() as session:
        session.get_one(Job, last.id).executor_param = f"${{parents.{first.id}.result}}"
    make_fire(last, trigger_type="MANUAL", round_id=only_row(Round).id)
    (claimed,) = claim_due()
    assert claimed.request.executor_params == "result 0"
