"""Rules of the day rule of a job: which calendar it may name, and with which schedules.

Source: docs/reference/calendars.md, sections 2 and 3.
"""

from collections.abc import Collection
from typing import Final, Protocol

from app.clock import Millis
from app.domain.calendars.calendar import Calendar
from app.domain.calendars.day_rule import CALENDAR, EnteredRule, On, day_rule, parse_rule
from app.domain.calendars.effective import JobRules
from app.domain.enums import ScheduleType
from app.domain.schedules.cron import unix
from app.domain.schedules.cron.expression import CronExpression, split_fields
from app.domain.schedules.schedule import Schedule, is_unix_cron, next_raw_ms
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_, Text
from app.errors import InvalidInput
from executor_client.wire.handler_names import nearest_name

#: most instants on a day of a schedule whose instants are moved
MOVED_MAX: Final = 288
WITHOUT_JAVA = N_(
    "A Java admin on the same database would run the job on all days (XXL_JOB_SHARED_WITH_JAVA)"
)


class CalendarLookup(Protocol):
    """Lookup of calendars: what the rules of a job ask about them."""

    def find(self, name: str) -> Calendar | None:
        """Return the latest version of a calendar; its name is compared exactly."""

    def names(self) -> Collection[str]:
        """Return the names of all calendars."""


def check_rule(
    schedule: Schedule, lookup: CalendarLookup, *, now_ms: Millis, readable_by_java: bool = False
) -> None:
    """Raise InvalidInput for what is wrong with the day rule of a valid schedule, with all errors."""
    rule = parse_rule(schedule.calendar)
    if rule is None:
        return
    errors = InputErrors()
    with errors:
        if readable_by_java:
            raise InvalidInput(CALENDAR, WITHOUT_JAVA)
    with errors:
        _check_schedule(schedule, rule)
    with errors:
        calendar = lookup.find(rule.name)
        if calendar is None:
            raise InvalidInput(f"{CALENDAR}.name", _unknown(rule.name, lookup.names()))
        if not errors.errors:
            _check_runs(schedule, calendar, rule, now_ms)
    errors.raise_all()


def instants_a_day(conf: str) -> int:
    """Return how many instants a valid cron has on a day on which it runs."""
    if is_unix_cron(conf):
        minutes, hours = unix.minutes_and_hours(split_fields(conf))
        return minutes.bit_count() * hours.bit_count()
    cron = CronExpression.parse(conf)
    return cron.seconds.bit_count() * cron.minutes.bit_count() * cron.hours.bit_count()


def _check_schedule(schedule: Schedule, rule: EnteredRule) -> None:
    if schedule.type not in {ScheduleType.CRON, ScheduleType.FIX_RATE}:
        raise InvalidInput(
            CALENDAR, N_("A calendar goes with a cron or a fixed rate; choose one, or no calendar")
        )
    is_cron = schedule.type is ScheduleType.CRON
    if rule.moves and not is_cron:
        problem = N_("Only instants of a cron can be moved to another day; let them be skipped")
        raise InvalidInput(f"{CALENDAR}.otherwise", problem)
    if rule.nth is not None and not is_cron:
        raise InvalidInput(f"{CALENDAR}.nth", N_("Only a cron can run on the n-th of these days of a month"))
    if rule.moves and rule.nth is not None:
        problem = N_("One day of a month has no other to move to; let instants on other days be skipped")
        raise InvalidInput(f"{CALENDAR}.otherwise", problem)
    if rule.moves and (count := instants_a_day(schedule.conf)) > MOVED_MAX:
        problem = N_(
            "At most %(limit)s instants a day can be moved to another day, and this schedule has %(count)s;"
            " let them be skipped",
            limit=MOVED_MAX,
            count=count,
        )
        raise InvalidInput(f"{CALENDAR}.otherwise", problem)


def _check_runs(schedule: Schedule, calendar: Calendar, rule: EnteredRule, now_ms: Millis) -> None:
    """Raise InvalidInput if the schedule has instants, but none that the rule leaves."""
    if next_raw_ms(schedule, now_ms) is None:  # it has ended, which is said where it is switched on
        return
    if JobRules(day_rule(calendar, rule)).next_after_ms(schedule, now_ms) is None:
        raise InvalidInput(CALENDAR, _never(rule))


def _never(rule: EnteredRule) -> Text:
    if rule.nth is not None:
        return N_(
            "Within two years the schedule has no instant on the chosen day of the month of %(name)s; let the"
            " cron run every day",
            name=rule.name,
        )
    if rule.on is On.WORKDAYS:
        return N_("No instant of the schedule within two years is on a workday of %(name)s", name=rule.name)
    return N_("No instant of the schedule within two years is on a holiday of %(name)s", name=rule.name)


def _unknown(name: str, names: Collection[str]) -> Text:
    if not names:
        return N_("There is no calendar %(name)s; there are none yet", name=name)
    near = nearest_name(name, names)
    if near:
        return N_("There is no calendar %(name)s; did you mean %(near)s?", name=name, near=near)
    return N_("There is no calendar %(name)s", name=name)
