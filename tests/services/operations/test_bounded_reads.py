"""Bounded reads: a database that hangs holds neither the caller nor a second thread."""

from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session

from app.database.engine import bind_engine
from app.database.faults import Fault, fault_of
from app.services.operations.bounded_reads import BoundedReader
from app.settings.config import Config
from app.store.nodes import health
from tests.support.eventually import eventually
from tests.support.silent_database import silent_database


def answers(reader: BoundedReader) -> bool:
    try:
        reader.read(health.ping)
    except OperationalError:
        return False
    return True


def test_what_is_read_is_returned(database: str) -> None:
    reader = BoundedReader()
    assert [reader.read(lambda session: session.scalar(text("SELECT 7"))) for _ in range(2)] == [7, 7]


def test_an_error_is_raised_by_the_caller(database: str) -> None:
    def wrong(session: Session) -> None:
        session.execute(text("SELECT 1 FROM no_such_table"))

    reader = BoundedReader()
    with pytest.raises(DBAPIError, match="no_such_table"):
        reader.read(wrong)
    assert answers(reader)


def test_a_database_that_hangs_is_away_and_asked_by_one_thread(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.operations.bounded_reads.ANSWER_S", 0.01)
    reader = BoundedReader()
    with silent_database() as silent:
        bind_engine(replace(config, database_url=silent.url))
        for _ in range(3):
            with pytest.raises(OperationalError, match=r"no answer within 0\.01 s") as error:
                reader.read(health.ping)
            assert fault_of(error.value) is Fault.UNAVAILABLE
        assert eventually(silent.count_connections) == 1
    monkeypatch.undo()
    bind_engine(config)
    assert eventually(lambda: answers(reader)), "once the first read has ended"
