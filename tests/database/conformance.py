"""Conformance of a dialect: what callers of ``Dialect`` rely on, whatever the database is.

Each check takes the URL of an empty migrated database that ``session_scope`` works on. A new dialect is done
when it passes CHECKS.
"""

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from app.clock import now_ms
from app.database.dialects.choice import dialect_of, dialect_of_url, plain_engine
from app.database.engine import bind_engine, bind_for_reading, engine_options, make_engine, session_scope
from app.database.rows import bulk, deletion
from app.database.urls import sqlite_file
from app.errors import NotConfigured
from app.models.alarm import Alarm
from app.models.fire import Fire
from app.models.job import Job
from app.models.last_seen import LastSeen
from app.models.log import JobLog
from app.settings.config import Config
from app.store.copies import whole_tables
from tests.support.factories import T0, all_rows, make_job, make_log, only_row

LOG = "xxl_job_log"
#: values of the columns of a run that have no default
RUN = {"job_group": 0, "job_id": 0, "trigger_code": 0, "handle_code": 0}
ODD_TEXTS = [
    "",
    "plain",
    "it's",
    'two "quotes"',
    "100%",
    "%s %(id)s :name ?",
    "back\\slash",
    "line\nend\r\n\ttab",
    "行 \U0001f600",
    "-- x",
    "\\'",
    None,
]
PRODUCTS = ("sqlite", "mysql", "mariadb", "postgresql")

