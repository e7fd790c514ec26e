"""Connections of a database server: what the pool does not ask it again."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import NullPool, bindparam, create_engine, func, make_url, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session

from app.database import single_statement
from app.database.connections import server_checks, servers
from app.database.engine import (
    bind_engine,
    bound_engine,
    make_engine,
    read_scope,
    session_scope,
    transact,
    unbind_engine,
)
from app.database.faults import AWAY, Fault, fault_of
from app.database.list_parameters import Texts
from app.database.opening import check_database
from app.database.sql import direct
from app.errors import NotConfigured
from app.models.fire import Fire
from app.models.job import Job
from app.settings.config import Config
from bench.faults.proxy import DelayedLink
from tests.acceptance.programs import free_port
from tests.support.eventually import eventually
from tests.support.factories import all_rows, make_fire, make_job

pytestmark = pytest.mark.databases("mariadb", "postgresql")

_ID = {"mysql": func.connection_id(), "postgresql": func.pg_backend_pid()}
_KILL = {"mysql": "KILL {}", "postgresql": "SELECT pg_terminate_backend({}, 5000)"}


def test_a_server_that_is_too_old_is_named_at_the_start(
    config: Config, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_database(config)
    for oldest in server_checks._OLDEST:
        monkeypatch.setitem(server_checks._OLDEST, oldest, (99, 1))
    with pytest.raises(NotConfigured, match=r"XXL_JOB_DATABASE_URL: .* is too old, expected 99\.1 or later"):
        check_database(config)


def connection_id(session: Session) -> int:
    """Return the server's number of a session's connection."""
    return int(session.scalar(select(_ID[bound_engine().dialect.name])) or 0)


@pytest.fixture
def pings(database: str, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Collect the checks of connections."""
    done: list[object] = []
    dialect = bound_engine().dialect
    ping = dialect.do_ping

    def note(connection: object) -> bool:
        done.append(connection)
        return ping(connection)  # type: ignore[arg-type]

    monkeypatch.setattr(dialect, "do_ping", note)
    return done


