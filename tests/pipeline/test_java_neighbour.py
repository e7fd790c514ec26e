"""Java admin on the same database: it ends runs of ours without knowing their fires."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from app.database.engine import transact
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.log import JobLog
from app.settings.config import Config
from tests.pipeline.steps import ABSENT, Signal, claim_fires, open_run, resolving
from tests.support.factories import FIRST, T0, all_rows, make_fire, make_job, make_log, only_row
from tests.support.fake_executor import FakeExecutor
from tests.support.plan import every_database

pytestmark = every_database

#: SQL of a Java admin 2.4.1 in its callback, kill and clean-up
ENDINGS = {
    "success": "UPDATE xxl_job_log SET handle_time = trigger_time, handle_code = 200, handle_msg = 'ok'",
    "failure": "UPDATE xxl_job_log SET handle_time = trigger_time, handle_code = 500, handle_msg = 'no',"
    " alarm_status = 3",
    "kill": "UPDATE xxl_job_log SET handle_time = trigger_time, handle_code = 500, handle_msg = 'killed'",
    "clean-up": "DELETE FROM xxl_job_log",
}


def end_as_java(ending: str) -> bool:
    """End every run the way a Java admin does."""
    transact(lambda session: session.execute(text(ENDINGS[ending])))
    return True


@pytest.fixture
def executor() -> Iterator[FakeExecutor]:
    """A foreign executor that is idle and has no log of any run."""
    with FakeExecutor() as running:
        running.respond("log", ABSENT)
        yield running


@pytest.mark.parametrize("state", ["ACCEPTED", "UNKNOWN"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_that_has_ended_is_removed_before_its_executor_is_probed(
    database: str, config: Config, executor: FakeExecutor, ending: str, state: str
) -> None:
    open_run(executor.address, state)
    end_as_java(ending)
    before = [(log.trigger_msg, log.handle_code, log.alarm_status) for log in all_rows(JobLog)]
    with resolving(config) as probe:
        probe(15_000)
    assert all_rows(Fire) == all_rows(Alarm) == []
    assert executor.requests == []
    assert [(log.trigger_msg, log.handle_code, log.alarm_status) for log in all_rows(JobLog)] == before


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_that_ends_during_a_probe_is_not_redelivered(
    database: str, config: Config, executor: FakeExecutor, ending: str
) -> None:
    open_run(executor.address, probe_count=1)
    executor.respond("log", ABSENT.but(wait=(ended := Signal(lambda: end_as_java(ending)))))
    with resolving(config) as probe:
        probe(10_000)
        assert ended.called
        assert [fire.state for fire in all_rows(Fire)] in ([], ["UNKNOWN"]), (
            "not PENDING: it would be sent again"
        )
        probe(30_000)
    assert all_rows(Fire) == all_rows(Alarm) == []
    assert all("Resolver" not in (log.trigger_msg or "") for log in all_rows(JobLog))


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_sent_for_a_row_that_has_a_result(database: str, ending: str) -> None:
    """Both runs wait for redelivery: one by the resolver, one given back by its sender."""
    job = make_job()
    for attempt in (1, 0):
        make_fire(job, log_id=make_log(job, trigger_code=0).id, address=FIRST, attempt=attempt, epoch=1)
    other = make_fire(job)
    end_as_java(ending)
    (claimed,) = claim_fires(now_ms=T0).claims
    assert claimed.fire_id == other.id
    assert only_row(Fire).id == other.id