Check = Callable[[str], None]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Add a check to the suite."""
    CHECKS.append(function)
    return function


def run_row(number: int, note: str | None = None) -> bulk.Row:
    return {**RUN, "job_id": number, "alarm_status": 0, "trigger_msg": note, "trigger_time": T0}


def fire_row(key: str) -> bulk.Row:
    return {"job_id": 1, "fire_key": key, "due_time": T0, "trigger_type": "MANUAL"}


@check
def every_handle_of_a_database_has_the_same_dialect(url: str) -> None:
    with session_scope() as session:
        connection = session.connection()
        dialects = [dialect_of(session), dialect_of(connection), dialect_of(connection.engine)]
    assert all(dialect is dialect_of_url(url) for dialect in dialects)


@check
def ids_are_returned_in_row_order(url: str) -> None:
    numbers = iter(range(3_000))
    inserted: dict[int, int] = {}
    for count in (0, 1, 2, 999, 1_500):
        rows = [run_row(next(numbers)) for _ in range(count)]
        with session_scope() as session:
            ids = bulk.insert_with_ids(session, JobLog, rows)
        assert ids == sorted(ids)
        inserted |= dict(zip(ids, [row["job_id"] for row in rows], strict=True))
    assert {log.id: log.job_id for log in all_rows(JobLog)} == inserted


@check
def ids_continue_after_a_deletion_and_an_orm_insert(url: str) -> None:
    with session_scope() as session:
        first = bulk.insert_with_ids(session, JobLog, [run_row(1), run_row(2)])
        session.delete(session.get(JobLog, first[-1]))
    by_orm = make_log(make_job())
    with session_scope() as session:
        second = bulk.insert_with_ids(session, JobLog, [run_row(3)])
        third = bulk.insert_with_ids(session, JobLog, [run_row(4)])
    assert first[-1] < by_orm.id < second[0] < third[0]


@check
def each_row_gets_its_own_values(url: str) -> None:
    for count in (1, 199, 200, 201, 1_000):
        with session_scope() as session:
            ids = bulk.insert_with_ids(session, JobLog, [run_row(number) for number in range(count)])
            notes = {log_id: ODD_TEXTS[log_id % len(ODD_TEXTS)] for log_id in ids}
            rows = [
                {"id": log_id, "handle_code": log_id * 2, "alarm_status": 2, "trigger_msg": note}
                for log_id, note in notes.items()
            ]
            bulk.update_many(session, JobLog, rows[::-1])
    for log in all_rows(JobLog):
        expected = (log.id * 2, 2, ODD_TEXTS[log.id % len(ODD_TEXTS)])
        assert (log.handle_code, log.alarm_status, log.trigger_msg) == expected


@check
def texts_are_inserted_unchanged(url: str) -> None:
    with session_scope() as session:
        ids = bulk.insert_with_ids(session, JobLog, [run_row(1, note) for note in ODD_TEXTS])
        bulk.insert_whole(session, JobLog, [run_row(2, note) for note in ODD_TEXTS])
    assert {log.id: log.trigger_msg for log in all_rows(JobLog, job_id=1)} == dict(
        zip(ids, ODD_TEXTS, strict=True)
    )
    assert {log.trigger_msg for log in all_rows(JobLog, job_id=2)} == set(ODD_TEXTS)


@check
def nulls_times_and_large_numbers_can_be_set(url: str) -> None:
    log, job = make_log(make_job(), handle_time=T0), make_job()
    changed = {"id": log.id, "handle_time": None, "trigger_time": T0 + 86_399_999, "handle_msg": None}
    with session_scope() as session:
        bulk.update_many(session, JobLog, [changed])
        bulk.update_many(session, Job, [{"id": job.id, "trigger_next_time": 2**63 - 1}])
    after = only_row(JobLog)
    assert (after.handle_time, after.trigger_time, after.handle_msg) == (None, T0 + 86_399_000, None), (
        "a column holds whole seconds"
    )
    assert only_row(Job, id=job.id).trigger_next_time == 2**63 - 1


@check
def only_named_rows_and_columns_change(url: str) -> None:
    logs = [make_log(make_job(), handle_msg="before") for _ in range(3)]
    rows = [{"id": logs[1].id, "handle_code": 7}, {"id": 99_999, "handle_code": 8}]
    with session_scope() as session:
        bulk.update_many(session, JobLog, rows)
        bulk.update_many(session, JobLog, [])
    after = [(log.handle_code, log.handle_msg) for log in all_rows(JobLog)]
    assert after == [(0, "before"), (7, "before"), (0, "before")]


@check
def whole_rows_get_the_defaults_of_the_database(url: str) -> None:
    with session_scope() as session:
        bulk.insert_whole(session, Fire, [])
        bulk.insert_whole(session, Fire, [fire_row("a"), fire_row("b")])
    rows = [(fire.fire_key, fire.state, fire.epoch) for fire in all_rows(Fire)]
    assert rows == [("a", "PENDING", 0), ("b", "PENDING", 0)]


@check
def a_row_that_violates_a_unique_key_is_an_error(url: str) -> None:
    with pytest.raises(IntegrityError), session_scope() as session:
        bulk.insert_whole(session, Fire, [fire_row("a"), fire_row("a")])
    assert all_rows(Fire) == []


@check
def rows_that_violate_a_unique_key_can_be_left_out(url: str) -> None:
    row = {"job_id": 1, "reason": "failed", "state": "PENDING", "created_ms": T0, "next_ms": T0}
    with session_scope() as session:
        bulk.insert_ignore(session, Alarm, [row | {"log_id": log_id} for log_id in (1, 2)])
        bulk.insert_ignore(session, Alarm, [row | {"log_id": log_id, "job_id": 9} for log_id in (2, 3, 3)])
        bulk.insert_ignore(session, Alarm, [])
    assert [(alarm.log_id, alarm.job_id) for alarm in all_rows(Alarm)] == [(1, 1), (2, 1), (3, 9)]


@check
def one_row_is_inserted_once(url: str) -> None:
    with session_scope() as session:
        first = bulk.insert_if_absent(session, Fire, fire_row("a"))
        second = bulk.insert_if_absent(session, Fire, fire_row("a"))
    assert (first, second, len(all_rows(Fire))) == (True, False, 1)


@check
def upserts_insert_and_update(url: str) -> None:
    def seen(address: str, at_ms: int) -> bulk.Row:
        return {"app_name": "it's", "address": address, "last_seen_ms": at_ms, "capabilities": "\U0001f600"}

    key = ("app_name", "address")
    with session_scope() as session:
        bulk.upsert(session, LastSeen, [seen("b", 1), seen("a", 2)], key=key)
        bulk.upsert(session, LastSeen, [seen("c", 3), seen("b", 4)], key=key)
        bulk.upsert(session, LastSeen, [], key=key)
    assert {row.address: row.last_seen_ms for row in all_rows(LastSeen)} == {"a": 2, "b": 4, "c": 3}


@check
def rows_are_deleted_by_id_and_by_other_columns(url: str) -> None:
    with session_scope() as session:
        ids = bulk.insert_with_ids(session, JobLog, [run_row(number // 2) for number in range(1_000)])
        counts = [
            deletion.by_values(session, JobLog, "id", []),
            deletion.by_values(session, JobLog, "id", [*ids[:10], 2**31 - 1]),
            deletion.by_values(session, JobLog, "job_id", [100, 101, 99_999]),
            deletion.by_values(session, JobLog, "job_id", [99_999]),
            deletion.by_values(session, JobLog, "id", ids),
        ]
    assert (counts, all_rows(JobLog)) == ([0, 10, 4, 0, 986], [])


@check
def deleted_rows_are_returned(url: str) -> None:
    with session_scope() as session:
        ids = bulk.insert_with_ids(session, JobLog, [run_row(number) for number in range(4)])
        for column, values in (("id", ids[:2]), ("job_id", [2, 99_999]), ("id", []), ("id", [2**31 - 1])):
            rows = deletion.returning(session, JobLog, column, values, columns=["job_id", "job_group"])
            expected = {"id": [(0, 0), (1, 0)] if ids[0] in values else [], "job_id": [(2, 0)]}[column]
            assert sorted(tuple(row[:2]) for row in rows) == expected
    assert [log.job_id for log in all_rows(JobLog)] == [3]


@check
def one_connection_at_a_time_has_an_advisory_lock(url: str) -> None:
    def call(connection: Connection, function: str, key: int | str) -> bool:
        return bool(connection.scalar(text(f"SELECT {function}"), {"key": key}))

    engine, dialect = plain_engine(url), dialect_of_url(url)
    with engine.connect() as one, engine.connect() as other:
        lock = dialect.advisory_lock(one, "conformance")
        assert (lock is None) == (sqlite_file(url) is not None)
        if lock is not None:
            assert (
                dialect.advisory_lock(other, "conformance") == lock != dialect.advisory_lock(one, "another")
            )
            assert call(one, lock.take, lock.key)
            assert not call(other, lock.take, lock.key)
            assert call(one, lock.free, lock.key)
            assert call(other, lock.take, lock.key)


@check
def a_session_takes_the_limits_of_a_change(url: str) -> None:
    dialect = dialect_of_url(url)
    limits = [dialect.table_wait_limit(1), dialect.idle_allowance(60)]
    assert limits == [None, None] or None not in limits
    with plain_engine(url).connect() as connection:
        for statement in limits:
            connection.execute(text(statement or "SELECT 1"))
        dialect.allow_zero_dates(connection)
        assert connection.scalar(text("SELECT 1")) == 1


@check
def the_server_describes_itself(url: str) -> None:
    dialect = dialect_of_url(url)
    is_file = sqlite_file(url) is not None
    with plain_engine(url).connect() as one, plain_engine(url).connect() as other:
        assert other.scalar(text("SELECT 1")) == 1
        version = str(one.scalar(text(dialect.version_statement)))
        assert version[0].isdigit()
        assert dialect.product(version) in PRODUCTS
        assert dialect.is_mysql(one) == (dialect.product(version) == "mysql")
        numbers = [
            None if statement is None else int(one.scalar(text(statement)) or 0)
            for statement in (dialect.clock_statement, dialect.connections_max_statement)
        ]
        sessions = dialect.other_sessions_statement
        assert (sessions is None) == is_file
        assert sessions is None or int(one.scalar(text(sessions)) or 0) >= 1
    clock, connections = numbers
    assert ((clock is None), (connections is None)) == (is_file, is_file)
    assert clock is None or abs(clock - now_ms()) < 60_000
    assert connections is None or connections > 0


@check
def own_columns_are_in_the_own_schema(url: str) -> None:
    dialect = dialect_of_url(url)
    with plain_engine(url).connect() as connection:
        if dialect.own_schema is not None:
            count = text(
                "SELECT COUNT(*) FROM information_schema.columns WHERE column_name = 'trigger_msg'"
                f" AND table_schema = {dialect.own_schema} AND table_name = '{LOG}'"
            )
            assert connection.scalar(count) == 1
        if dialect.namespace_statement is not None:
            assert connection.scalar(text(dialect.namespace_statement)) == "public"


@check
def ids_that_were_given_are_skipped(url: str) -> None:
    dialect = dialect_of_url(url)
    with session_scope() as session:
        ids = bulk.insert_with_ids(session, JobLog, [run_row(1), run_row(2)])
        deletion.by_values(session, JobLog, "id", ids)
    for skip in ("skip", "continue"):
        with session_scope() as session:
            connection = session.connection()
            last = dialect.last_id(connection, LOG)
            if skip == "skip":
                dialect.skip_ids(connection, LOG, last + 50, RUN)
            else:
                dialect.continue_ids(connection, LOG, last + 50)
        with session_scope() as session:
            assert bulk.insert_with_ids(session, JobLog, [run_row(1)]) == [last + 51]
        assert last >= ids[-1]


@check
def a_widened_column_takes_longer_texts(url: str) -> None:
    dialect = dialect_of_url(url)
    with plain_engine(url).connect() as connection:
        connection.execute(text("CREATE TABLE conformance (note VARCHAR(5))"))
        try:
            for characters in (300, 20_000):
                statement = dialect.widening(
                    "conformance", "note", characters=characters, octets=characters * 4
                )
                if statement is not None:
                    connection.execute(text(statement))
                note = {"note": "\U0001f600" * characters}
                connection.execute(text("INSERT INTO conformance (note) VALUES (:note)"), note)
            assert len(connection.execute(text("SELECT note FROM conformance")).all()) == 2
        finally:
            connection.rollback()
            connection.execute(text("DROP TABLE IF EXISTS conformance"))
            connection.commit()


@check
def a_transaction_undoes_changes_of_tables_or_not(url: str) -> None:
    def break_off() -> None:
        with session_scope() as session:
            session.execute(text("CREATE TABLE conformance (note VARCHAR(5))"))
            raise NotConfigured("broken off")

    with pytest.raises(NotConfigured):
        break_off()
    with session_scope() as session:
        was_undone = not inspect(session.connection()).has_table("conformance")
        session.execute(text("DROP TABLE IF EXISTS conformance"))
    assert was_undone == dialect_of_url(url).undoes_table_changes


@check
def the_character_nul_is_stored_or_refused(url: str) -> None:
    log = make_log(make_job())
    stored = None
    try:
        with session_scope() as session:
            bulk.update_many(session, JobLog, [{"id": log.id, "handle_msg": "a\0b"}])
        stored = only_row(JobLog).handle_msg
    except DataError:
        assert not dialect_of_url(url).stores_nul
    assert (stored == "a\0b") == dialect_of_url(url).stores_nul


@check
def a_database_that_is_up_to_date_is_usable(url: str) -> None:
    with plain_engine(url).connect() as connection:
        dialect_of(connection).require_usable(connection)


@check
def an_engine_bound_for_reading_takes_no_changes(url: str) -> None:
    make_job(job_desc="before")
    engine = bind_for_reading(Config(database_url=url))
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT job_desc FROM xxl_job_info")) == "before"
        with pytest.raises(DBAPIError):
            connection.execute(text("UPDATE xxl_job_info SET job_desc = 'after'"))
    bind_engine(Config(database_url=url))
    assert only_row(Job).job_desc == "before"


@check
def connections_are_set_up_once(url: str) -> None:
    config = Config(database_url=url)
    engine = create_engine(url, **engine_options(config))
    dialect = dialect_of(engine)
    dialect.watch(engine, config)
    listeners = len(engine.pool.dispatch.connect)
    dialect.watch(engine, config)
    assert len(engine.pool.dispatch.connect) == listeners > 0
    with engine.begin() as connection:
        assert connection.scalar(text("SELECT 1")) == 1
    engine.dispose()


@check
def values_that_do_not_fit_exactly_are_refused(url: str) -> None:
    dialect = dialect_of_url(url)
    engine = make_engine(Config(database_url=url), dialect.exact_arguments())
    row = text("INSERT INTO xxl_job_lock (lock_name) VALUES (:name)")
    with engine.connect() as connection:
        if sqlite_file(url) is None:
            with pytest.raises(DataError):
                connection.execute(row, {"name": "x" * 300})
            connection.rollback()
        connection.execute(row, {"name": "x" * 50})
        connection.rollback()
    engine.dispose()


@check
def a_created_database_takes_all_characters(url: str) -> None:
    engine = plain_engine(url).execution_options(isolation_level="AUTOCOMMIT")
    if sqlite_file(url) is not None:
        return
    with engine.connect() as connection:
        other = whole_tables.create_scratch(connection)
        try:
            assert dialect_of_url(url).scratch_grant(other, other.database or "")
            with plain_engine(other).begin() as created:
                created.execute(text("CREATE TABLE conformance (note VARCHAR(50))"))
                for odd in ODD_TEXTS:
                    created.execute(text("INSERT INTO conformance (note) VALUES (:odd)"), {"odd": odd})
                notes = created.scalars(text("SELECT note FROM conformance")).all()
            assert sorted(map(str, notes)) == sorted(map(str, ODD_TEXTS))
        finally:
            whole_tables.drop_scratch(connection, other)
