"""A locked, full, read-only or unreachable database: messages of pages, scripts and the log."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from unittest.mock import patch

import pytest
from sqlalchemy import event, update

from app.console.web import errors
from app.database import engine as db
from app.database.connections import sqlite
from app.database.faults import RETRY_AFTER_S, FaultLog
from app.models.session import LoginSession
from tests.console.pages import text_of, token_of
from tests.support.console import Console, add_group, add_job
from tests.support.databases import write_lock

pytestmark = pytest.mark.databases("sqlite")
#: does not fit into the free part of a page
SOURCE = "# long\n" * 10_000


@pytest.fixture(autouse=True)
def fresh_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "fault_log", FaultLog())


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Another process is writing; the timeout is short."""
    with write_lock(url), patch.object(sqlite, "BUSY_TIMEOUT_MS", 20):
        yield


@contextmanager
def connections_with(moment: str, work: Callable[..., None]) -> Iterator[None]:
    """Open all connections with this listener, and close them afterwards."""
    engine = db.bound_engine()
    engine.dispose()
    event.listen(engine, moment, work)
    try:
        yield
    finally:
        event.remove(engine, moment, work)
        engine.dispose()


def set_for_all(pragma: str) -> AbstractContextManager[None]:
    """Set it for every connection."""

    def set_up(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA {pragma}")

    return connections_with("connect", set_up)


def away() -> AbstractContextManager[None]:
    """No connection can be opened."""

    def refuse(*_: object) -> None:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    return connections_with("do_connect", refuse)


#: database fault -> message on pages
FAULTS = {
    "busy": (locked, "The database is busy. Try again in a moment."),
    "full": (
        lambda _url: set_for_all("max_page_count=1"),
        "The database's disk is full. Free some space, then try again.",
    ),
    "read-only": (
        lambda _url: set_for_all("query_only=ON"),
        "The database is read-only, so nothing can be changed.",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_change_explains_why_it_failed_and_the_log_has_one_line(
    admin: Console, database: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    job_id = add_job(add_group(), glue_type="GLUE_SHELL", glue_source="echo", glue_remark="first version")
    break_it, text = FAULTS[fault]
    values = {"id": job_id, "glueSource": SOURCE, "glueRemark": "second version"}
    with break_it(database):
        assert admin.call("/jobcode/save", **values) == {"code": 500, "msg": text, "content": None}
    (record,) = caplog.records
    assert record.getMessage().startswith("request failed method=POST path=/jobcode/save database_error=")
    assert record.exc_info is None
    assert admin.call("/jobcode/save", **values)["code"] == 200, "as soon as the database can"


def test_a_page_that_cannot_write_says_when_to_try_again(admin: Console, database: str) -> None:
    job_id = add_job(add_group())
    token = token_of(admin)
    with locked(database):
        page = admin.post("/jobinfo/favourite", {"csrf_token": token, "add": job_id})
    assert (page.status_code, page.headers["Retry-After"]) == (503, str(RETRY_AFTER_S))
    assert "The database is busy. Try again in a moment." in text_of(page)


@pytest.mark.parametrize("fault", ["busy", "read-only"])
def test_a_script_of_the_console_gets_the_text(admin: Console, database: str, fault: str) -> None:
    job_id = add_job(add_group())
    break_it, text = FAULTS[fault]
    fields = {"csrf_token": token_of(admin), "add": job_id}
    with break_it(database):
        answer = admin.post("/jobinfo/favourite", fields, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, str(RETRY_AFTER_S))
    assert answer.get_json()["msg"] == text


@pytest.mark.parametrize("fault", ["busy", "read-only"])
def test_pages_can_still_be_read(admin: Console, database: str, fault: str) -> None:
    with db.session_scope() as session:
        session.execute(update(LoginSession).values(last_seen_ms=LoginSession.last_seen_ms - 3_600_000))
    with FAULTS[fault][0](database):
        assert admin.get("/jobinfo").status_code == 200


def test_whoever_is_logged_in_is_told_that_the_database_is_away(
    admin: Console, caplog: pytest.LogCaptureFixture
) -> None:
    with away():
        page = admin.get("/jobinfo")
        answer = admin.call("/jobinfo/pageList", jobGroup=1)
    assert (page.status_code, page.headers["Retry-After"]) == (503, str(RETRY_AFTER_S))
    assert "The database is unavailable. Try again later." in text_of(page)
    assert answer["code"] == 500
    assert [record.exc_info for record in caplog.records] == [None]
    assert admin.get("/jobinfo").status_code == 200
