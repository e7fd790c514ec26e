"""Completeness page: month, equation, jobs, a job by the hour, downloads."""

import csv
import io
import json
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from app.clock import HOUR_MS, MINUTE_MS, Millis, now_ms
from app.database.engine import session_scope
from app.domain.access.permissions import Right
from app.domain.completeness.days import day_of, interval_of, start_of
from app.domain.completeness.equation import Tally
from app.models.completeness import WATERMARK_JOB, JobDay, JobSpan
from app.models.job import Job
from app.models.node import Node
from app.services.completeness.counting import seal_of
from app.store.completeness import days as store
from app.store.completeness.days import DayKey, StoredDay
from tests.console.pages import is_at_login, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import make_log, save
from tests.support.migrated_databases import TIME_ZONE
from tests.support.statements import statements

#: the sums are tested on every database in tests/store
pytestmark = pytest.mark.databases("sqlite")

ZONE = ZoneInfo(TIME_ZONE)
#: statements of the page that are about completeness, names and groups
STATEMENTS_MAX = 30


def today() -> date:
    return day_of(now_ms(), ZONE)


def days_ago(days: int) -> str:
    return (today() - timedelta(days=days)).isoformat()


def history(job_id: int, group_id: int, *, conf: str = "0 * * * * ?", since_days: int = 40) -> None:
    """Let a job be known, and counted up to now."""
    begin_ms = start_of(today() - timedelta(days=since_days), ZONE) - 1
    schedule = {"schedule_type": "CRON", "schedule_conf": conf, "time_zone": TIME_ZONE}
    of_job = {"job_id": job_id, "group_id": group_id, "is_on": 1, "from_ms": begin_ms}
    save(JobSpan(**of_job, **schedule, not_before_ms=0, not_after_ms=0))


def counted(until_ms: Millis) -> None:
    save(JobDay(job_id=WATERMARK_JOB, day="", group_id=0, open_from_ms=until_ms))
    node = {"name": "one", "kind": "workers", "started_ms": 0, "heartbeat_ms": 0, "version": "1"}
    save(Node(**node, scanned_ms=now_ms()))


def day(job_id: int, group_id: int, days: int, **numbers: Any) -> None:
    row = StoredDay(0, DayKey(job_id, days_ago(days)), group_id, Tally(**numbers), {}, False, 0)
    with session_scope() as session:
        store.save_days(session, [row])


def seal(days: int) -> None:
    with session_scope() as session:
        last = store.find_last_seal(session)
        store.insert_seal(session, seal_of(session, days_ago(days), last), now_ms=now_ms())


@pytest.fixture
def job(admin: Console) -> tuple[int, int]:
    """Job and group of a schedule with two known days, of which one is sealed."""
    group_id = add_group()
    job_id = add_job(group_id, job_desc="=each minute", schedule_conf="0 * * * * ?")
    history(job_id, group_id)
    counted(now_ms())
    day(job_id, group_id, 2, expected=1_440, on_time=1_438, skipped={"misfire": 2}, finished=1_438)
    day(job_id, group_id, 1, expected=1_440, on_time=1_437, late=1, unexplained=2, finished=1_438)
    seal(2)
    return job_id, group_id


def period(first: int, last: int) -> str:
    return f"from={days_ago(first)}&to={days_ago(last)}"


def test_it_needs_a_login_and_a_group(console: Console, normal_user: Callable[..., Console]) -> None:
    assert is_at_login(console.get("/completeness"))
    assert "You have no access to any executor group" in text_of(normal_user().get("/completeness"))


def test_a_new_installation_says_that_nothing_is_known(admin: Console) -> None:
    page = text_of(admin.get("/completeness"))
    assert "Nothing is known yet" in page
    assert "CSV" not in page


def test_the_equation_and_the_jobs_of_a_period_are_shown(admin: Console, job: tuple[int, int]) -> None:
    job_id, _group_id = job
    response = admin.get(f"/completeness?{period(2, 1)}")
    page = text_of(response)
    assert "2 instants are unexplained." in page
    assert "Expected 2,880 = On time 2,875 99.8 % + Late 1" in page
    assert "Skipped 2" in page
    assert "left out by the misfire strategy 2" in page
    assert "Unexplained 2" in page
    assert f"/completeness?job_id={job_id}" in response.text
    assert f"/jobinfo/{job_id}?tab=runs#skips" in response.text


def test_a_sealed_day_is_complete_and_marked(admin: Console, job: tuple[int, int]) -> None:
    page = admin.get(f"/completeness?{period(2, 2)}").text
    assert "All 1,440 expected instants are accounted for." in page
    assert "1,440 expected, 2 skipped, sealed" in page
    assert "Nothing is known before" in page


