"""Unix cron expressions: minute, hour, day of month, month, day of week (0 or 7 = Sunday).

croniter evaluates them. When clocks change, a job at a fixed hour runs once: at the first valid instant after
a gap, and at the first of two equal local times (croniter itself would fire at both). With a * in the hour
field both of two equal local times fire, and a missing one is left out; only with a step such as "*/2" does
croniter move a missing hour to after the gap as well.
"""

import re
from collections.abc import Sequence
from copy import copy
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from app.clock import SECOND_MS, Millis
from app.domain.schedules.cron.fields import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    MINUTE,
    MONTH,
    Field,
    InvalidCronExpression,
)
from app.domain.text.texts import N_

if TYPE_CHECKING:
    from croniter import croniter

#: number of fields by which a Unix expression is recognized
FIELD_COUNT: Final = 5
#: positions of fields
_HOUR: Final = 1
WEEKDAY: Final = 4
#: first letters of croniter's random and hashed fields ("R", "H(0-29)/10"), which differ at each evaluation
_RANDOM: Final = ("R", "H")
_RANGE = re.compile(r"([A-Z0-9]+)-([A-Z0-9]+)(?:/([0-9]+))?")
#: days of the week from Sunday = 0
_WEEKDAYS: Final = Field(DAY_OF_WEEK.name, 0, 6, DAY_OF_WEEK.names)
_FIELDS: Final = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, _WEEKDAYS)
#: no search starts later: croniter searches 50 years ahead, and a local time must fit a datetime
_LAST_START_MS: Final[Millis] = 250_000_000_000_000


def check_unix_cron(fields: list[str]) -> None:
    """Raise InvalidCronExpression unless croniter accepts these five fields, in upper case."""
    _read(" ".join(fields))


def next_after_ms(fields: list[str], after_ms: Millis, tz: tzinfo) -> Millis | None:
    """Return the first fire strictly after an instant; None if there is none within croniter's 50 years."""
    from croniter import CroniterBadDateError  # Most expressions have six fields.

    if after_ms >= _LAST_START_MS:
        return None
    search = copy(_read(" ".join(fields)))  # A search moves the start of its object.
    search.set_current(datetime.fromtimestamp(after_ms // SECOND_MS, tz))
    try:
        fire = search.get_next(datetime)
        while "*" not in fields[_HOUR] and _is_repetition(fire):
            fire = search.get_next(datetime)
    except CroniterBadDateError:
        return None
    return int(fire.timestamp()) * SECOND_MS


def minutes_and_hours(fields: list[str]) -> tuple[int, int]:
    """Return masks of the minutes of an hour and the hours of a day that five fields allow."""
    minutes, hours = _read(" ".join(fields)).expanded[: _HOUR + 1]
    return _mask(minutes, 60), _mask(hours, 24)


def day_masks(fields: list[str]) -> tuple[int, int, int] | None:
    """Return masks of the days of a month, the months and the days of a week, bit 0 = Sunday.

    The mask of a week is 0 if all its days are allowed. None: a day is the last or n-th of a month, or days
    of both kinds are named, of which either is enough.
    """
    cron = _read(" ".join(fields))
    month_days, months, weekdays = cron.expanded[_HOUR + 1 : FIELD_COUNT]
    has_rules = bool(cron.nth_weekday_of_month) or "l" in month_days
    if has_rules or ("*" not in month_days and "*" not in weekdays):
        return None
    week = 0 if "*" in weekdays else _mask(weekdays, 7)
    return _mask(month_days, 32), _mask(months, 13) & ~1, week


def _mask(values: Sequence[int | str], size: int) -> int:
    return (1 << size) - 1 if "*" in values else sum(1 << int(value) for value in values)


@lru_cache(maxsize=1024)
def _read(text: str) -> "croniter":
    """Return the croniter of an expression. Cached, since reading it takes longer than a search."""
    from croniter import croniter  # Most expressions have six fields.

    if any(field.startswith(_RANDOM) for field in text.split(" ")):
        raise InvalidCronExpression(N_("expression"), text, N_("random and hashed fields are not supported"))
    fields = zip(text.split(" "), _FIELDS, strict=True)
    plain = " ".join(",".join(_plain(item, field) for item in text.split(",")) for text, field in fields)
    try:
        return croniter(plain, datetime(2000, 1, 1))
    except ValueError as exc:
        raise InvalidCronExpression(
            N_("expression"), text, N_("not a cron expression of five fields (%(reason)s)", reason=str(exc))
        ) from exc


def _plain(item: str, field: Field) -> str:
    """Return an item of a list without the ranges that croniter reads otherwise than cron.

    To croniter "9-9" is the whole cycle, and the steps of a range that wraps ("20-8/3") are shifted.
    """
    match = _RANGE.fullmatch(item)
    step = int(match[3] or 1) if match else 0
    if not match or not step:
        return item
    if match[1] == match[2]:
        return match[1]
    first = "0" if field is _WEEKDAYS and match[1] == "7" else match[1]
    low, high = _number(first, field), _number(match[2], field)
    if low is not None and low == high:
        return str(low)
    if low is None or high is None or low < high or step == 1:
        return item
    return ",".join(
        str((value - field.low) % field.size + field.low) for value in range(low, high + field.size + 1, step)
    )


def _number(text: str, field: Field) -> int | None:
    """Return a value of a field, or None if it is outside."""
    if text in field.names:
        return field.names.index(text) + field.low
    return int(text) if text.isdigit() and field.low <= int(text) <= field.high else None


def _is_repetition(fire: datetime) -> bool:
    """Whether this is the second occurrence of a local time."""
    return fire.fold == 1 and fire.replace(fold=0).utcoffset() != fire.utcoffset()