def end_connection(number: int) -> None:
    """End a connection as a restart of the server does; returns when it has ended."""
    engine = create_engine(bound_engine().url, poolclass=NullPool)
    with engine.connect() as other:
        other.exec_driver_sql(_KILL[engine.dialect.name].format(number))
        if engine.dialect.name == "mysql":
            left = f"SELECT 1 FROM information_schema.processlist WHERE id = {number}"
            eventually(lambda: other.scalar(text(left)) is None)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no connection be checked, however slow the test is."""
    monkeypatch.setattr(servers, "CHECK_AFTER_S", 3_600.0)


def lose_pooled() -> None:
    """Lose the connection that will be used next."""
    with read_scope() as session:
        number = connection_id(session)
    end_connection(number)


def test_a_connection_used_a_moment_ago_is_not_checked(pings: list[object], unchecked: None) -> None:
    with read_scope() as session:
        session.scalar(text("SELECT 1"))
    pings.clear()
    with read_scope() as session:
        session.scalar(text("SELECT 1"))
    assert pings == []


def test_a_connection_that_was_not_used_for_a_while_is_checked(
    pings: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with read_scope() as session:
        session.scalar(text("SELECT 1"))
    pings.clear()
    later = time.monotonic() + servers.CHECK_AFTER_S + 1
    monkeypatch.setattr("app.database.connections.servers.time.monotonic", lambda: later)
    with read_scope() as session:
        session.scalar(text("SELECT 1"))
    assert len(pings) == 1


def test_a_transaction_is_repeated_on_a_new_connection_if_its_own_was_lost(
    database: str, unchecked: None
) -> None:
    job = make_job(job_desc="before")
    attempts: list[int] = []

    def rename(session: Session) -> None:
        attempts.append(1)
        if len(attempts) == 1:
            end_connection(connection_id(session))
        session.scalars(select(Job)).one().job_desc = "after"
        session.flush()

    transact(rename)
    assert len(attempts) == 2
    assert [(row.id, row.job_desc) for row in all_rows(Job)] == [(job.id, "after")]


def test_a_commit_without_an_answer_is_not_repeated(database: str) -> None:
    attempts: list[int] = []

    def work(session: Session) -> None:
        attempts.append(1)
        end_connection(connection_id(session))

    with pytest.raises(DBAPIError):
        transact(work)
    assert len(attempts) == 1


def test_a_connection_that_cannot_roll_back_is_replaced_without_a_traceback(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    dialect = bound_engine().dialect
    pooled = bound_engine().raw_connection()
    cursor = pooled.cursor()
    cursor.execute(f"SELECT {_ID[dialect.name].compile(dialect=dialect)}")
    number = cursor.fetchall()[0][0]
    cursor.execute("UPDATE xxl_job_lock SET lock_name = lock_name")
    end_connection(number)
    pooled.close()
    with read_scope() as session:
        assert connection_id(session) != number
    assert [record.getMessage() for record in caplog.records] == []


def test_a_statement_alone_is_repeated_if_its_connection_was_lost(
    database: str, unchecked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job()
    lose_pooled()
    monkeypatch.setattr(servers.ServerConnections, "_is_quiet", lambda _self, _raw: True)
    assert len(single_statement.read(select(Job.id), {})) == 1
    lose_pooled()
    renamed = update(Job).where(Job.id == bindparam("which")).values(job_desc="after")
    assert single_statement.write(renamed, {"which": job.id}) == 1
    assert [row.job_desc for row in all_rows(Job)] == ["after"]


def test_the_end_of_a_connection_used_a_moment_ago_is_noticed(database: str) -> None:
    make_job()
    lose_pooled()
    with read_scope() as session:
        assert len(session.scalars(select(Job.id)).all()) == 1


def test_what_is_left_open_is_rolled_back(database: str) -> None:
    make_job(job_desc="before")
    raw = bound_engine().raw_connection()
    raw.cursor().execute("UPDATE xxl_job_info SET job_desc = 'after'")
    raw.close()
    with session_scope() as session:
        assert [row.job_desc for row in session.scalars(select(Job))] == ["before"]


def test_a_failed_statement_leaves_no_locks(database: str) -> None:
    job = make_job()
    first, second = make_fire(job), make_fire(job)
    renamed = update(Fire).where(Fire.id == bindparam("which")).values(fire_key=bindparam("key"))
    with pytest.raises(IntegrityError):
        single_statement.write(renamed, {"which": second.id, "key": first.fire_key})
    engine = create_engine(bound_engine().url, poolclass=NullPool)
    with engine.connect() as other:
        locked = select(Fire.id).where(Fire.id == second.id).with_for_update(nowait=True)
        assert other.scalar(locked) == second.id


@pytest.mark.databases("postgresql")
def test_texts_do_not_depend_on_the_encoding_that_the_environment_names(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "GBK")
    engine = make_engine(config)
    with engine.connect() as connection:
        raw = connection.connection.driver_connection
        assert raw is not None
        row = raw.cursor().execute("SELECT %s::text[], %s::text", (Texts(["行 é"]), "行 é")).fetchone()
    engine.dispose()
    assert row == (["行 é"], "行 é")


@pytest.mark.databases("postgresql")
@pytest.mark.parametrize(
    ("setting", "given", "used"),
    [
        ("random_page_cost", "4", "1.1"),
        ("random_page_cost", "2.5", "2.5"),
        ("lock_timeout", "0", "24s"),
        ("lock_timeout", "7s", "7s"),
    ],
)
def test_only_defaults_of_the_server_are_replaced(
    config: Config, setting: str, given: str, used: str
) -> None:
    engine = make_engine(config, {"options": f"-c {setting}={given}"})
    with engine.connect() as connection:
        assert connection.scalar(text(f"SHOW {setting}")) == used
    engine.dispose()


@pytest.mark.databases("postgresql")
def test_a_database_that_is_read_only_is_away(database: str) -> None:
    job = make_job(job_desc="before")
    changed = update(Job).where(Job.id == bindparam("which")).values(job_desc="after")

    def by_driver(session: Session) -> None:
        session.execute(text("SET TRANSACTION READ ONLY"))
        direct.change(session, changed, {"which": job.id})

    def by_session(session: Session) -> None:
        session.execute(text("SET TRANSACTION READ ONLY"))
        session.connection().execute(changed, {"which": job.id})

    for change in (by_driver, by_session):
        with pytest.raises(AWAY) as failed:
            transact(change)
        assert isinstance(failed.value, DBAPIError)
        assert fault_of(failed.value) is Fault.READ_ONLY


@pytest.fixture
def link(database_url: str) -> Iterator[DelayedLink]:
    """A link to the server on which answers can be held back for ever."""
    link = DelayedLink(free_port(), make_url(database_url).port or 0)
    link.start()
    yield link
    link.stop()


def test_a_server_that_hangs_is_given_up_with_all_connections_to_it(
    config: Config, link: DelayedLink
) -> None:
    url = make_url(config.database_url).set(port=link.port).render_as_string(hide_password=False)
    bind_engine(replace(config, database_url=url, database_answer_s=1))
    ask = text("SELECT 1")
    with session_scope() as one, session_scope() as other:
        assert one.scalar(ask) == other.scalar(ask) == 1
    link.rtt_ms = 3_600_000
    started = time.monotonic()
    with pytest.raises(AWAY) as failed, read_scope() as session:
        session.execute(ask)
    assert 1 <= time.monotonic() - started < 10
    assert isinstance(failed.value, DBAPIError)
    assert fault_of(failed.value) is Fault.UNAVAILABLE
    link.rtt_ms = 0
    started = time.monotonic()
    for _ in range(2):
        with session_scope() as one, session_scope() as other:
            assert one.scalar(ask) == other.scalar(ask) == 1
    assert time.monotonic() - started < 1, "the other connection is replaced, not asked"
    unbind_engine()


def count_sleeping() -> int:
    running = text("SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND query ~ '^SELECT pg_sl'")
    with read_scope() as session:
        return int(session.scalar(running) or 0)


def test_what_takes_too_long_is_not_repeated_and_postgresql_stops_it(database: str, config: Config) -> None:
    bind_engine(replace(config, database_answer_s=1))
    is_postgresql = make_url(database).get_backend_name() == "postgresql"
    sleep = text("SELECT pg_sleep(20)" if is_postgresql else "SELECT SLEEP(20)")
    attempts: list[int] = []

    def work(session: Session) -> None:
        attempts.append(1)
        session.execute(sleep)

    with pytest.raises(AWAY):
        transact(work)
    with pytest.raises(AWAY):
        single_statement.read(select(func.pg_sleep(20) if is_postgresql else func.sleep(20)), {})
    assert len(attempts) == 1
    bind_engine(config)
    if is_postgresql:
        eventually(lambda: not count_sleeping(), 5)


def test_a_wait_for_a_lock_ends_before_the_wait_for_an_answer(database: str, config: Config) -> None:
    job = make_job()
    engine = make_engine(replace(config, database_answer_s=3))
    changed = update(Job).where(Job.id == job.id).values(job_desc="after")
    with session_scope() as session:
        session.execute(changed)
        with engine.connect() as other, pytest.raises(AWAY) as failed:
            other.execute(changed)
    engine.dispose()
    assert isinstance(failed.value, DBAPIError)
    assert fault_of(failed.value) is Fault.BUSY
    assert not failed.value.connection_invalidated