def test_before_the_first_history_nothing_is_known(admin: Console, job: tuple[int, int]) -> None:
    page = text_of(admin.get("/completeness?month=2001-02"))
    assert "February 2001" in page
    assert "Nothing is known before" in page
    assert "expected instants" not in page


def test_numbers_are_those_of_the_groups_that_may_be_viewed(
    admin: Console, normal_user: Callable[..., Console], job: tuple[int, int]
) -> None:
    other = add_group("other-app", "Other")
    other_job = add_job(other, job_desc="other job")
    history(other_job, other)
    day(other_job, other, 1, expected=10, on_time=9, not_started={"no_instance": 1})
    user = normal_user(other, rights={other: frozenset({Right.VIEW})})
    page = text_of(user.get(f"/completeness?{period(1, 1)}"))
    assert "Expected 10" in page
    assert "no instance was online 1" in page
    assert "each minute" not in page
    foreign = text_of(user.get(f"/completeness?job_id={job[0]}&{period(1, 1)}"))
    assert "each minute" not in foreign
    assert "1,440" not in foreign
    assert "1,440" not in text_of(user.get(f"/completeness?group_id={job[1]}&{period(1, 1)}"))
    assert "each minute" not in user.get(f"/completeness.csv?{period(1, 1)}").text
    assert "1,450" in text_of(admin.get(f"/completeness?{period(1, 1)}"))


def test_a_job_on_a_day_is_shown_by_the_hour(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, job_desc="half hours")
    history(job_id, group_id, conf="0 0/30 * * * ?")
    counted(now_ms())
    begin_ms = interval_of(today() - timedelta(days=1), ZONE).from_ms
    job = Job(id=job_id, job_group=group_id)
    for number in range(47):
        instant = begin_ms + number * HOUR_MS // 2
        times = {"fire_time": instant, "logical_ms": instant, "trigger_time": instant}
        make_log(job, **times, trigger_type="CRON", handle_code=200, late_ms=2 if number else 9_000)
    response = admin.get(f"/completeness?job_id={job_id}&{period(1, 1)}")
    page = text_of(response)
    assert "Hours of this day" in page
    assert "00:00 2 1 1 0 0 0 0" in page
    assert "23:00 2 1 0 0 0 0 1" in page
    assert "Instants that were not on time" in page


def test_deleted_rows_are_not_taken_for_unexplained_ones(admin: Console, job: tuple[int, int]) -> None:
    with session_scope() as session:
        store.mark_cleared(session, [job[0]], days_ago(2), days_ago(2))
    page = text_of(admin.get(f"/completeness?job_id={job[0]}&{period(2, 2)}"))
    assert "only the totals of the day are known" in page
    assert "Unexplained 0" in page


def test_times_without_a_schedule_are_shown(admin: Console, job: tuple[int, int]) -> None:
    begin_ms = interval_of(today() - timedelta(days=3), ZONE).from_ms
    schedule = {"schedule_type": "CRON", "schedule_conf": "0 * * * * ?", "time_zone": TIME_ZONE}
    for is_on, from_ms in ((0, begin_ms), (1, begin_ms + HOUR_MS)):
        of_job = {"job_id": job[0], "group_id": job[1], "is_on": is_on, "from_ms": from_ms}
        save(JobSpan(**of_job, **schedule, not_before_ms=0, not_after_ms=0))
    page = text_of(admin.get(f"/completeness?job_id={job[0]}&{period(3, 1)}"))
    assert f"Off from {days_ago(3)} 00:00:00 to {days_ago(3)} 01:00:00" in page


@pytest.mark.parametrize(
    "query",
    [
        "month=2026-13", "month=9999-12", "month=1990-01", "month=2099-12", "month=x&from=&to=",
        "from=1990-01-01&to=1990-01-01", "from=2099-12-31&to=2099-12-31", "from=0001-01-01&to=9999-12-31",
        "from=2026-11-30&to=2026-11-01", "from=2026-02-30", "to='; drop table", "from[]=1&to=%00",
        "job_id=99999999999999999999", "job_id=-1&group_id=-5", "job_id=x", "group_id=2147483648",
        "job_id=9223372036854775807&from=2026-11-01&to=2026-11-01",
    ],
)  # fmt: skip
def test_hostile_parameters_are_ignored(admin: Console, job: tuple[int, int], query: str) -> None:
    for path in ("/completeness", "/completeness.csv", "/completeness.json"):
        assert admin.get(f"{path}?{query}").status_code == 200, path


def test_a_long_period_is_cut_to_its_last_days(admin: Console, job: tuple[int, int]) -> None:
    table = json.loads(admin.get("/completeness.json?from=2020-01-01&to=2026-05-31").text)
    assert (table["from"], table["to"]) == ("2026-05-01", "2026-05-31")


