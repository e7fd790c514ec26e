"""Transactions: commit, rollback, retry after a deadlock, IMMEDIATE on SQLite, missing databases."""

import gc
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, make_url, select, text, update
from sqlalchemy.exc import DBAPIError, OperationalError, StatementError
from sqlalchemy.orm import Session

from app.database import single_statement
from app.database.connections import sqlite
from app.database.connections.sqlite import CHECKPOINT_PAGES, SPILL_PAGES, STATEMENTS_KEPT
from app.database.dialects.choice import dialect_of_url
from app.database.engine import (
    ATTEMPTS,
    REPEAT_S,
    affected,
    bind_engine,
    bound_engine,
    is_transient,
    read_scope,
    session_scope,
    transact,
    unbind_engine,
)
from app.database.opening import check_database
from app.errors import NotConfigured
from app.models.job import Job
from app.settings.config import Config
from tests.pipeline.steps import run_concurrently
from tests.support.database import Lost
from tests.support.factories import all_rows, make_job, only_row


def rename(session: Session, job_id: int, name: str) -> int:
    return affected(session, update(Job).where(Job.id == job_id).values(job_desc=name))


def test_a_scope_commits_at_its_end_and_rolls_back_on_an_error(database: str) -> None:
    job = make_job(job_desc="before")
    with session_scope() as session:
        assert rename(session, job.id, "after") == 1
        assert rename(session, 4711, "nobody") == 0

    def fail() -> None:
        with session_scope() as session:
            rename(session, job.id, "never")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert only_row(Job).job_desc == "after"


def test_a_reader_does_not_wait_for_a_writer_and_sees_committed_data(database: str) -> None:
    job = make_job(job_desc="before")
    with session_scope() as session:
        rename(session, job.id, "after")
        with read_scope() as reader:
            assert reader.get_one(Job, job.id).job_desc == "before"
    assert only_row(Job).job_desc == "after"


def test_concurrent_writers_lose_no_update(database: str) -> None:
    job = make_job(executor_timeout=0)

    def count_up() -> None:
        for _ in range(10):
            transact(
                lambda session: affected(
                    session,
                    update(Job).where(Job.id == job.id).values(executor_timeout=Job.executor_timeout + 1),
                )
            )

    run_concurrently(*(count_up for _ in range(4)))
    assert only_row(Job).executor_timeout == 40


def test_a_lost_deadlock_is_retried(database: str, caplog: pytest.LogCaptureFixture) -> None:
    if database.startswith("sqlite"):
        pytest.skip("SQLite has one writer at a time: no deadlock")
    first, second = make_job(), make_job()
    meet = threading.Barrier(2, timeout=10)

    def work(here: int, there: int, name: str) -> None:
        attempts = []

        def rename_both(session: Session) -> None:
            rename(session, here, name)
            attempts.append(name)
            if len(attempts) == 1:
                meet.wait()
            rename(session, there, name)

        transact(rename_both)

    run_concurrently(lambda: work(first.id, second.id, "one"), lambda: work(second.id, first.id, "two"))
    names = {job.job_desc for job in all_rows(Job)}
    assert len(names) == 1, "one transaction after the other, never half of each"
    assert "transaction repeated attempt=1" in caplog.text


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (Lost(1213, "Deadlock found"), True),
        (Lost(1205, "Lock wait timeout"), True),
        (Lost(1020, "Record has changed"), True),
        (Lost(1062, "Duplicate entry"), False),
        (Lost(2013, "Lost connection"), False),
        (Lost("x", sqlstate="40P01"), True),
        (Lost("x", sqlstate="40001"), True),
        (Lost("x", sqlstate="55P03"), True),
        (Lost("x", sqlstate="23505"), False),
        (Lost("database is locked"), False),
        (Lost(), False),
    ],
)
def test_transient_errors_are_recognized(error: Lost, transient: bool) -> None:
    assert is_transient(DBAPIError("SELECT", {}, error)) is transient


@pytest.mark.parametrize(("code", "attempts"), [(1213, ATTEMPTS), (1062, 1)])
def test_attempts_are_limited(database: str, code: int, attempts: int) -> None:
    made = []

    def work(_session: Session) -> None:
        made.append(1)
        raise OperationalError("UPDATE", {}, Lost(code, "x"))

    with pytest.raises(OperationalError):
        transact(work)
    assert len(made) == attempts


