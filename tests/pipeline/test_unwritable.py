"""Fires whose own data the database refuses: their runs end unsent."""

from app.database.engine import transact
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.log import JobLog
from app.pipeline.unwritable import UnwritableFire, refuse
from tests.pipeline.steps import claim_one
from tests.support.factories import T0, all_rows, make_fire, make_job, make_run, only_row
from tests.support.plan import every_database


@every_database
def test_a_fire_whose_data_is_refused_ends_with_alarm_and_retry(database: str) -> None:
    job = make_job(executor_fail_retry_count=2)
    fire = make_fire(job, executor_param="own", sharding_param="1/3", owner="one")
    refused = transact(
        lambda session: refuse(session, [UnwritableFire(fire.id, "too long\nfor x")], zone="UTC", now_ms=T0)
    )
    log, retry = only_row(JobLog), only_row(Fire)
    assert refused == [(job.id, log.id, "too long for x")]
    assert (log.trigger_code, log.handle_code, log.executor_fail_retry_count) == (500, 0, 2)
    assert (log.trigger_msg or "").splitlines()[-1] == (
        "Result: not sent, the database refuses the data of this run: too long for x"
    )
    assert (log.executor_address, log.executor_handler, log.executor_param) == (None, None, None)
    assert (retry.trigger_type, retry.executor_param, retry.sharding_param) == ("RETRY", "own", "1/3")
    assert only_row(Alarm).log_id == log.id


def test_a_fire_that_was_claimed_meanwhile_goes_on(database: str) -> None:
    fire = make_fire(make_job())
    claim_one()
    assert (
        transact(lambda session: refuse(session, [UnwritableFire(fire.id, "x")], zone="UTC", now_ms=T0)) == []
    )
    assert only_row(Fire).state == "SENDING"


def test_a_run_that_may_have_been_sent_before_becomes_unresolved(database: str) -> None:
    make_run(make_job(), state="PENDING", log={"trigger_code": 0})
    fire = only_row(Fire)
    transact(lambda session: refuse(session, [UnwritableFire(fire.id, "x")], zone="UTC", now_ms=T0))
    assert (only_row(JobLog).trigger_code, all_rows(Fire)) == (504, [])
