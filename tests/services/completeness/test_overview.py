"""Overview: months from seals and stored days, jobs not on time, what is not stored yet, downloads."""

from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.clock import HOUR_MS, MINUTE_MS, Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import system_actor
from app.domain.completeness.days import start_of
from app.domain.completeness.equation import Irregular, Tally, Term
from app.domain.completeness.expected_instants import Interval
from app.models.completeness import WATERMARK_JOB, JobDay, JobSpan
from app.models.job import Job
from app.models.node import Node
from app.services.completeness import rest as rest_module
from app.services.completeness.counting import seal_of
from app.services.completeness.export import find_export, page_of_export
from app.services.completeness.job_day import find_job_day, find_missed, find_spans, group_instants
from app.services.completeness.overview import Days, Overview, days_up_to, find_overview
from app.services.completeness.report import Scope, report
from app.services.completeness.summary import find_last_days, find_yesterday
from app.store.completeness import days as store
from app.store.completeness.days import DayKey, StoredDay
from tests.support.factories import make_due_job, make_log, save
from tests.support.migrated_databases import TIME_ZONE
from tests.support.plan import every_database

pytestmark = every_database

ZONE = ZoneInfo(TIME_ZONE)
TODAY = date(2024, 5, 20)
NOW: Millis = start_of(TODAY, ZONE) + 10 * HOUR_MS
ALL = Scope(None, 0)
MAY = days_up_to(date(2024, 5, 1), TODAY)


def add_job(**span: Any) -> Job:
    """A job of each half hour, known since the beginning of May."""
    job = make_due_job(NOW, "CRON", "0 0/30 * * * ?")
    history = {
        "job_id": job.id,
        "group_id": job.job_group,
        "is_on": 1,
        "from_ms": start_of(MAY.first, ZONE) - 1,
    }
    schedule = {"schedule_type": "CRON", "schedule_conf": "0 0/30 * * * ?", "time_zone": TIME_ZONE}
    save(JobSpan(**history | schedule | {"not_before_ms": 0, "not_after_ms": 0} | span))
    return job


def watermark(at_ms: Millis, expected: int = 0) -> None:
    save(JobDay(job_id=WATERMARK_JOB, day="", group_id=0, open_from_ms=at_ms, expected=expected))
    node = {"name": "one", "kind": "workers", "started_ms": 0, "heartbeat_ms": 0, "version": "1"}
    save(Node(**node, scanned_ms=NOW))


def day(job: Job, back: int, *, open_from_ms: Millis = 0, **numbers: Any) -> None:
    key = DayKey(job.id, (TODAY - timedelta(days=back)).isoformat())
    with session_scope() as session:
        row = StoredDay(0, key, job.job_group, Tally(**numbers), {}, False, open_from_ms)
        store.save_days(session, [row])


def seal(back: int) -> None:
    with session_scope() as session:
        name = (TODAY - timedelta(days=back)).isoformat()
        last = store.find_last_seal(session)
        store.insert_seal(session, seal_of(session, name, last), now_ms=NOW)


def overview(scope: Scope = ALL, period: Days = MAY) -> Overview:
    with read_scope() as session:
        return find_overview(session, scope, MAY, period, zone=ZONE, now_ms=NOW)


@pytest.fixture
def jobs(database: str) -> list[Job]:
    """Two jobs with two days, counted up to now; the first of the days is sealed."""
    first, second = add_job(), add_job()
    watermark(NOW)
    day(first, 2, expected=48, on_time=46, skipped={"misfire": 2}, finished=46)
    day(second, 2, expected=48, on_time=48, finished=48)
    day(first, 1, expected=48, on_time=47, not_started={"drained": 1}, finished=47)
    day(second, 1, expected=48, on_time=46, unexplained=1, skipped={"misfire": 1}, finished=40, failed=6)
    seal(2)
    return [first, second]


