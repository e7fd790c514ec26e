"""Statements on many rows: sizes, logs and errors; what each database must do is in ``conformance.py``."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text
from sqlalchemy.exc import DataError, IntegrityError

from app.database.engine import session_scope
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.models.audit import AuditEntry
from app.models.base import Base
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from tests.support.factories import T0, all_rows, make_job, make_log, only_row

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
]


def log_row(number: int, text: str | None = None) -> bulk.Row:
    return {
        "job_group": 1,
        "job_id": number,
        "trigger_code": 0,
        "handle_code": 0,
        "alarm_status": 0,
        "trigger_msg": text,
        "trigger_time": T0,
    }


@pytest.mark.databases("mariadb")
@pytest.mark.parametrize("step", [1, 7])
def test_ids_are_known_where_a_server_does_not_return_them(
    database: str, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """As on MySQL; clusters leave numbers out, so that their servers take different ones."""
    with session_scope() as session:
        monkeypatch.setattr(session.get_bind().dialect, "insert_executemany_returning", False)
        session.execute(text(f"SET SESSION auto_increment_increment = {step}"))
        ids = bulk.insert_with_ids(session, JobLog, [log_row(number) for number in range(1_200)])
        session.execute(text("SET SESSION auto_increment_increment = DEFAULT"))
    assert {log.id: log.job_id for log in all_rows(JobLog)} == dict(zip(ids, range(1_200), strict=True))


def test_a_text_too_long_for_its_column_is_an_error_and_not_cut(database: str, database_kind: str) -> None:
    if database_kind == "sqlite":
        pytest.skip("SQLite keeps texts of any length")
    log = make_log(make_job(), executor_address="http://10.0.0.11:9999/")
    with pytest.raises(DataError), session_scope() as session:
        bulk.update_many(session, JobLog, [{"id": log.id, "executor_address": "h" * 256}])
    assert only_row(JobLog).executor_address == "http://10.0.0.11:9999/"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40),
        min_size=1,
        max_size=6,
    )
)
def test_any_text_is_written_unchanged(database: str, texts: list[str]) -> None:
    with session_scope() as session:
        ids = bulk.insert_with_ids(session, JobLog, [log_row(1, text) for text in texts])
        bulk.update_many(
            session,
            JobLog,
            [{"id": log_id, "handle_msg": text[::-1]} for log_id, text in zip(ids, texts, strict=True)],
        )
    with session_scope() as session:
        found = [session.get_one(JobLog, log_id) for log_id in ids]
        assert [(log.trigger_msg, log.handle_msg) for log in found] == [(text, text[::-1]) for text in texts]


def test_insert_many_of_nothing_does_nothing(database: str) -> None:
    with session_scope() as session:
        bulk.insert_many(session, Fire, [])
    assert all_rows(Fire) == []


@pytest.mark.parametrize("model", Base.__subclasses__(), ids=lambda model: model.__name__)
def test_every_model_has_its_table(model: type[Base]) -> None:
    assert bulk.table_of(model).name.startswith("xxl_job_")


def fire_row(key: str) -> bulk.Row:
    return {"job_id": 1, "fire_key": key, "due_time": T0, "trigger_type": "MANUAL"}


def test_rows_among_values_are_read(database: str) -> None:
    named = select(Job.id, Job.job_desc).where(among(Job.id)).order_by(Job.id)
    jobs = [make_job(job_desc=text) for text in ODD_TEXTS]
    wanted = [*(job.id for job in jobs[1:]), 2**31 - 1]
    with session_scope() as session:
        rows = [tuple(row) for row in bulk.read_among(session, named, wanted)]
        assert list(bulk.read_among(session, named, [])) == []
    assert rows == [(job.id, job.job_desc) for job in jobs[1:]]


def test_a_slow_statement_of_the_driver_is_logged(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("app.database.statement_times.limit.slow_s", -1.0)
    with session_scope() as session:
        bulk.insert_whole(session, Fire, [fire_row("a")])
    assert "INSERT INTO xxl_job_fire" in caplog.text


def test_a_statement_of_the_driver_that_fails_is_timed(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("app.database.statement_times.limit.slow_s", -1.0)
    with pytest.raises(IntegrityError), session_scope() as session:
        bulk.insert_whole(session, Fire, [fire_row("a"), fire_row("a")])
    assert "sql=INSERT INTO xxl_job_fire" in caplog.text


def test_rows_together_may_be_larger_than_a_packet_of_the_server(database: str) -> None:
    changes = "x" * 60_000
    rows = [
        {"at_ms": T0, "action": "job.update", "object_id": number, "changes": changes}
        for number in range(300)
    ]
    with session_scope() as session:
        bulk.insert_whole(session, AuditEntry, rows)
    assert [entry.object_id for entry in all_rows(AuditEntry)] == list(range(300))


def test_neither_a_slow_statement_nor_an_error_shows_values(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("app.database.statement_times.limit.slow_s", -1.0)
    with session_scope() as session:
        (log_id,) = bulk.insert_with_ids(session, JobLog, [log_row(1, "secret-1")])
        bulk.update_many(session, JobLog, [{"id": log_id, "handle_msg": "secret-2"}])
    doubled = [{**fire_row("a"), "executor_param": "secret-3"} for _ in range(2)]
    with pytest.raises(IntegrityError) as failed, session_scope() as session:
        bulk.insert_whole(session, Fire, doubled)
    assert "xxl_job_log" in caplog.text
    assert "secret" not in caplog.text
    assert "INSERT INTO xxl_job_fire" in str(failed.value)
    assert "secret" not in (failed.value.statement or "")


def test_more_text_than_a_packet_of_the_server_may_have_is_written(database: str) -> None:
    texts = ["'" * 60_000 + str(number) for number in range(200)]
    with session_scope() as session:
        ids = bulk.insert_with_ids(session, JobLog, [log_row(1, text) for text in texts])
        rows = [{"id": log_id, "handle_msg": text} for log_id, text in zip(ids, texts, strict=True)]
        bulk.update_many(session, JobLog, rows)
    assert [(log.trigger_msg, log.handle_msg) for log in all_rows(JobLog)] == [(text, text) for text in texts]