@pytest.mark.parametrize(("code", "pauses"), [(1213, ATTEMPTS - 1), (1062, 0)])
def test_a_random_pause_that_grows_precedes_each_repetition(
    database: str, monkeypatch: pytest.MonkeyPatch, code: int, pauses: int
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("app.database.engine.pause", waited.append)

    def work(_session: Session) -> None:
        raise OperationalError("UPDATE", {}, Lost(code, "x"))

    with pytest.raises(OperationalError):
        transact(work)
    assert len(set(waited)) == len(waited) == pauses
    assert all(0 <= wait_s <= REPEAT_S * 2**number for number, wait_s in enumerate(waited))


def test_sqlite_is_set_up_for_several_processes(database: str, database_kind: str) -> None:
    if database_kind != "sqlite":
        pytest.skip("about SQLite")
    with session_scope() as session:
        pragmas = {
            name: session.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "synchronous", "busy_timeout", "wal_autocheckpoint", "cache_spill")
        }
    assert pragmas == {
        "journal_mode": "wal",
        "synchronous": 2,
        "busy_timeout": 5000,
        "wal_autocheckpoint": CHECKPOINT_PAGES,
        "cache_spill": SPILL_PAGES,
    }


def test_a_connection_of_sqlite_keeps_few_prepared_statements(database: str, database_kind: str) -> None:
    if database_kind != "sqlite":
        pytest.skip("about SQLite")

    def count_statements() -> int:
        return sum(
            type(found).__name__ == "Statement" and str(type(found).__module__) == "sqlite3"
            for found in gc.get_objects()
        )

    with read_scope() as session:
        before = count_statements()
        for length in range(1, 101):
            session.execute(text(f"SELECT 1 WHERE 1 IN ({', '.join('1' * length)})"))
        assert count_statements() - before <= STATEMENTS_KEPT


def test_work_in_sequence_stays_on_one_connection_of_sqlite(database: str, database_kind: str) -> None:
    if database_kind != "sqlite":
        pytest.skip("about SQLite")
    with read_scope() as first, read_scope() as second:
        assert first.connection() is not second.connection()
    used = set()
    for _ in range(3):
        with read_scope() as session:
            used.add(session.connection().connection.driver_connection)
    assert len(used) == 1


#: writes for 20 ms, repeatedly with 3 ms between
BUSY_NEIGHBOUR = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=5)
print("writing", flush=True)
while True:
    connection.execute("BEGIN IMMEDIATE")
    time.sleep(0.02)
    connection.execute("COMMIT")
    time.sleep(0.003)
"""


def test_a_busy_neighbour_starves_no_writer(database: str, database_kind: str) -> None:
    """SQLite's own busy handler sleeps up to 100 ms: it hit the gap once in seconds, or never."""
    if database_kind != "sqlite":
        pytest.skip("about SQLite")
    job = make_job(executor_timeout=0)
    file = make_url(database).database or ""
    with subprocess.Popen(
        [sys.executable, "-c", BUSY_NEIGHBOUR, file], stdout=subprocess.PIPE, text=True
    ) as neighbour:
        try:
            assert neighbour.stdout is not None
            assert neighbour.stdout.readline() == "writing\n"
            began = time.monotonic()
            for _ in range(20):
                transact(
                    lambda session: affected(
                        session, update(Job).where(Job.id == job.id).values(executor_param="written")
                    )
                )
            took_s = time.monotonic() - began
        finally:
            neighbour.kill()
    assert took_s < 20 * 0.25


def test_a_writer_that_times_out_reports_a_locked_database(
    database: str, database_kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if database_kind != "sqlite":
        pytest.skip("about SQLite")
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 50)
    blocker = sqlite3.connect(make_url(database).database or "", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(OperationalError, match="database is locked"), session_scope() as session:
        session.connection()
    blocker.close()
    with session_scope() as session:
        assert session.execute(text("PRAGMA busy_timeout")).scalar() == 50


def test_a_second_writer_waits_at_its_beginning(database: str) -> None:
    """On SQLite a transaction that reads first and then writes would fail in the middle."""
    job = make_job(job_desc="0")

    def count_up() -> None:
        for _ in range(10):
            with session_scope() as session:
                found = session.get_one(Job, job.id, with_for_update=True)
                found.job_desc = str(int(found.job_desc) + 1)

    run_concurrently(count_up, count_up, count_up)
    assert only_row(Job).job_desc == "30"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("sqlite:////nowhere/at/all.db", "there is no such file; for a new installation, run: "),
        (
            "mysql+pymysql://root:secret-word@127.0.0.1:1/x",
            "mysql+pymysql://root:***@127.0.0.1:1/x cannot be opened",
        ),
        (
            "postgresql+psycopg://u:secret-word@127.0.0.1:1/x",
            "postgresql+psycopg://u:***@127.0.0.1:1/x cannot be opened",
        ),
    ],
)
def test_a_missing_database_is_reported_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(NotConfigured) as caught:
        check_database(Config(database_url=url))
    assert reason in str(caught.value)
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mysql+pymysql://u:secret-word@127.0.0.1:1/x?useUnicode=true", "'useUnicode'"),
        ("mysql+pymysql://u:secret-word@127.0.0.1:1/x?ssl_ca=/nowhere/ca.pem", "No such file or directory"),
        ("mysql+pymysql://u:secret-word@127.0.0.1:1/x?connect_timeout=soon", "'soon'"),
        ("mysql+pymysql://u:secret-word@127.0.0.1:1/x?charset=none", "charset"),
        ("postgresql+psycopg://u:secret-word@127.0.0.1:1/x?useUnicode=true", "useUnicode"),
    ],
)
def test_a_wrong_parameter_of_the_driver_is_reported_in_one_line(url: str, reason: str) -> None:
    with pytest.raises(NotConfigured) as caught:
        check_database(Config(database_url=url))
    message = str(caught.value)
    assert message.startswith("XXL_JOB_DATABASE_URL: ")
    assert reason in message
    assert "secret-word" not in message
    assert "\n" not in message


