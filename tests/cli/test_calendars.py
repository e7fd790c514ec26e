"""Commands ``calendars``: list, show with the days of a year, import, delete."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.fake_api import FakeApi, problem
from tests.support.cli import Run

CN = {
    "name": "cn",
    "weekend": ["saturday", "sunday"],
    "valid_until": "2026-12-31",
    "unknown": "weekday",
    "workdays": 6,
    "holidays": 33,
    "version": 1,
    "changed_at": "2026-01-01T00:00:00.000Z",
    "changed_by": "ann",
    "jobs": 2,
}
DETAIL = {
    **CN,
    "days": {"2026-10-01": "holiday"},
    "names": {"2026-10-01": "国庆节"},
    "versions": [],
    "used_by": [7],
}
DAY = {
    "date": "2026-10-01",
    "kind": "holiday",
    "name": "国庆节",
    "by_rule": False,
    "is_makeup": False,
    "is_known": True,
}
PLAIN = {**DAY, "date": "2026-10-09", "kind": "workday", "name": "", "by_rule": True}


def test_calendars_are_listed(api: FakeApi, run: Run) -> None:
    api.page("/calendars", CN, {**CN, "name": "de", "weekend": [], "valid_until": None})
    lines = [line.split() for line in run("calendars", "list").stdout.splitlines()]
    assert lines[1] == ["cn", "Sat,", "Sun", "33", "6", "2026-12-31", "2"]
    assert lines[2] == ["de", "-", "33", "6", "-", "2"]
    assert run("calendars", "list", "-q").stdout == "cn\nde\n"


def test_a_calendar_is_shown_with_the_days_of_a_year(api: FakeApi, run: Run) -> None:
    api.on("GET", "/calendars/cn", DETAIL)
    assert "2026-12-31" in run("calendars", "show", "cn").stdout
    assert json.loads(run("calendars", "show", "cn", "-o", "json").stdout) == DETAIL
    api.on("GET", "/calendars/cn/days.*", {"items": [DAY, PLAIN]})
    shown = run("calendars", "show", "cn", "--year", "2026")
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["DATE", "2026-10-01"]
    assert "1 workdays" in shown.stderr
    assert json.loads(run("calendars", "show", "cn", "--year", "2026", "-o", "json").stdout) == [DAY, PLAIN]
    missing = run("calendars", "show", "xx")
    assert (missing.exit_code, "there is no calendar xx" in missing.stderr) == (1, True)


def test_days_are_imported(api: FakeApi, run: Run, tmp_path: Path) -> None:
    api.on("POST", "/calendars/cn/import", DETAIL)
    ended = run("calendars", "import", "cn", "--country", "CN", "--years", "2026,2027")
    assert ended.stdout == "calendar cn: 33 holidays, 6 make-up workdays, valid until 2026-12-31\n"
    assert api.seen[-1].body == {"replace": False, "country": "CN", "years": [2026, 2027]}
    file = tmp_path / "days.csv"
    file.write_text("\ufeff2026-10-01,休,国庆节\n", encoding="utf-8")
    run("calendars", "import", "cn", "--csv", str(file), "--replace")
    assert api.seen[-1].body == {"replace": True, "csv": "2026-10-01,休,国庆节\n"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "one of --country"),
        (("--country", "CN"), "--years"),
        (("--years", "2026"), "one of --country"),
        (("--country", "CN", "--years", "next"), "2026,2027"),
    ],
)
def test_what_cannot_be_imported_is_refused(run: Run, api: FakeApi, options: Any, message: str) -> None:
    ended = run("calendars", "import", "cn", *options)
    assert (ended.exit_code, message in ended.stderr) == (2, True)


def test_a_calendar_is_deleted(api: FakeApi, run: Run) -> None:
    api.on("GET", "/calendars/cn", DETAIL)
    api.on("DELETE", "/calendars/cn", None)
    assert run("calendars", "delete", "cn").stdout == "calendar cn: deleted\n"
    api.on("DELETE", "/calendars/cn", problem(409, "Jobs use this calendar: pay (7)"))
    assert "pay (7)" in run("calendars", "delete", "cn").stderr
    assert "has no /" in run("calendars", "delete", "c/n").stderr


def test_next_times_say_what_becomes_of_instants(api: FakeApi, run: Run) -> None:
    base = {
        "at": "A",
        "local": "L",
        "runs_at": None,
        "merged_into": None,
        "has_more": False,
        "reason": "",
        "is_known": True,
    }
    day = {**base, "day_kind": "holiday", "day_name": "国庆节"}
    instants = [
        {**day, "fate": "runs"},
        {**day, "fate": "skipped", "has_more": True},
        {**day, "fate": "moved", "runs_at": "R"},
        {**day, "fate": "moved", "runs_at": "A", "day_name": ""},
        {**day, "fate": "merged", "merged_into": "M"},
        {**day, "fate": "blackout", "reason": "year end", "runs_at": "R"},
        {**day, "fate": "skipped"},
        {**day, "fate": "skipped", "day_name": ""},
        {**day, "fate": "skipped", "local": "LATER"},
        {**day, "fate": "runs", "local": "2027-01-04T09:00:00", "at": "2027", "is_known": False},
    ]
    api.on("POST", "/schedules/next-times", {"time_zone": "UTC", "items": [], "instants": instants})
    assert run("next-times", "0 0 9 * * ?").stderr.splitlines()[1:] == [
        "L: skipped: 国庆节, with others of the day",
        "L: moved to R (国庆节)",
        "L: moved to LATER (no workday)",
        "L: merged into M",
        "L: blackout: year end, runs at R",
        "L to LATER: skipped: 国庆节",
        "the calendar does not know the days from 2027-01-04 on yet",
    ]


def test_the_other_days_of_a_rule_for_one_of_each_month_have_a_reason(api: FakeApi, run: Run) -> None:
    job = {"id": 7, "description": "pay", "calendar": {"name": "cn", "on": "workdays", "nth": 3}}
    instant = {"at": "A", "local": "L", "fate": "skipped", "day_kind": "workday", "day_name": ""}
    more = {"runs_at": None, "merged_into": None, "has_more": False, "reason": "", "is_known": True}
    api.on("GET", "/jobs/7", job)
    api.on("GET", "/jobs/7/next-times", {"items": [], "instants": [{**instant, **more}]})
    shown = run("jobs", "next-times", "7").stderr.splitlines()
    assert shown[1:] == ["L: skipped: not the chosen day of the month"]


def test_of_many_instants_that_do_not_run_the_first_are_named(api: FakeApi, run: Run) -> None:
    instant = {
        "at": "A",
        "local": "L",
        "fate": "merged",
        "merged_into": "M",
        "day_name": "",
        "day_kind": None,
    }
    more = {"runs_at": None, "has_more": False, "reason": "", "is_known": True}
    instants = [{**instant, **more} for _ in range(12)]
    api.on("POST", "/schedules/next-times", {"time_zone": "UTC", "items": [], "instants": instants})
    last = run("next-times", "0 0 9 * * ?").stderr.splitlines()[-1]
    assert last == "and 2 more that do not run as the expression says; all: -o json"
