"""Transactions of one statement."""

from pathlib import Path

import pytest
from sqlalchemy import NullPool, bindparam, create_engine, select, text, update
from sqlalchemy.exc import DBAPIError, OperationalError

from app.database import promotion_mark, single_statement
from app.database.engine import bound_engine, read_scope, session_scope
from app.domain.enums import FireState
from app.models.base import EpochMillis
from app.models.fire import Fire
from app.models.log import JobLog
from tests.support.factories import T0, all_rows, make_fire, make_job, make_log

_TABLE = Fire.metadata.tables["xxl_job_fire"]
_LATER = (
    select(Fire.id, Fire.owner)
    .where(Fire.state.in_([FireState.PENDING, FireState.SENDING]), Fire.due_time > bindparam("at_ms"))
    .order_by(Fire.id)
    .limit(bindparam("most"))
)
_GIVE = update(_TABLE).where(_TABLE.c.due_time > bindparam("at_ms")).values(owner=bindparam("to_node"))
#: take a table as a change of its columns does; an error if a transaction that has read it is open
_LOCK_TABLE = {
    "mysql": ("SET SESSION lock_wait_timeout = 1", "LOCK TABLES xxl_job_fire WRITE"),
    "postgresql": ("LOCK TABLE xxl_job_fire IN ACCESS EXCLUSIVE MODE NOWAIT",),
}
_TAKE_ID = update(_TABLE).where(_TABLE.c.id != bindparam("given")).values(id=bindparam("given"))


@pytest.fixture
def fires(database: str) -> list[Fire]:
    job = make_job()
    states = ("PENDING", "UNKNOWN", "SENDING", "PENDING")
    return [make_fire(job, due_time=T0 + place, state=state) for place, state in enumerate(states)]


def test_a_statement_reads_what_is_committed(fires: list[Fire]) -> None:
    ids = [fires[2].id, fires[3].id]
    assert [tuple(row) for row in single_statement.read(_LATER, {"at_ms": T0, "most": 5})] == [
        (id_, "") for id_ in ids
    ]
    assert [row[0] for row in single_statement.read(_LATER, {"at_ms": T0, "most": 1})] == ids[:1]
    assert not single_statement.read(_LATER, {"at_ms": T0 + 3, "most": 5})


@pytest.mark.databases("mariadb", "postgresql")
def test_a_statement_that_reads_leaves_no_transaction_open(fires: list[Fire]) -> None:
    """An upgrade of the schema would wait for it, and everything else for the upgrade."""
    assert single_statement.read(_LATER, {"at_ms": T0, "most": 5})
    with create_engine(bound_engine().url, poolclass=NullPool).connect() as other:
        for statement in _LOCK_TABLE[bound_engine().dialect.name]:
            other.exec_driver_sql(statement)


def test_a_statement_is_committed_and_counts_its_rows(fires: list[Fire]) -> None:
    assert single_statement.write(_GIVE, {"at_ms": T0 + 1, "to_node": "one"}) == 2
    assert single_statement.write(_GIVE, {"at_ms": T0 + 3, "to_node": "two"}) == 0
    assert [fire.owner for fire in all_rows(Fire)] == ["", "", "one", "one"]


def test_a_statement_that_fails_leaves_nothing_locked(fires: list[Fire]) -> None:
    with pytest.raises(DBAPIError, match="xxl_job_fire"):
        single_statement.write(_TAKE_ID, {"given": fires[0].id})
    assert single_statement.write(_GIVE, {"at_ms": T0 + 2, "to_node": "one"}) == 1


def test_a_slow_statement_is_logged(
    fires: list[Fire], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.database.statement_times.limit.slow_s", -1.0)
    single_statement.read(_LATER, {"at_ms": T0, "most": 5})
    assert "statement slow took_ms=" in caplog.text
    assert "FROM xxl_job_fire" in caplog.text


def test_a_statement_that_fails_is_timed(
    fires: list[Fire], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.database.statement_times.limit.slow_s", -1.0)
    with pytest.raises(DBAPIError, match="xxl_job_fire"):
        single_statement.write(_TAKE_ID, {"given": fires[0].id})
    assert "sql=UPDATE xxl_job_fire SET id=" in caplog.text


@pytest.mark.databases("sqlite")
def test_a_file_that_cannot_be_opened_is_a_database_error(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/none/file")
    monkeypatch.setattr(single_statement, "bound_engine", lambda: engine)
    with pytest.raises(OperationalError, match="unable to open"):
        single_statement.read(_LATER, {"at_ms": T0, "most": 5})
    with pytest.raises(OperationalError, match="unable to open"):
        single_statement.write(_GIVE, {"at_ms": T0, "to_node": "one"})


@pytest.mark.databases("sqlite")
def test_a_database_that_has_moved_is_neither_read_nor_written(
    fires: list[Fire], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(promotion_mark, "_process", promotion_mark._Process())
    promotion_mark.when_moved(lambda: seen.append("moved"))
    with session_scope() as session:
        session.execute(text(f"PRAGMA user_version = {promotion_mark.MOVED}"))
    with pytest.raises(DBAPIError, match="moved to another one"):
        single_statement.read(_LATER, {"at_ms": T0, "most": 5})
    assert seen == ["moved", "moved"]  # the second time it is in the new one, unless that failed
    with pytest.raises(DBAPIError, match="moved to another one"):
        single_statement.write(_GIVE, {"at_ms": T0, "to_node": "one"})
    with pytest.raises(DBAPIError, match="moved to another one"), read_scope() as session:
        session.scalars(select(Fire)).all()


def test_a_constant_is_converted_like_a_parameter(database: str) -> None:
    make_log(make_job(), trigger_time=T0)
    at = select(JobLog.trigger_time).where(JobLog.trigger_time >= T0)
    before = select(JobLog.trigger_time).where(JobLog.trigger_time < T0)
    assert [row[0] for row in single_statement.read(at, {})] == [T0]
    assert not single_statement.read(before, {})


def test_a_parameter_may_be_used_twice(database: str) -> None:
    make_log(make_job(), trigger_time=T0)
    at = bindparam("at", type_=EpochMillis)
    found = select(JobLog.trigger_time).where(JobLog.trigger_time >= at, JobLog.trigger_time <= at)
    assert [row[0] for row in single_statement.read(found, {"at": T0})] == [T0]


def test_a_parameter_that_is_missing_is_an_error(fires: list[Fire]) -> None:
    with pytest.raises(KeyError, match="most"):
        single_statement.read(_LATER, {"at_ms": T0})
