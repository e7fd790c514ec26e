"""Load page: scheduled starts per hour, the jobs of an hour, and a calendar of the last year's runs."""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from html import unescape
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from flask import Flask

from app.clock import now_ms
from app.console.report.planned_hours import PlannedHours, groups_of, planned_hours
from app.console.report.run_calendar import month_and_day_labels
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right, system_actor
from app.domain.calendars.ruled_starts import estimate_ruled
from app.domain.schedules import planned_starts
from app.domain.schedules.planned_starts import (
    QUARTER_MS,
    HourlyStarts,
    next_days,
)
from app.models.job import Job
from app.models.report import DayReport
from app.models.user import User
from app.services.report import planned_load
from app.services.report.planned_load import PlannedLoad
from app.services.report.reporting import midnight_ms
from app.settings.config import Config
from app.store.runs import reporting
from app.store.runs.reporting import Counts
from tests.console.pages import is_at_login, markup_of, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import make_job
from tests.support.statements import statements

#: the counts are tested on every database in tests/store
pytestmark = pytest.mark.databases("sqlite")


def part(page: str, begin: str, end: str = "</section>") -> str:
    return page.split(begin, 1)[1].split(end, 1)[0]


def bars(page: str) -> list[str]:
    return re.findall(r"<title>(.*?)</title>", part(page, 'id="planned"'))


def squares(page: str) -> dict[str, str]:
    """Return day -> its part of the calendar."""
    drawing = part(page, '<svg class="chart calendar" data-bars="7"', "</svg>")
    return {
        re.findall(r"\d{4}-\d\d-\d\d", square)[-1 if "href" in square.split("<title>")[0] else 0]: square
        for square in drawing.split("<a")[1:]
    }


def test_it_needs_a_login_and_a_group(console: Console, normal_user: Callable[..., Console]) -> None:
    assert is_at_login(console.get("/load"))
    page = text_of(normal_user().get("/load"))
    assert "You have no access to any executor group" in page
    assert "Planned starts" not in page


def test_without_enabled_jobs_a_hint_is_shown(admin: Console) -> None:
    add_job(add_group())
    page = text_of(admin.get("/load"))
    assert "No schedule is on yet" in page
    assert "No runs yet" in page


def test_starts_of_the_next_hours_and_the_jobs_of_one_hour_are_shown(admin: Console) -> None:
    group_id = add_group()
    add_job(group_id, job_desc="each minute", schedule_conf="0 * * * * ?", start=True)
    add_job(group_id, job_desc="thrice <b>", schedule_conf="0 0/20 * * * ?", start=True)
    add_job(group_id, job_desc="stopped", schedule_conf="0 * * * * ?")
    at_five = add_job(
        group_id, job_desc="at five", schedule_conf="* 0 5 * * ?", time_zone="Asia/Tokyo", start=True
    )
    response = admin.get("/load?all=1")
    page, found = response.text, bars(response.text)
    assert len(found) == 24
    # five in Tokyo is four in Shanghai, the zone of the reader
    assert sorted(label.split(" ", 2)[2] for label in found) == sorted(
        f"{hour:02d}:00 · {63 if hour != 4 else 123} starts" for hour in range(24)
    )
    starters = part(page, 'id="starters"')
    assert "the busiest of the next 24 hours" in starters
    assert re.findall(r'/jobinfo/(\d+)">', starters)
    assert "thrice &lt;b&gt;" in starters
    assert re.search(r"Every 20 minutes\s+<[^>]*>\s*<span", starters)
    assert text_of(response).count("busiest: 04:00") == 1
    drawn = part(page, 'id="planned"').split("<a ")
    quiet_href = next(
        unescape(re.findall(r'href="([^"]+)#starters"', bar)[0])
        for bar in drawn[:0:-1]
        if "aria-current" not in bar
    )
    assert "stopped" not in starters
    assert re.search(rf"{at_five}\s+at five", starters)
    quiet = part(admin.get(quiet_href.removeprefix("/xxl-job-admin")).text, 'id="starters"')
    assert "at five" not in quiet
    assert re.findall(r'data-label="Starts">(\d+)<', quiet) == ["60", "3"]


