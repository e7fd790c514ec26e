"""Queries of the log list."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from app.clock import DAY_MS, MINUTE_MS
from app.database.engine import read_scope
from app.models.base import use_zone
from app.models.log import JobLog
from app.store.runs import listing as log_lists
from app.store.runs.listing import (
    COUNT_MAX,
    COUNT_READ_MAX,
    LogFilter,
    LogStatus,
    count_later,
    list_from,
    list_logs,
    page_count_max,
)
from tests.support.factories import BERLIN_FIRST_TWO, BERLIN_SECOND_TWO, T0, make_job, make_log, only_row
from tests.support.plan import every_database


def found(status: int, **more: int) -> list[int]:
    with read_scope() as session:
        page = list_logs(session, LogFilter(status=status, **more), group_ids=None, start=0, length=10)
        return [log.id for log in page.rows]


@pytest.mark.parametrize(
    ("codes", "status", "kind"),
    [
        ((0, 0, 0), LogStatus.WAITING, None),
        ((200, 0, 0), LogStatus.RUNNING, None),
        ((200, 200, 0), LogStatus.SUCCESS, None),
        ((200, 200, 1), LogStatus.SUCCESS, None),
        ((200, 500, 0), LogStatus.FAILED, LogStatus.ONLY_FAILED),
        ((0, 500, 0), LogStatus.FAILED, LogStatus.ONLY_FAILED),
        ((200, 502, 0), LogStatus.FAILED, LogStatus.TIMED_OUT),
        ((200, 502, 1), LogStatus.FAILED, LogStatus.TIMED_OUT),
        ((200, 500, 1), LogStatus.FAILED, LogStatus.KILLED),
        ((500, 0, 0), LogStatus.FAILED, LogStatus.NOT_STARTED),
        ((504, 0, 0), LogStatus.FAILED, LogStatus.UNRESOLVED),
    ],
)
def test_runs_are_found_by_status(
    database: str, codes: tuple[int, int, int], status: LogStatus, kind: LogStatus | None
) -> None:
    trigger_code, handle_code, killed = codes
    log = make_log(make_job(), trigger_code=trigger_code, handle_code=handle_code, killed=killed)
    expected = {LogStatus.ALL, status} | ({kind} if kind else set())
    assert {named for named in LogStatus if found(named)} == expected
    assert found(LogStatus.ALL) == [log.id]


def test_a_success_of_a_run_that_was_unresolved_is_found_under_both_filters(database: str) -> None:
    """As in the original, where filters read the codes one by one."""
    log = make_log(make_job(), trigger_code=504, handle_code=200)
    assert found(LogStatus.SUCCESS) == found(LogStatus.FAILED) == [log.id]
    assert found(LogStatus.UNRESOLVED) == []


def test_failures_of_one_kind_are_searched_for_among_the_newest(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job()
    ids = [
        make_log(job, trigger_time=T0 + number * 1_000, handle_code=code).id
        for number, code in enumerate((502, 500, 502, 500))
    ]
    wanted = LogFilter(status=LogStatus.TIMED_OUT)

    def page() -> tuple[list[int], bool]:
        with read_scope() as session:
            listed = list_logs(session, wanted, group_ids=None, start=0, length=10)
            return [log.id for log in listed.rows], listed.is_capped

    assert page() == ([ids[2], ids[0]], False)
    monkeypatch.setattr(log_lists, "KIND_MAX", 3)
    assert page() == ([ids[2]], True)


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
        assert ([log.id for log in page.rows], page.total, page.is_capped) == ([ids[1], ids[0]], 2, True)


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


def pages_of(wanted: LogFilter, *, limit: int, group_ids: list[int] | None = None) -> list[list[int]]:
    """Return the ids of all pages, read one after the other."""
    pages = []
    while True:
        with read_scope() as session:
            runs, after = list_from(session, wanted, group_ids=group_ids, limit=limit)
        pages.append([log.id for log in runs])
        if after is None:
            return pages
        wanted = replace(wanted, after=after)


def test_pages_follow_each_other_by_time_and_id(database: str) -> None:
    job = make_job()
    ids = [make_log(job, trigger_time=T0 + second * 1_000).id for second in (0, 1, 1, 1, 2)]
    assert pages_of(LogFilter(), limit=2) == [[ids[4], ids[3]], [ids[2], ids[1]], [ids[0]]]
    assert pages_of(LogFilter(), limit=5) == [ids[::-1]]
    assert pages_of(LogFilter(to_ms=T0 + 1_000, from_ms=T0 + 1_000), limit=2) == [[ids[3], ids[2]], [ids[1]]]
    assert pages_of(LogFilter(), limit=2, group_ids=[job.job_group + 1]) == [[]]


def test_a_page_of_one_kind_continues_where_its_search_ended(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_lists, "KIND_MAX", 2)
    job = make_job()
    codes = (502, 502, 500, 500, 500, 502)
    ids = [
        make_log(job, trigger_time=T0 + number * 1_000, handle_code=code).id
        for number, code in enumerate(codes)
    ]
    pages = pages_of(LogFilter(status=LogStatus.TIMED_OUT), limit=2)
    assert [log_id for page in pages for log_id in page] == [ids[5], ids[1], ids[0]]
    assert pages[1] == []


def test_a_list_leaves_out_no_run_of_the_hour_that_occurs_twice(database: str) -> None:
    use_zone("Europe/Berlin")
    job, first, second = make_job(), BERLIN_FIRST_TWO, BERLIN_SECOND_TWO
    times = first - MINUTE_MS, first, first + 40 * MINUTE_MS, second, second + 30 * MINUTE_MS
    before, *twice = [make_log(job, trigger_time=at_ms).id for at_ms in times]
    after = make_log(job, trigger_time=second + 60 * MINUTE_MS).id
    since, until = LogFilter(from_ms=first + 40 * MINUTE_MS), LogFilter(to_ms=second + 10 * MINUTE_MS)
    assert sorted(pages_of(since, limit=9)[0]) == [*twice, after]
    assert sorted(pages_of(until, limit=9)[0]) == [before, *twice]
    with read_scope() as session:
        listed_ms = only_row(JobLog, id=twice[1]).trigger_time or 0
        assert count_later(session, LogFilter(), group_ids=None, after_ms=listed_ms, limit=9) == 1


def make_logs_with_logical_times() -> list[int]:
    """Return the ids of runs: one stored, one scheduled, one adopted by hand, one triggered too early."""
    job = make_job()
    times = (
        {"trigger_time": T0, "logical_ms": T0 - 9 * DAY_MS, "fire_time": T0},
        {"trigger_time": T0 + 1_000, "logical_ms": None, "fire_time": T0 - 2 * DAY_MS},
        {"trigger_time": T0 - 3 * DAY_MS, "logical_ms": None, "fire_time": None},
        {"trigger_time": T0 - 41 * DAY_MS, "logical_ms": T0 - 9 * DAY_MS, "fire_time": None},
    )
    return [make_log(job, **columns).id for columns in times]


@every_database
def test_logical_times_are_found_by_the_rule(database: str) -> None:
    given, scheduled, adopted, too_early = make_logs_with_logical_times()

    def between(first_days: int | None, last_days: int | None) -> list[int]:
        first_ms, last_ms = (None if days is None else T0 + days * DAY_MS for days in (first_days, last_days))
        return found(LogStatus.ALL, logical_from_ms=first_ms, logical_to_ms=last_ms)  # type: ignore[arg-type]

    assert between(-9, None) == [scheduled, given, adopted]
    assert between(-3, None) == [scheduled, adopted]
    assert between(-3, -3) == [adopted]
    assert between(-2, 0) == [scheduled]
    assert between(None, -9) == [given, too_early]
    assert between(-9, -9) == [given], "none is triggered more than 31 days before its logical time"
    assert between(1, None) == []


def test_runs_of_a_logical_time_are_searched_for_among_the_newest(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_lists, "KIND_MAX", 2)
    job = make_job()
    ids = [
        make_log(job, trigger_time=T0 + number * 1_000, logical_ms=T0 + number % 2 * DAY_MS).id
        for number in range(5)
    ]
    wanted = LogFilter(job_id=job.id, logical_to_ms=T0)
    with read_scope() as session:
        listed = list_logs(session, wanted, group_ids=None, start=0, length=10)
        assert ([log.id for log in listed.rows], listed.is_capped) == ([ids[4]], True)
        pages, after = list[int](), None
        while True:
            rows, after = list_from(session, replace(wanted, after=after), group_ids=None, limit=10)
            pages += [log.id for log in rows]
            if after is None:
                break
    assert pages == [ids[4], ids[2], ids[0]]