def test_the_total_of_a_period_has_its_reasons(jobs: list[Job]) -> None:
    result = overview()
    assert result.total.as_dict() == Tally(
        expected=192, on_time=187, unexplained=1, finished=181, failed=6,
        not_started={"drained": 1}, skipped={"misfire": 3},
    ).as_dict()  # fmt: skip
    assert {name: tally.expected for name, tally in result.days.items()} == {
        "2024-05-18": 96,
        "2024-05-19": 96,
    }
    assert result.sealed_ms_by_day == {"2024-05-18": NOW}
    assert result.first_ms == start_of(MAY.first, ZONE)


def test_jobs_with_unexplained_instants_come_first_with_all_their_numbers(jobs: list[Job]) -> None:
    worst, other = overview().jobs
    assert (worst.job_id, worst.tally.expected, worst.tally.unexplained) == (jobs[1].id, 96, 1)
    assert worst.tally.skipped == {"misfire": 1}
    assert (other.job_id, other.tally.skipped) == (jobs[0].id, {"misfire": 2})
    (only,) = overview(period=Days(TODAY - timedelta(days=2), TODAY - timedelta(days=2))).jobs
    assert only.job_id == jobs[0].id


def test_jobs_that_only_a_calendar_or_a_blackout_excludes_are_not_listed(jobs: list[Job]) -> None:
    third = add_job()
    day(third, 1, expected=24, on_time=20, skipped={"calendar": 3, "blackout": 1}, finished=20)
    day(jobs[0], 3, expected=9, on_time=0, skipped={"calendar": 9})
    assert [job.job_id for job in overview().jobs] == [jobs[1].id, jobs[0].id]


def test_a_sealed_day_of_all_jobs_is_read_from_its_seal(jobs: list[Job]) -> None:
    with session_scope() as session:
        session.query(JobDay).filter(JobDay.day == "2024-05-18").delete()
    assert overview().total.expected == 192
    assert overview(Scope(None, jobs[0].id)).total.expected == 48


@pytest.mark.parametrize("by_job", [True, False])
def test_a_scope_has_its_own_numbers(jobs: list[Job], by_job: bool) -> None:
    scope = Scope(None, jobs[0].id) if by_job else Scope([jobs[0].job_group], 0)
    result = overview(scope)
    assert (result.total.expected, result.total.unexplained) == (96, 0)
    assert result.total.skipped == {"misfire": 2}
    assert [job.job_id for job in result.jobs] == [jobs[0].id]
    assert overview(Scope([], 0)).total == Tally()


def test_what_is_not_stored_yet_is_added_to_its_day_and_job(database: str) -> None:
    job = add_job()
    watermark(NOW - HOUR_MS)
    day(job, 0, expected=18, on_time=18, finished=18)
    at_ms = NOW - HOUR_MS
    times = {"trigger_time": at_ms, "fire_time": at_ms, "logical_ms": at_ms, "late_ms": 1}
    make_log(job, trigger_type="CRON", handle_code=200, **times)
    result = overview()
    assert (result.days["2024-05-20"].expected, result.total.unexplained) == (20, 1)
    (row,) = result.jobs
    assert (row.tally.expected, row.tally.on_time) == (20, 19)
    with read_scope() as session:
        whole = report(session, ALL, MAY.interval(ZONE), zone=ZONE, now_ms=NOW)
        assert whole.total == result.total
        export = find_export(session, ALL, MAY, zone=ZONE, now_ms=NOW)
        assert [each.tally for each in page_of_export(session, export, export.job_ids)] == [row.tally]