@pytest.mark.databases("postgresql")
@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding_is_refused(empty_database: str, encoding: str) -> None:
    url = make_url(empty_database)
    other = url.set(database=f"{url.database}_other")
    with create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool).connect() as connection:
        connection.execute(text(f"CREATE DATABASE {other.database} ENCODING '{encoding}' TEMPLATE template0"))
        with pytest.raises(NotConfigured, match=rf"encoding {encoding}, expected UTF8; .*ENCODING 'UTF8'"):
            check_database(Config(database_url=other.render_as_string(hide_password=False)))


def test_an_available_database_is_accepted(config: Config) -> None:
    check_database(config)


def test_binding_again_closes_open_connections(database: str, config: Config, tmp_path: Path) -> None:
    first = bind_engine(config)
    with session_scope() as session:
        session.execute(text("SELECT 1"))
    single_statement.read(select(Job.id), {})
    second = bind_engine(replace(config, time_zone="UTC"))
    assert first is not second
    assert first.pool.checkedin() == 0  # type: ignore[attr-defined]
    assert bind_engine(config, second) is second


def test_a_process_has_one_engine_for_the_same_settings(database: str, config: Config) -> None:
    first = bind_engine(config)
    assert bind_engine(replace(config)) is first
    assert bound_engine() is first
    unbind_engine()
    assert bind_engine(config) is not first, "its connections are closed"


def test_a_slow_statement_is_logged(
    database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.database.statement_times.limit.slow_s", -1.0)
    make_job(job_desc="a secret of a customer")
    assert "statement slow took_ms=" in caplog.text
    assert "INSERT INTO xxl_job_info" in caplog.text
    assert "a secret of a customer" not in caplog.text


def test_a_statement_that_fails_is_timed_once(
    database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.database.statement_times.limit.slow_s", -1.0)
    with pytest.raises(DBAPIError), session_scope() as session:
        session.execute(text("SELECT 1 FROM no_such_table"))
    assert caplog.text.count("statement slow") == caplog.text.count("sql=SELECT 1 FROM no_such_table") == 1


def test_a_statement_that_was_not_sent_is_not_timed(
    database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session_scope() as session:
        session.execute(text("SELECT 1"))
        monkeypatch.setattr("app.database.statement_times.limit.slow_s", -1.0)
        with pytest.raises(StatementError, match="value is required"):
            session.execute(text("SELECT :value"))
    assert "statement slow" not in caplog.text


def test_the_text_of_an_error_has_no_values(database: str) -> None:
    wrong = text("SELECT no_such_column FROM xxl_job_user WHERE password = :value")
    with pytest.raises(DBAPIError, match="no_such_column") as error, session_scope() as session:
        session.execute(wrong, {"value": "canary-of-a-password"})
    assert "canary-of-a-password" not in str(error.value)


@pytest.mark.databases("mariadb")
def test_dates_of_mysql_are_read_as_by_its_driver(database: str) -> None:
    own = create_engine(database)
    with read_scope() as session, own.connect() as theirs:
        for value in ("2024-05-01 02:03:04", "2024-05-01 02:03:04.5"):
            query = text(f"SELECT CAST('{value}' AS DATETIME(1)), NULL")
            assert session.execute(query).one() == theirs.execute(query).one()
    own.dispose()


@pytest.mark.databases("postgresql")
@pytest.mark.usefixtures("database")
def test_a_server_that_is_gone_without_a_word_is_noticed() -> None:
    with read_scope() as session:
        connection: Any = session.connection().connection.driver_connection
        options = connection.info.get_parameters()
    assert (options["keepalives_idle"], options["tcp_user_timeout"]) == ("30", "60000")


def test_an_error_of_a_check_is_not_taken_for_a_parameter_of_the_url(
    database: str, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_dialect: object, _connection: object) -> None:
        raise ValueError("a version of another kind")

    monkeypatch.setattr(type(dialect_of_url(config.database_url)), "require_usable", fail)
    with pytest.raises(ValueError, match="^a version of another kind"):
        check_database(config)
