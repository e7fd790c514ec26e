"""Queries of the log list."""

import pytest
from sqlalchemy import text

from app.db import read_scope
from app.store import log_lists
from app.store.log_lists import COUNT_MAX, COUNT_READ_MAX, LogFilter, LogStatus, list_logs, page_count_max
from tests.factories import T0, make_job, make_log


def found(status: int, **more: int) -> list[int]:
    with read_scope() as session:
        page = list_logs(session, LogFilter(status=status, **more), group_ids=None, start=0, length=10)
        return [log.id for log in page.rows]


@pytest.mark.parametrize(
    ("trigger_code", "handle_code", "status"),
    [
        (0, 0, None),
        (200, 0, LogStatus.RUNNING),
        (200, 200, LogStatus.SUCCESS),
        (200, 500, LogStatus.FAILED),
        (200, 502, LogStatus.FAILED),
        (500, 0, LogStatus.FAILED),
        (504, 0, LogStatus.FAILED),
        (0, 500, LogStatus.FAILED),
        (504, 200, LogStatus.FAILED),
    ],
)
def test_runs_are_found_by_status(
    database: str, trigger_code: int, handle_code: int, status: LogStatus | None
) -> None:
    log = make_log(make_job(), trigger_code=trigger_code, handle_code=handle_code)
    found_by = [named for named in (LogStatus.RUNNING, LogStatus.FAILED) if found(named)]
    assert found_by == ([status] if status in (LogStatus.RUNNING, LogStatus.FAILED) else [])
    assert found(LogStatus.SUCCESS) == ([log.id] if handle_code == 200 else [])
    assert found(LogStatus.ALL) == [log.id]


@pytest.mark.parametrize(
    ("log_filter", "group_ids", "count_to"),
    [
        (LogFilter(), [1, 2], COUNT_MAX),
        (LogFilter(group_id=1), None, COUNT_MAX),
        (LogFilter(status=LogStatus.FAILED), None, COUNT_MAX),
        (LogFilter(status=LogStatus.FAILED), [1, 2], COUNT_READ_MAX),
        (LogFilter(status=LogStatus.SUCCESS, group_id=1), None, COUNT_READ_MAX),
        (LogFilter(status=LogStatus.RUNNING, job_id=1), None, COUNT_READ_MAX),
    ],
)
def test_a_page_counts_fewer_rows_if_it_has_to_read_them(
    log_filter: LogFilter, group_ids: list[int] | None, count_to: int
) -> None:
    assert page_count_max(log_filter, group_ids) == count_to


def test_a_capped_count_is_marked_and_the_pages_continue(database: str) -> None:
    job = make_job()
    ids = [make_log(job, trigger_time=T0 + number * 1_000).id for number in range(4)]
    with read_scope() as session:
        page = list_logs(session, LogFilter(), group_ids=None, start=2, length=2, count_to=2)
        assert ([log.id for log in page.rows], page.total, page.capped) == ([ids[1], ids[0]], 2, True)


def test_a_run_that_fails_later_is_found_as_failed(database: str) -> None:
    """`failed` is a computed column: it includes what a Java admin writes."""
    log = make_log(make_job(), trigger_code=200, handle_code=0)
    with read_scope() as session:
        session.execute(text(f"UPDATE xxl_job_log SET handle_code = 500 WHERE id = {log.id}"))
        session.commit()
    assert found(LogStatus.FAILED) == [log.id]


def test_a_page_may_exceed_the_rows_of_one_statement(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lists, "ROWS_AT_ONCE", 2)
    job = make_job()
    ids = [make_log(job, trigger_time=T0 + number * 1_000).id for number in range(5)]
    assert found(LogStatus.ALL) == ids[::-1]