def test_an_hour_outside_the_period_becomes_the_busiest_hour(admin: Console) -> None:
    add_job(add_group(), schedule_conf="0 0 3 * * ?", start=True)
    for hour_param in ("0", "-1", "x", "99999999999999", str(now_ms() // QUARTER_MS - 8)):
        assert "03:00 · 1 start" in part(admin.get(f"/load?hour={hour_param}").text, 'id="starters"')


def test_an_hour_without_a_start_says_so(admin: Console) -> None:
    add_job(add_group(), schedule_conf="0 0 3 * * ?", start=True)
    four_ms = midnight_ms(now_ms(), "Asia/Shanghai", -1) + 4 * 4 * QUARTER_MS
    assert "No jobs start in this hour" in text_of(admin.get(f"/load?hour={four_ms // QUARTER_MS}"))


def test_a_user_sees_only_starts_of_visible_groups(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    visible, foreign = add_group(), add_group("other-app", "Other")
    add_job(visible, job_desc="mine", schedule_conf="0 0 * * * ?", start=True)
    add_job(foreign, job_desc="theirs", schedule_conf="* * * * * ?", start=True)
    page = normal_user(visible, rights={visible: frozenset({Right.VIEW})}).get("/load").text
    assert {label.split(" · ")[1] for label in bars(page)} == {"1 start"}
    assert "theirs" not in page
    assert "Only jobs you can view are counted." in page
    assert {label.split(" · ")[1] for label in bars(admin.get("/load?all=1").text)} == {"3,601 starts"}


def test_schedules_that_are_too_slow_or_too_many_are_left_out_with_a_hint(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = add_group()
    for minute in range(4):
        add_job(group_id, schedule_conf=f"0 {minute} * * * ?", start=True)
    at_ms = now_ms()
    with read_scope() as session:
        load = planned_load.planned_load(
            session, system_actor("test"), next_days(at_ms, "UTC", days=1), now_ms=at_ms, budget_ms=0
        )
    assert (load.jobs, load.unread, load.too_many) == (1, 3, 0)
    monkeypatch.setattr(planned_load, "SCHEDULES_MAX", 3)
    page = text_of(admin.get("/load"))
    assert "1 job is left out" in page
    assert "3 jobs on a schedule" in page


def test_schedules_left_out_are_counted_at_the_next_request(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id, at_ms, read_ms = add_group(), now_ms(), 0
    window = next_days(at_ms, "UTC", days=7)
    for second in range(6):
        add_job(group_id, schedule_conf=f"{second} 1/15 * * * ?", start=True)
    make_job(
        job_group=group_id,
        schedule_type="FIX_RATE",
        schedule_conf="3600",
        trigger_status=1,
        trigger_next_time=at_ms,
    )
    make_job(job_group=group_id, schedule_type="AT", schedule_conf="2000-01-01 00:00:00", trigger_status=1)

    def slow(*args: Any) -> HourlyStarts:
        """Take 40 ms for each schedule not cached."""
        nonlocal read_ms
        misses = planned_starts._cron_starts.cache_info().misses
        starts = estimate_ruled(*args)
        read_ms += 40 * (planned_starts._cron_starts.cache_info().misses - misses)
        return starts

    monkeypatch.setattr(planned_load, "estimate_ruled", slow)
    monkeypatch.setattr(planned_load, "monotonic_ms", lambda: read_ms)
    loads = []
    for _request in range(3):
        with read_scope() as session:
            loads.append(planned_load.planned_load(session, system_actor("test"), window, now_ms=at_ms))
    # the job with a fixed period is counted at once
    assert [load.unread for load in loads] == [4, 1, 0]
    assert sum(loads[-1].starts[group_id]) == (6 * 4 + 1) * window.hours


def test_an_invalid_schedule_does_not_break_the_page(admin: Console) -> None:
    group_id = add_group()
    add_job(group_id, schedule_conf="0 0 * * * ?", start=True)
    broken = add_job(group_id, job_desc="broken", schedule_conf="0 0 * * * ?", start=True)
    with session_scope() as session:
        session.get_one(Job, broken).schedule_conf = "99 nonsense"
    assert {label.split(" · ")[1] for label in bars(admin.get("/load").text)} == {"1 start"}


def day_of(zone: str, back: int) -> str:
    return datetime.fromtimestamp(midnight_ms(now_ms(), zone, back) / 1000, ZoneInfo(zone)).date().isoformat()


def save_day(zone: str, back: int, counts: dict[int, Counts]) -> str:
    """Store the counts of a day as the scheduler does; return its name."""
    day_ms = midnight_ms(now_ms(), zone, back)
    with session_scope() as session:
        reporting.save_report(session, day_ms, counts, now_ms=now_ms())
    return day_of(zone, back)


def test_the_calendar_shows_runs_failures_and_links_to_logs(admin: Console, settings: Config) -> None:
    group_id, zone = add_group(), settings.time_zone
    succeeding = save_day(zone, 3, {group_id: Counts(0, 100, 0)})
    some = save_day(zone, 2, {group_id: Counts(2, 95, 5)})
    failing = save_day(zone, 1, {group_id: Counts(0, 10, 2)})
    old = save_day(zone, 200, {group_id: Counts(0, 40, 0)})
    page = markup_of(admin.get("/load"))
    found = squares(page)
    assert len(found) in range(52 * 7 + 1, 53 * 7 + 1)
    assert "100 runs</title>" in found[succeeding]
    assert "level-4" in found[succeeding]
    assert "flaw" not in found[succeeding]
    assert "102 runs · 5 failed · 2 running" in found[some]
    assert "<circle" in found[some]
    assert "12 runs · 2 failed" in found[failing]
    assert "<path" in found[failing]
    assert f"?range=custom&amp;from={succeeding}T00:00:00&amp;to={succeeding}T23:59:59" in found[succeeding]
    # its log was cleared
    assert "40 runs" in found[old]
    assert "href" not in found[old]
    quiet = day_of(zone, 10)
    assert "no run" in found[quiet]
    assert "level-0" in found[quiet]
    assert "href" not in found[quiet]
    table = part(page, "<summary>As a table", "</table>")
    assert re.findall(r"\d{4}-\d\d-\d\d(?=<)", table) == [failing, some, succeeding, old]
    assert "254 runs · 7 failed" in text_of(admin.get("/load"))


def test_a_day_links_to_its_runs_in_the_zone_of_the_reader(admin: Console, settings: Config) -> None:
    day = save_day(settings.time_zone, 1, {add_group(): Counts(0, 1, 0)})
    before = (datetime.fromisoformat(day) - timedelta(days=1)).date().isoformat()
    with session_scope() as session:
        session.query(User).update({"time_zone": "UTC"})
    assert f"from={before}T16:00:00&amp;to={day}T15:59:59" in admin.get("/load").text


def test_a_user_sees_runs_of_visible_groups_and_a_hint_about_uncounted_days(
    normal_user: Callable[..., Console], settings: Config
) -> None:
    visible, foreign = add_group(), add_group("other-app", "Other")
    day = save_day(settings.time_zone, 1, {visible: Counts(0, 3, 0), foreign: Counts(0, 70, 9)})
    uncounted = DayReport(
        trigger_day=midnight_ms(now_ms(), settings.time_zone, 5), running_count=0, suc_count=8, fail_count=0
    )
    with session_scope() as session:
        session.add(uncounted)
    page = normal_user(visible).get("/load").text
    found = squares(page)
    assert "3 runs</title>" in found[day]
    late = day_of(settings.time_zone, 5)
    assert "not counted yet" in found[late]
    assert "unknown" in found[late]
    assert "have not been counted yet" in page
    assert "73" not in part(page, 'id="calendar"').split("<svg")[0]


def test_if_not_even_today_is_counted_a_hint_is_shown(
    normal_user: Callable[..., Console], settings: Config
) -> None:
    with session_scope() as session:
        today_ms = midnight_ms(now_ms(), settings.time_zone)
        session.add(DayReport(trigger_day=today_ms, running_count=0, suc_count=8, fail_count=0))
    page = normal_user(add_group()).get("/load").text
    assert "on these days have not been counted yet" in page
    assert "No runs yet" not in page
    assert {"unknown" in square for square in squares(page).values()} == {True}


def test_the_menu_has_it_only_for_users_who_see_a_group(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    sidebar = part(admin.get("/load").text, 'class="sidebar"', "</nav>")
    assert re.findall(r'data-page="(\w+)"[^>]*aria-current="page"', sidebar) == ["load"]
    assert 'data-page="load"' not in part(normal_user().get("/").text, 'class="sidebar"', "</nav>")


def test_the_menu_has_it_for_a_user_of_a_group(admin: Console, normal_user: Callable[..., Console]) -> None:
    group_id = add_group()
    viewer = normal_user(group_id, rights={group_id: frozenset({Right.VIEW})})
    assert 'data-page="load"' in part(viewer.get("/").text, 'class="sidebar"', "</nav>")


def test_frequent_jobs_are_left_out_unless_all_are_wanted(admin: Console) -> None:
    group_id = add_group()
    add_job(group_id, job_desc="each minute", schedule_conf="0 * * * * ?", start=True)
    only = admin.get("/load").text
    assert "left out" not in only, "there is no other job"
    assert {label.split(" · ")[1] for label in bars(only)} == {"60 starts"}
    add_job(group_id, job_desc="at nine", schedule_conf="0 0 9 * * ?", start=True)
    page = admin.get("/load")
    assert "1 job that runs more often than hourly is left out. Show all jobs" in text_of(page)
    assert [label.split(" ", 2)[2] for label in bars(page.text) if "· 0" not in label] == ["09:00 · 1 start"]
    every = admin.get("/load?all=1")
    assert "Leave out jobs that run more often than hourly" in text_of(every)
    assert "/load?all=1&amp;hour=" in every.text
    assert len(bars(every.text)) == 24


def test_the_hours_are_stacked_by_executor_group(admin: Console) -> None:
    many, few = add_group(title="Orders"), add_group("other-app", "Mail")
    for job_group in (many, many, few):
        add_job(job_group, schedule_conf="0 0 9 * * ?", start=True)
    page = admin.get("/load").text
    (label,) = (label for label in bars(page) if "· 0" not in label)
    assert label.endswith("09:00 · 3 starts · Orders 2 · Mail 1")
    planned = part(page, 'id="planned"')
    assert re.findall(r'class="bar (group-\d)" data-n="(\d)"', planned) == [
        ("group-1", "2"),
        ("group-2", "1"),
    ]
    assert re.findall(r"</svg>\s+(\w+) <b>(\d)</b>", planned) == [("Orders", "2"), ("Mail", "1")]


def test_jobs_that_start_together_are_listed_with_their_minute(admin: Console) -> None:
    group_id, other = add_group(title="Payments"), add_group("other-app", "Other")
    together = [add_job(group_id, schedule_conf=f"{second} 30 3 * * ?", start=True) for second in (0, 30)]
    alone = add_job(group_id, schedule_conf="0 45 3 * * ?", start=True)
    add_job(other, schedule_conf="0 30 3 * * ?", start=True)
    page = admin.get("/load").text
    clashes = part(page, 'id="clashes"')
    ((address, time),) = re.findall(r'<a href="([^"]+)">\w+ \S+ ([\d:]+)</a>', clashes)
    assert time == "03:30"
    assert "2 jobs of Payments" in clashes
    hour = part(page, 'id="starters"')
    assert re.findall(r"<title>([\d:]+) · (\d)", hour) == [("03:30", "3"), ("03:45", "1")]
    minute = unescape(address).removeprefix("/xxl-job-admin").removesuffix("#starters")
    starters = re.findall(r'/jobinfo/(\d+)">', part(admin.get(minute).text, 'id="starters"'))
    assert {str(job_id) for job_id in together} < set(starters)
    assert str(alone) not in starters
    assert "Jobs that start at 03:30" in text_of(admin.get(minute))


def test_the_number_of_statements_does_not_grow_with_the_jobs(admin: Console) -> None:
    counts = []
    for number in range(1, 4):
        group_id = add_group(f"sample-app-{number}")
        for _job in range(12 * number):
            add_job(group_id, schedule_conf="0 0 * * * ?", start=True)
        with statements() as seen:
            admin.get("/load")
        counts.append(len(seen))
    assert len(set(counts)) == 1
    assert counts[0] <= 10


@pytest.mark.parametrize(
    ("first", "months"), [("2025-11-24", ["Dec", "Jan"]), ("2025-11-10", ["Nov", "Dec"])]
)
def test_the_calendar_names_a_month_in_its_first_week(app: Flask, first: str, months: list[str]) -> None:
    days = [date.fromisoformat(first) + timedelta(days=past) for past in range(365)]
    with app.test_request_context("/load"):
        texts = [label.text for label in month_and_day_labels(days)]
    assert texts[3:5] == months


def test_repeated_and_missing_hours_of_clock_changes_are_shown(app: Flask) -> None:
    def drawn(first: str) -> PlannedHours:
        at = datetime.fromisoformat(first).replace(tzinfo=ZoneInfo("Europe/Berlin"))
        window = next_days(int(at.timestamp()) * 1000, "Europe/Berlin", days=1)
        load = PlannedLoad(window, {1: [1] * window.hours}, [], 0)
        with app.test_request_context("/load"):
            return planned_hours(load, groups_of(load, {1: "Orders"}), "Europe/Berlin", 0, base="/load?")

    twice, never = drawn("2026-10-24T23:30"), drawn("2026-03-28T23:30")
    assert [hour.label for hour in twice.days[0].hours if hour][2:4] == [
        "Sun 2026-10-25 02:00 · 2 starts · this hour occurs twice (clock change)",
        "Sun 2026-10-25 03:00 · 1 start",
    ]
    assert [number for number, hour in enumerate(never.days[0].hours) if hour is None] == [2]
    assert (len(twice.chart.bars), len(never.chart.bars)) == (24, 23)


def test_the_job_form_links_to_the_quiet_hours(admin: Console) -> None:
    job_id = add_job(add_group())
    for path in ("/jobinfo/new", f"/jobinfo/{job_id}/edit"):
        assert "/load" in admin.get(path).text, path
