"""Rules of a day rule: which calendars and schedules go with it, and which leave no instant."""

import json
from collections.abc import Collection
from datetime import date
from typing import Any

from app.domain.calendars.calendar import Calendar, DayKind
from app.domain.calendars.rules import check_rule, instants_a_day
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import Schedule
from app.errors import InvalidInput
from tests.support.factories import T0
from tests.support.truth_table import truth_table

CRON, RATE, DELAY, NONE = ScheduleType.CRON, ScheduleType.FIX_RATE, ScheduleType.FIX_DELAY, ScheduleType.NONE
DAILY = "0 0 9 * * ?"


class Calendars:
    """Calendars of a test."""

    def __init__(self, *calendars: Calendar) -> None:
        self._calendars = {calendar.name: calendar for calendar in calendars}

    def find(self, name: str) -> Calendar | None:
        return self._calendars.get(name)

    def names(self) -> Collection[str]:
        return self._calendars


CN = Calendar("cn", days={date(2024, 5, 1): DayKind.HOLIDAY})
NEVER = Calendar("closed", weekend=frozenset(range(1, 8)))
ALL = Calendars(CN, NEVER)


def errors(kind: ScheduleType, conf: str, lookup: Calendars = ALL, **rule: Any) -> dict[str, str]:
    readable_by_java = rule.pop("readable_by_java", False)
    schedule = Schedule(kind, conf, "UTC", calendar=json.dumps({"name": "cn", **rule}))
    try:
        check_rule(schedule, lookup, now_ms=T0, readable_by_java=readable_by_java)
    except InvalidInput as exc:
        return {error.field: str(error) for error in exc.errors}
    return {}


@truth_table(
    "kind, conf, rule, fields",
    [
        (CRON, DAILY, {}, []),
        (CRON, DAILY, {"otherwise": "previous"}, []),
        (CRON, DAILY, {"nth": -1}, []),
        (CRON, DAILY, {"nth": 3, "otherwise": "next"}, ["calendar.otherwise"]),
        (RATE, "3600", {"on": "holidays"}, []),
        (RATE, "3600", {"otherwise": "next"}, ["calendar.otherwise"]),
        (RATE, "3600", {"nth": 1}, ["calendar.nth"]),
        (DELAY, "60", {}, ["calendar"]),
        (NONE, "", {}, ["calendar"]),
        (CRON, "0 */5 * * * ?", {"otherwise": "next"}, []),
        (CRON, "0 */4 * * * ?", {"otherwise": "next"}, ["calendar.otherwise"]),
        (CRON, "0 */4 * * * ?", {}, []),
        (CRON, "*/4 * * * *", {"otherwise": "next"}, ["calendar.otherwise"]),
        (CRON, DAILY, {"readable_by_java": True}, ["calendar"]),
        (CRON, "0 0 9 ? * SAT", {}, ["calendar"]),
        (CRON, "0 0 9 ? * SAT", {"on": "holidays"}, []),
        (CRON, "0 0 9 ? * SAT", {"otherwise": "next"}, []),
        (CRON, "0 0 9 15 * ?", {"nth": 1}, ["calendar"]),
        (CRON, "0 0 9 ? * MON", {"name": "closed"}, ["calendar"]),
        (CRON, "0 0 9 ? * MON", {"name": "closed", "otherwise": "next"}, ["calendar"]),
        (RATE, "604800", {"name": "closed"}, ["calendar"]),
        (CRON, "0 0 9 1 1 ? 2020", {"name": "closed"}, []),
    ],
)
def test_where_a_calendar_is_refused(
    kind: ScheduleType, conf: str, rule: dict[str, Any], fields: list[str]
) -> None:
    assert list(errors(kind, conf, **rule)) == fields


def test_errors_name_what_would_be_right() -> None:
    found = errors(CRON, DAILY, name="CN")
    assert found == {"calendar.name": "There is no calendar CN; did you mean cn?"}
    assert errors(CRON, DAILY, name="de") == {"calendar.name": "There is no calendar de"}
    assert "there are none yet" in errors(CRON, DAILY, Calendars())["calendar.name"]
    never = errors(CRON, "0 0 9 ? * SAT")["calendar"]
    assert never == "No instant of the schedule within two years is on a workday of cn"
    assert "288" in errors(CRON, "* * * * * ?", otherwise="next")["calendar.otherwise"]


def test_how_often_a_cron_runs_on_a_day() -> None:
    assert [instants_a_day(conf) for conf in (DAILY, "* * * * * ?", "*/5 8-17 * * *")] == [1, 86_400, 120]
