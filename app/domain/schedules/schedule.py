"""Schedules: computation of the next times of a job, and validation of what a user entered."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from functools import lru_cache, partial
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from app.clock import SECOND_MS, Millis
from app.domain.enums import ScheduleType
from app.domain.schedules.cron import unix
from app.domain.schedules.cron.days import mask_of
from app.domain.schedules.cron.expression import FIELDS, CronExpression, split_fields
from app.domain.schedules.cron.fields import DAY_OF_MONTH, HOUR, InvalidCronExpression, parse_field
from app.domain.schedules.cron.hints import find_hint
from app.domain.schedules.cron.local_time import find_second, first_second_after_gap
from app.domain.schedules.time_zones import goes_back
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.settings.parsers import is_zone

#: width of the column schedule_conf
MAX_CONF_LENGTH: Final = 128
#: next time of a schedule that a blackout without an end covers; in the column one less than that of a fixed
#: delay whose run is open
RESTING: Final[Millis] = 2**63 - 2
#: next times in a preview
PREVIEW_COUNT: Final = 5
#: cached results of cron searches, so that a scan does not repeat those of the scans before it; more than the
#: missed instants that are counted of five fields, as jobs with equal expressions miss the same ones
NEXT_TIMES_KEPT: Final = 4_096
#: years of an AT; the last one is excluded
EARLIEST_YEAR: Final = 1970
LATEST_YEAR: Final = 9999
_SECONDS: Final = re.compile(r"[0-9]{1,10}")
#: Python 3.14 and later read 24:00:00, too
_AT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} (?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}")
_AT_SHAPE: Final = "yyyy-MM-dd HH:mm:ss"
_ALL_HOURS: Final = mask_of(HOUR, parse_field(HOUR, "*"))
_NO_CRON: Final = N_("Enter a cron expression, such as 0 0/5 * * * ?")


class ScheduleRules(Protocol):
    """Calendar and blackouts of a job: on which days its schedule runs, and when it must not."""

    def next_after_ms(self, schedule: "Schedule", after_ms: Millis) -> Millis | None:
        """Return the first instant strictly after one at which the schedule runs; None if there is none."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a job fires.

    ``time_zone`` is an IANA name, never empty. The bounds are inclusive; 0 means none.
    """

    type: ScheduleType
    conf: str
    time_zone: str
    not_before_ms: Millis = 0
    not_after_ms: Millis = 0
    #: JSON text of the job's day rule (``app.domain.calendars.day_rule``); empty: it runs on all days
    calendar: str = ""
    #: what holds at present of the calendar, and the blackouts; None: it runs on all days at any time
    rules: ScheduleRules | None = field(default=None, compare=False)


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """Return the time zone of an IANA name such as "Asia/Shanghai"; raise InvalidInput."""
    if not is_zone(name):
        raise InvalidInput(
            "timeZone",
            N_(
                "'%(name)s' is not a known time zone; use a name such as Asia/Shanghai or UTC", name=name[:64]
            ),
        )
    return ZoneInfo(name)


def check_schedule(schedule: Schedule) -> None:
    """Raise InvalidInput, with the field, unless the schedule is valid. A valid one may never fire."""
    if len(schedule.conf) > MAX_CONF_LENGTH:
        raise InvalidInput("scheduleConf", N_("at most %(limit)s characters", limit=MAX_CONF_LENGTH))
    if schedule.type not in list(ScheduleType):
        raise InvalidInput(
            "scheduleType",
            N_(
                "'%(text)s' is not one of %(options)s",
                text=str(schedule.type),
                options=", ".join(ScheduleType),
            ),
        )
    errors = InputErrors()
    with errors:
        zone(schedule.time_zone)
    # Whether the other values are valid does not depend on the zone.
    readable = replace(schedule, time_zone="UTC") if errors.errors else schedule
    with errors:
        if schedule.type is ScheduleType.CRON and not schedule.conf.strip():
            raise InvalidInput("scheduleConf", _NO_CRON)
        try:
            _read_conf(readable)
        except InvalidCronExpression as exc:
            raise InvalidInput("scheduleConf", exc.message) from exc
    with errors:
        if 0 < schedule.not_after_ms < schedule.not_before_ms:
            raise InvalidInput("notAfter", N_("the end is before the start"))
    errors.raise_all()


def next_after_ms(schedule: Schedule, after_ms: Millis) -> Millis | None:
    """Return the first instant strictly after ``after_ms`` and within the bounds; None if there is none.

    FIX_RATE and FIX_DELAY count from ``after_ms``. Raise InvalidCronExpression if the schedule is invalid.
    An instant may be moved or left out by the rules of the schedule: RESTING, if a blackout without an end
    covers all that are left.
    """
    if schedule.rules is None:
        return next_raw_ms(schedule, after_ms)
    return schedule.rules.next_after_ms(schedule, after_ms)


def next_raw_ms(schedule: Schedule, after_ms: Millis) -> Millis | None:
    """Return the first instant strictly after ``after_ms``, whatever the calendar and the blackouts are."""
    not_before_ms = schedule.not_before_ms
    match schedule.type:
        case ScheduleType.CRON:
            next_ms = _next_cron_ms(
                schedule.conf, schedule.time_zone, max(after_ms, not_before_ms - 1) // SECOND_MS
            )
        case ScheduleType.FIX_RATE | ScheduleType.FIX_DELAY:
            next_ms = max(after_ms + period_s(schedule.conf) * SECOND_MS, not_before_ms)
        case ScheduleType.AT:
            at_ms = _at_ms(schedule.conf, schedule.time_zone)
            next_ms = at_ms if at_ms > after_ms and at_ms >= not_before_ms else None
        case _:
            next_ms = None
    if next_ms is None or 0 < schedule.not_after_ms < next_ms:
        return None
    return next_ms


def next_times(schedule: Schedule, after_ms: Millis, count: int = PREVIEW_COUNT) -> list[Millis]:
    """Return the next ``count`` instants, or fewer if the schedule ends before."""
    times: list[Millis] = []
    while (
        len(times) < count
        and (next_ms := next_after_ms(schedule, times[-1] if times else after_ms)) is not None
        and next_ms != RESTING
    ):
        times.append(next_ms)
    return times


def _read_conf(schedule: Schedule) -> None:
    match schedule.type:
        case ScheduleType.CRON:
            _compile(schedule.conf)
        case ScheduleType.FIX_RATE | ScheduleType.FIX_DELAY:
            period_s(schedule.conf)
        case ScheduleType.AT:
            _at_ms(schedule.conf, schedule.time_zone)


@lru_cache(maxsize=4096)
def is_unix_cron(expression: str) -> bool:
    """Whether an expression has the five fields of Unix, not the six or seven of Quartz."""
    return len(split_fields(expression)) == unix.FIELD_COUNT


def is_hourly(schedule: Schedule) -> bool:
    """Whether a cron runs in each hour of a day."""
    if schedule.type is not ScheduleType.CRON:
        return False
    if is_unix_cron(schedule.conf):
        return unix.minutes_and_hours(split_fields(schedule.conf))[1] == _ALL_HOURS
    return CronExpression.parse(schedule.conf).hours == _ALL_HOURS


def pauses_with_clocks(schedule: Schedule, *, now_ms: Millis) -> bool:
    """Whether a valid schedule of each hour pauses for one when its clocks go back, as six fields do."""
    if is_unix_cron(schedule.conf) or not is_hourly(schedule):
        return False
    return goes_back(zone(schedule.time_zone), now_ms=now_ms)


def has_day_rules_listed(expression: str) -> bool:
    """Whether the days of the month of a valid expression are a list with L or W, as "1,L" or "1,15W"."""
    if is_unix_cron(expression):
        return False
    days = split_fields(expression)[FIELDS.index(DAY_OF_MONTH)]
    items = [item for item in days.split(",") if item]
    return ("L" in days and "," in days) or ("W" in days and len(items) > 1)


@lru_cache(maxsize=4096)
def _compile(expression: str) -> Callable[[Millis, tzinfo], Millis | None]:
    """Return the function that finds an expression's first fire strictly after an instant in a zone."""
    try:
        return _read_cron(expression)
    except InvalidCronExpression as exc:
        hint = find_hint(expression)
        if hint is None:
            raise
        raise InvalidCronExpression(N_("expression"), expression, hint) from exc