def test_too_many_instants_are_left_out(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    job = add_job()
    watermark(NOW - HOUR_MS)
    day(job, 0, expected=18, on_time=18)
    monkeypatch.setattr(rest_module, "INSTANTS_MAX", 1)
    result = overview()
    assert (result.total.expected, result.until_ms) == (18, NOW - HOUR_MS)
    assert overview(Scope(None, job.id)).total.expected == 20


def test_what_was_due_since_a_run_that_is_open_is_counted(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = add_job()
    watermark(NOW)
    day(job, 1, expected=40, on_time=40, open_from_ms=NOW - 14 * HOUR_MS)
    result = overview()
    assert (result.days["2024-05-19"].expected, result.days["2024-05-20"].expected) == (48, 20)
    with read_scope() as session:
        assert report(session, ALL, MAY.interval(ZONE), zone=ZONE, now_ms=NOW).total == result.total
        today = Interval(start_of(TODAY, ZONE), NOW + HOUR_MS)
        assert report(session, ALL, today, zone=ZONE, now_ms=NOW + HOUR_MS).total.expected == 22
    monkeypatch.setattr(rest_module, "OPEN_MAX", 0)
    assert (overview().total.expected, overview().left_out) == (40, 1)


def test_a_new_installation_counts_from_its_first_history(database: str) -> None:
    assert overview().first_ms is None
    add_job(from_ms=NOW - HOUR_MS)
    assert overview().total.expected == 1


def test_a_day_is_looked_at_by_the_hour(database: str) -> None:
    job = add_job(until_ms=NOW - 3 * HOUR_MS)
    watermark(NOW)
    with read_scope() as session:
        spans = find_spans(session, Scope(None, job.id), Interval(NOW - HOUR_MS * 10, NOW))
        found = find_job_day(session, spans, TODAY, zone=ZONE, now_ms=NOW)
    assert [hour.tally.expected for hour in found.hours] == [2] * 7 + [1]
    assert [(times.instants, times.first.term) for times in found.irregular] == [(15, Term.UNEXPLAINED)]


def test_what_did_not_run_is_unknown_of_days_whose_runs_were_deleted(database: str) -> None:
    job = add_job()
    watermark(NOW)
    day(job, 1, expected=48)
    day(job, 2, expected=48)
    with session_scope() as session:
        cleared = (TODAY - timedelta(days=2)).isoformat()
        store.mark_cleared(session, [job.id], cleared, cleared)
    interval = Interval(start_of(TODAY - timedelta(days=2), ZONE), start_of(TODAY, ZONE))
    with read_scope() as session:
        spans = find_spans(session, Scope(None, job.id), interval)
        missed = find_missed(session, spans, interval, zone=ZONE, now_ms=NOW)
    yesterday_ms = start_of(TODAY - timedelta(days=1), ZONE)
    assert missed == [yesterday_ms + number * 30 * MINUTE_MS for number in range(48)]


def test_instants_without_a_run_are_one_row_while_their_reason_is_the_same() -> None:
    skipped = [Irregular(number, Term.SKIPPED, "misfire", 0) for number in range(3)]
    late = [Irregular(number, Term.LATE, "", number) for number in (4, 5)]
    rows = group_instants([*skipped, *late, Irregular(6, Term.SKIPPED, "edited", 0)])
    assert [row.instants for row in rows] == [3, 1, 1, 1]
    assert rows[0].last.instant == 2


def test_summaries_are_of_stored_days(jobs: list[Job]) -> None:
    actor = system_actor("seed")
    with read_scope() as session:
        yesterday = find_yesterday(session, actor, zone=ZONE, now_ms=NOW)
        last = find_last_days(session, actor, jobs[0].id, zone=ZONE, now_ms=NOW)
        assert find_yesterday(session, actor, zone=ZONE, now_ms=start_of(TODAY, ZONE) + MINUTE_MS) is None
    assert yesterday is not None
    assert (yesterday.tally.expected, yesterday.tally.skipped.total()) == (96, 1)
    assert (last.first, last.tally.expected, last.tally.skipped) == (date(2024, 4, 21), 96, {"misfire": 2})
    seal(1)
    with read_scope() as session:
        sealed = find_yesterday(session, actor, zone=ZONE, now_ms=NOW)
    assert sealed is not None
    assert sealed.tally.skipped == {"misfire": 1}
