"""Days of countries against golden tables, which say where each value is from; and what is refused."""

import csv
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from app.domain.calendars.calendar import SATURDAY_AND_SUNDAY, DayKind
from app.errors import InvalidInput
from app.services.calendars.countries import country_days, known_countries, known_years
from app.services.calendars.days import CountryDays
from tests.executor_client.process import ROOT
from tests.support.truth_table import truth_table

DATA = Path(__file__).parents[2] / "data" / "calendars"


def golden(name: str) -> CountryDays:
    """Read a table of one year."""
    lines = (DATA / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return CountryDays(
        days={date.fromisoformat(row["date"]): DayKind(row["kind"]) for row in rows},
        names={date.fromisoformat(row["date"]): row["name"] for row in rows},
        valid_until=date(int(name[-4:]), 12, 31),
    )


def workdays(days: CountryDays, year: int) -> int:
    """Return how many days of a year are workdays."""
    first = date(year, 1, 1)
    all_days = (first + timedelta(days=n) for n in range((date(year + 1, 1, 1) - first).days))
    usual = {True: DayKind.HOLIDAY, False: DayKind.WORKDAY}
    kinds = [days.days.get(day, usual[day.isoweekday() in days.weekend]) for day in all_days]
    return kinds.count(DayKind.WORKDAY)


@truth_table(
    "country, name",
    [
        ("CN", "cn_2024"),
        ("CN", "cn_2025"),
        ("cn", "cn_2026"),
        ("DE", "de_2026"),
        ("DE-BY", "de_by_2026"),
        ("US", "us_2026"),
        ("JP", "jp_2026"),
    ],
)
def test_days_are_those_of_the_golden_table(country: str, name: str) -> None:
    assert country_days(country, [int(name[-4:])]) == golden(name)


@truth_table("year, holidays_of_the_law", [(2024, 11), (2025, 13), (2026, 13)])
def test_each_weekday_off_but_holidays_of_the_law_is_made_up_for(year: int, holidays_of_the_law: int) -> None:
    """Computed without any table of days: 11 holidays, and 13 since the decree 795 of the State Council."""
    total = (date(year + 1, 1, 1) - date(year, 1, 1)).days
    weekends = sum((date(year, 1, 1) + timedelta(days=n)).isoweekday() > 5 for n in range(total))
    assert workdays(golden(f"cn_{year}"), year) == total - weekends - holidays_of_the_law


def test_several_years_are_one_calendar() -> None:
    days = country_days("CN", [2025, 2024, 2026, 2026])
    assert days.days == golden("cn_2024").days | golden("cn_2025").days | golden("cn_2026").days
    assert days.valid_until == date(2026, 12, 31)


@truth_table(
    "country, year, day, kind, name",
    [
        ("RU", 2027, date(2027, 2, 20), DayKind.WORKDAY, "День защитника Отечества"),
        ("CN", 2020, date(2020, 9, 27), DayKind.WORKDAY, "国庆节"),
        ("CN", 2020, date(2020, 10, 1), DayKind.HOLIDAY, "中秋节; 国庆节"),
        ("HU", 2026, date(2026, 1, 10), DayKind.WORKDAY, "Újév"),
        ("US", 2027, date(2027, 12, 31), DayKind.HOLIDAY, "New Year's Day (observed)"),
    ],
)
def test_days_of_other_years_and_countries(
    country: str, year: int, day: date, kind: DayKind, name: str
) -> None:
    days = country_days(country, [year])
    assert (days.days[day], days.names[day]) == (kind, name)


def test_a_country_has_its_own_weekend() -> None:
    assert country_days("IL", [2026]).weekend == {5, 6}
    assert country_days("HK", [2026]).weekend == {7}
    assert country_days("CN", [2026]).weekend == SATURDAY_AND_SUNDAY


@truth_table(
    "country, years, field, hint",
    [
        ("ZZ", [2026], "country", "two letters, such as CN"),
        ("", [2026], "country", "two letters"),
        ("DE-XX", [2026], "country", "DE-BW, DE-BY"),
        ("CN-11", [2026], "country", "known are CN"),
        ("CN", [2000], "years", "not known for 2000, only for 2001 to"),
        # the library marks its days as estimates
        ("SG", [2035], "years", "not known for 2035, only for 2001 to"),
        ("MA", [2026], "years", "estimates in each year"),
        ("CN", [2024, 2026], "years", "follow each other"),
        ("CN", [], "years", "follow each other"),
    ],
)
def test_what_is_not_certain_is_refused(country: str, years: list[int], field: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        country_days(country, years)
    assert refused.value.field == field
    assert hint in refused.value.message


def test_a_year_that_is_not_announced_is_refused() -> None:
    """The library has the holidays of the law for it, but neither the blocks nor the make-up workdays."""
    known = known_years("CN")
    assert known is not None
    assert known[0] == 2001
    assert known[1] >= 2026
    with pytest.raises(InvalidInput, match=f"not known for {known[1] + 1}, only for 2001 to {known[1]}"):
        country_days("CN", [known[1], known[1] + 1])


def test_countries_have_names() -> None:
    names = dict(known_countries())
    assert len(names) > 200
    assert (names["CN"], names["IM"], names["US"]) == ("China", "Isle of Man", "United States")


def test_the_library_is_loaded_with_the_first_days() -> None:
    """Consoles import this module at their start."""
    code = "import sys, app.services.calendars.countries; print('holidays' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.strip() == "False"