def test_the_table_can_be_downloaded(admin: Console, job: tuple[int, int]) -> None:
    response = admin.get(f"/completeness.csv?{period(2, 1)}")
    assert response.headers["Content-Disposition"].endswith(f"completeness-{days_ago(2)}-{days_ago(1)}.csv")
    (row,) = csv.DictReader(io.StringIO(response.text.removeprefix("\ufeff")))
    assert (row["job"], row["expected"], row["skipped"]) == ("'=each minute", "2880", "2")
    assert row["reasons"] == "misfire 2"
    table = json.loads(admin.get(f"/completeness.json?{period(2, 1)}").text)
    assert table["jobs"][0]["job"] == "=each minute"
    assert table["jobs"][0]["skipped"] == {"misfire": 2}
    assert table["total"]["unexplained"] == 2
    assert table["time_zone"] == TIME_ZONE


def test_what_is_not_stored_yet_is_counted_from_its_rows(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, job_desc="new job")
    history(job_id, group_id, since_days=0)
    counted(now_ms() - 5 * MINUTE_MS)
    page = text_of(admin.get("/completeness"))
    assert "instants are unexplained" in page
    assert "new job" in page
    assert '"job": "new job"' in admin.get("/completeness.json").text


def test_statements_do_not_grow_with_jobs_and_days(admin: Console, job: tuple[int, int]) -> None:
    path = f"/completeness?{period(5, 0)}"  # The page itself begins with the month.
    with statements() as few:
        admin.get(path)
    for _ in range(12):
        other = add_job(job[1])
        history(other, job[1])
        for back in range(6):
            day(other, job[1], back, expected=9, on_time=8, late=1)
    with statements() as many:
        admin.get(path)
    assert len(few) <= len(many) <= len(few) + 1 <= STATEMENTS_MAX


def test_the_dashboard_begins_with_what_is_unexplained_of_yesterday(
    admin: Console, job: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    noon_ms = start_of(today(), ZONE) + 12 * HOUR_MS
    monkeypatch.setattr("app.console.report.dashboard.now_ms", lambda: noon_ms)
    page = admin.get("/")
    assert "Yesterday: 2 unexplained, 1 late" in text_of(page)
    assert '<div class="answer danger"' in page.text
    assert f"/completeness?from={days_ago(1)}&amp;to={days_ago(1)}" in page.text


def test_the_dashboard_says_that_yesterday_was_complete(
    admin: Console, normal_user: Callable[..., Console], job: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    noon_ms = start_of(today() - timedelta(days=1), ZONE) + 12 * HOUR_MS
    monkeypatch.setattr("app.console.report.dashboard.now_ms", lambda: noon_ms)
    with statements() as found:
        page = text_of(admin.get("/"))
    assert "Yesterday: all 1,440 instants accounted for, 2 skipped" in page
    assert sum("xxl_job_day" in each or "xxl_job_seal" in each for each in found) == 1
    with statements() as found:
        page = text_of(normal_user(job[1]).get("/"))
    assert "Yesterday: all 1,440 instants accounted for, 2 skipped" in page
    assert sum("xxl_job_day" in each or "xxl_job_seal" in each for each in found) == 1
    other = normal_user(add_group("x-app", "X"), username="other")
    assert "instants accounted for" not in text_of(other.get("/"))
    midnight_ms = start_of(today() - timedelta(days=1), ZONE) + MINUTE_MS
    monkeypatch.setattr("app.console.report.dashboard.now_ms", lambda: midnight_ms)
    assert "Yesterday:" not in text_of(admin.get("/"))


def test_the_page_of_a_job_has_its_last_days(admin: Console, job: tuple[int, int]) -> None:
    page = admin.get(f"/jobinfo/{job[0]}")
    assert "30 days: 2,875 of 2,880 on time, 2 unexplained, 2 skipped, 1 late" in text_of(page)
    assert f"/completeness?job_id={job[0]}&amp;from={days_ago(29)}&amp;to={days_ago(0)}" in page.text
    assert "completeness-line danger" in page.text
    other = add_job(job[1], job_desc="never due")
    assert "days:" not in text_of(admin.get(f"/jobinfo/{other}"))


def test_filters_can_be_typed(admin: Console, job: tuple[int, int]) -> None:
    job_id, _group_id = job
    response = admin.get(f'/completeness?month=2026-05&q="each minute" days:{days_ago(2)}')
    assert response.headers["Location"].endswith(f"/completeness?job_id={job_id}&{period(2, 2)}")
    hint = admin.get("/completeness?q=to:soon")
    assert "“to:” is a time, as 2024-05-01." in text_of(hint)
    assert f"Job: {job_id} =each minute" in text_of(admin.get(f"/completeness?group_id=7&jobId={job_id}"))
