"""Preview: what becomes of each instant, in order, and that those that run are the effective ones."""

from datetime import UTC, date, datetime
from itertools import takewhile
from typing import Any

import pytest

from app.clock import DAY_MS, HOUR_MS, Millis
from app.domain.calendars.blackouts import Afterwards, Blackout
from app.domain.calendars.calendar import Calendar, DayKind
from app.domain.calendars.day_rule import EnteredRule, On, Otherwise, day_rule
from app.domain.calendars.effective import JobRules
from app.domain.calendars.preview import Fate, instants, preview
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule, next_after_ms
from tests.support.truth_table import truth_table

#: Wednesday, 2026-09-30 00:00 UTC
BEGIN: Millis = 1_790_726_400_000
FIRST = date(2026, 10, 1)
CN = Calendar(
    "cn",
    days={**dict.fromkeys((FIRST, date(2026, 10, 2)), DayKind.HOLIDAY), date(2026, 10, 4): DayKind.WORKDAY},
    names={FIRST: "国庆节"},
    valid_until=date(2026, 10, 31),
)
DAILY = "0 0 9 * * ?"


def cron(conf: str, *blackouts: Blackout, **rule: Any) -> Schedule:
    rules = JobRules(day_rule(CN, EnteredRule("cn", **rule)) if rule else None, blackouts)
    return Schedule(ScheduleType.CRON, conf, "UTC", rules=rules)


def day_of(at_ms: Millis | None) -> str:
    return "–" if at_ms is None else f"{datetime.fromtimestamp(at_ms / 1000, UTC):%d}"


def shown(schedule: Schedule, most: int) -> list[str]:
    rows = preview(schedule, BEGIN, 4, most=most)
    return [f"{day_of(row.raw_ms)} {row.fate} {day_of(row.due_ms or row.into_ms)}" for row in rows]


DARK = Blackout(1, BEGIN + DAY_MS, BEGIN + 3 * DAY_MS, reason="year end")
ONCE = DARK._replace(afterwards=Afterwards.RUN_ONCE)
PREVIOUS, NEXT = Otherwise.PREVIOUS, Otherwise.NEXT


@truth_table(
    "schedule, rows",
    [
        (cron(DAILY), ["30 runs 30", "01 runs 01", "02 runs 02", "03 runs 03"]),
        (
            cron(DAILY, on=On.WORKDAYS),
            [
                "30 runs 30",
                "01 skipped –",
                "02 skipped –",
                "03 skipped –",
                "04 runs 04",
                "05 runs 05",
                "06 runs 06",
            ],
        ),
        (cron("0 0 9 1 * ?", otherwise=NEXT), ["01 moved 04", "01 moved 02", "01 runs 01", "01 runs 01"]),
        (cron("0 0 9 3 * ?", otherwise=PREVIOUS), ["03 moved 30", "03 runs 03", "03 runs 03", "03 moved 01"]),
        (
            cron(DAILY, otherwise=NEXT),
            [
                "30 runs 30",
                "01 merged 04",
                "02 merged 04",
                "03 merged 04",
                "04 runs 04",
                "05 runs 05",
                "06 runs 06",
            ],
        ),
        (cron("0 0 9 25-31 * ?", nth=-1), ["30 runs 30", "25 skipped –", "26 skipped –", "27 skipped –"]),
        (
            cron(DAILY, DARK),
            ["30 runs 30", "01 blackout –", "02 blackout –", "03 runs 03", "04 runs 04", "05 runs 05"],
        ),
        (cron(DAILY, ONCE), ["30 runs 30", "01 blackout –", "02 blackout 03", "03 runs 03", "04 runs 04"]),
        (Schedule(ScheduleType.FIX_DELAY, "60", "UTC"), []),
    ],
)
def test_what_becomes_of_instants(schedule: Schedule, rows: list[str]) -> None:
    assert shown(schedule, max(len(rows), 4)) == rows


def test_days_say_why_an_instant_is_skipped() -> None:
    rows = [row for row in instants_until(cron("0 * * * * ?", on=On.WORKDAYS), 45) if row.due_ms is None]
    assert (rows[0].day_name, rows[0].day_kind, rows[0].by_weekday) == ("国庆节", DayKind.HOLIDAY, False)
    assert (rows[1].day_name, rows[1].by_weekday) == ("", False)
    assert (rows[2].by_weekday, rows[2].is_known) == (True, True)
    assert all(row.has_more for row in rows)
    assert [row.is_known for row in rows][-2:] == [False, False]


def test_a_blackout_gives_its_reason() -> None:
    row = preview(cron("0 0 0/6 * * ?", DARK), BEGIN + 20 * HOUR_MS, 1, most=1)[0]
    assert (row.fate, row.reason, row.has_more) == (Fate.BLACKOUT, "year end", True)
    endless = cron("0 0 9 * * ?", DARK._replace(until_ms=None))
    assert [row.fate for row in preview(endless, BEGIN + DAY_MS, 5, most=5)] == [Fate.BLACKOUT] * 5


@pytest.mark.parametrize(
    "schedule",
    [
        cron(DAILY, ONCE, on=On.HOLIDAYS),
        cron("0 0/30 8-9 * * ?", ONCE, otherwise=PREVIOUS),
        cron("0 0 9 3,4,10 * ?", DARK, otherwise=NEXT),
        cron("0 15 9 * * ?", on=On.WORKDAYS, nth=3),
    ],
)
def test_the_instants_that_run_are_the_effective_ones(schedule: Schedule) -> None:
    until_ms = BEGIN + 60 * DAY_MS
    due = {row.due_ms for row in instants_until(schedule, 95) if row.due_ms and row.due_ms <= until_ms}
    expected, at_ms = list[Millis](), BEGIN
    while (next_ms := next_after_ms(schedule, at_ms)) is not None and next_ms <= until_ms:
        expected.append(next_ms)
        at_ms = next_ms
    assert sorted(due) == expected


def instants_until(schedule: Schedule, days: int) -> list[Any]:
    return list(takewhile(lambda row: row.raw_ms < BEGIN + days * DAY_MS, instants(schedule, BEGIN)))