def _read_cron(expression: str) -> Callable[[Millis, tzinfo], Millis | None]:
    if not is_unix_cron(expression):
        return CronExpression.parse(expression).next_after_ms
    fields = split_fields(expression)
    unix.check_unix_cron(fields)
    return partial(unix.next_after_ms, fields)


@lru_cache(NEXT_TIMES_KEPT)
def _next_cron_ms(expression: str, time_zone: str, after_s: int) -> Millis | None:
    """Return the first fire after a second.

    Cached, since jobs with equal expressions often fall due together.
    """
    return _compile(expression)(after_s * SECOND_MS, _known_zone(time_zone))


@lru_cache(maxsize=1024)
def _at_ms(conf: str, time_zone: str) -> Millis:
    """Return the instant of a local time: the first of two, or the first instant after a gap."""
    try:
        if not _AT.fullmatch(conf):
            raise ValueError(conf)
        wall = datetime.fromisoformat(conf)
        if not EARLIEST_YEAR <= wall.year < LATEST_YEAR:
            raise ValueError(conf)
    except ValueError as exc:
        raise InvalidCronExpression(N_("time"), conf, N_("use %(shape)s", shape=_AT_SHAPE)) from exc
    tz = _known_zone(time_zone)
    second = find_second(wall, tz, fold=0)
    return (first_second_after_gap(wall, tz) if second is None else second) * SECOND_MS


def period_s(conf: str) -> int:
    """Return the period of a FIX_RATE or FIX_DELAY in seconds, 1 or more."""
    if not _SECONDS.fullmatch(conf) or int(conf) == 0:
        raise InvalidCronExpression(
            N_("seconds"), conf, N_("use a whole number of seconds, 1 or more, of at most 10 digits")
        )
    return int(conf)


def _known_zone(name: str) -> ZoneInfo:
    try:
        return zone(name)
    except InvalidInput as exc:
        raise InvalidCronExpression(N_("time zone"), name, N_("not known on this host")) from exc
