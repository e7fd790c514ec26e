"""Claims that the database refuses because of the data of their own fire, in a running dispatcher."""

import asyncio
import logging
from unittest.mock import Mock

import pytest
from sqlalchemy.exc import DataError

from app.database.batch_writer import BatchWriter
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.log import JobLog
from app.settings.config import Config
from tests.pipeline.steps import as_due
from tests.support.eventually import eventually
from tests.support.factories import all_rows, make_job, only_row
from tests.support.fake_executor import FakeExecutor
from tests.support.narrowed import changed_column
from tests.workers.dispatching import await_states, dispatching, fires_of
from workers.dispatch.failed_claims import CLAIMS_MAX, FailedClaims

#: of an executor on loopback: ``http://127.0.0.1:12345/``
ADDRESS_LENGTH = 23


pytestmark = pytest.mark.databases("mariadb", "postgresql")  # SQLite limits no text


def test_a_fire_whose_data_is_refused_ends_after_some_claims(
    database: str, config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    narrow, back = f"varchar({ADDRESS_LENGTH})", "varchar(255)"
    with FakeExecutor() as executor, changed_column("xxl_job_fire", "address", narrow, back=back):
        good, bad = make_job(addresses=executor.address), make_job(addresses=f"{executor.address}path/")
        with dispatching(config) as dispatcher:
            dispatcher.offer(as_due([*fires_of(good, 3), *fires_of(bad)]))
            await_states({"ACCEPTED": 3})
            eventually(lambda: "run not started" in caplog.text)
        assert {fire.job_id for fire in all_rows(Fire)} == {good.id}
        run = only_row(JobLog, job_id=bad.id)
        assert (run.trigger_code, run.alarm_status) == (500, -1)
        assert "the database refuses the data of this run: " in (run.trigger_msg or "")
        assert only_row(Alarm).log_id == run.id
        assert len(executor.requests) == 3
    (line,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.getMessage().startswith(f"run not started job_id={bad.id} log_id={run.id} database_error=")
    assert (line.exc_info, CLAIMS_MAX) == (None, 3)


def test_an_address_longer_than_its_column_is_refused_at_once(database: str, config: Config) -> None:
    job = make_job(addresses=f"http://127.0.0.1:9999/{'a' * 300}/")
    with dispatching(config) as dispatcher:
        dispatcher.offer(as_due(fires_of(job)))
        eventually(lambda: [log.trigger_code for log in all_rows(JobLog)] == [500])
    assert "longer than 255" in (only_row(JobLog).trigger_msg or "")
    assert only_row(Alarm).log_id == only_row(JobLog).id


def test_a_run_that_cannot_be_ended_either_is_logged_with_its_job(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise DataError("UPDATE", None, ValueError("too long"))

    monkeypatch.setattr("workers.dispatch.failed_claims.refuse", fail)
    writer = BatchWriter("test")
    failed = FailedClaims(Mock(**{"back_off.return_value": CLAIMS_MAX}), writer, "UTC")
    failed.observe(Mock(id=7, job_id=3), DataError("UPDATE", None, ValueError("too long")))
    asyncio.run(failed.end())
    writer.close()
    assert caplog.messages == ["run not ended job_id=3 fire_id=7 reason='too long'"]
