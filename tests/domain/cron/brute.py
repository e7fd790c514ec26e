"""Brute-force cron evaluators that test every second or minute, to check the real ones.

They read only the documented forms (ValueError or IndexError for others) and skip only whole minutes that
cannot match. Meant for windows of a few days. Instants are epoch milliseconds, windows ``(after, until]``.
"""

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

Days = Callable[[date], bool]


@dataclass(frozen=True)
class Parts:
    """A parsed expression."""

    seconds: set[int]
    minutes: set[int]
    hours: set[int]
    months: set[int]
    years: set[int]
    is_day: Days
    hour_text: str

    def has_minute(self, local: datetime) -> bool:
        """Return whether this local minute is allowed, whatever its seconds."""
        in_day = local.minute in self.minutes and local.hour in self.hours
        return (
            in_day and local.month in self.months and local.year in self.years and self.is_day(local.date())
        )


def quartz_fires(expression: str, tz: tzinfo, after_ms: int, until_ms: int) -> list[int]:
    """Return the fires of six or seven fields.

    A repeated local time counts the second time, a missing one not at all.
    """
    parts = _quartz_parts(expression)
    second, until = after_ms // 1000 + 1, until_ms // 1000
    # A search that starts at the first of two equal local times starts as if at the second.
    earliest = datetime.fromtimestamp(second, tz).replace(tzinfo=None)
    fires = []
    while second <= until:
        local = datetime.fromtimestamp(second, tz)
        if not parts.has_minute(local):
            second += 60 - local.second
            continue
        if (
            local.second in parts.seconds
            and not _comes_again(local)
            and local.replace(tzinfo=None, fold=0) >= earliest
        ):
            fires.append(second * 1000)
        second += 1
    return fires


def quartz_days(expression: str, first: datetime, count: int) -> list[date]:
    """Return those of ``count`` days from ``first`` with a fire at the local time of ``first``."""
    parts = _quartz_parts(expression)
    days = [first + timedelta(days=number) for number in range(count)]
    return [day.date() for day in days if parts.has_minute(day) and day.second in parts.seconds]


def unix_fires(expression: str, tz: tzinfo, after_ms: int, until_ms: int) -> list[int]:
    """Return the fires of five fields.

    Across a clock change a job at fixed hours fires once, and one at "*" hours continues.
    """
    parts = _unix_parts(expression)
    fires = []
    for second in range(after_ms // 60_000 * 60 + 60, until_ms // 1000 + 1, 60):
        local = datetime.fromtimestamp(second, tz)
        moved_here = len(parts.hours) < 24 and any(map(parts.has_minute, _skipped_minutes(second, tz)))
        repeated = local.fold == 1 and "*" not in parts.hour_text
        if moved_here or (parts.has_minute(local) and not repeated):
            fires.append(second * 1000)
    return fires


def _quartz_parts(expression: str) -> Parts:
    fields = [*expression.upper().split(), "*"][:7]
    is_day = _days_of_month(fields[3]) if fields[5] == "?" else _days_of_week(fields[5])
    return Parts(
        seconds=_values(fields[0], 0, 59),
        minutes=_values(fields[1], 0, 59),
        hours=_values(fields[2], 0, 23),
        months=_values(fields[4], 1, 12, MONTHS),
        years=_values(fields[6], 1970, 2300),
        is_day=is_day,
        hour_text=fields[2],
    )


def _unix_parts(expression: str) -> Parts:
    minute, hour, day, month, weekday = expression.upper().split()
    by_day: Days = lambda date_: date_.day in _values(day, 1, 31)  # noqa: E731
    weekdays = {value % 7 for value in _values(weekday, 0, 7 if "7" in weekday else 6, WEEKDAYS)}
    by_weekday: Days = lambda date_: date_.isoweekday() % 7 in weekdays  # noqa: E731
    either = day != "*" and weekday != "*"
    return Parts(
        seconds={0},
        minutes=_values(minute, 0, 59),
        hours=_values(hour, 0, 23),
        months=_values(month, 1, 12, MONTHS),
        years=set(range(1970, 2300)),
        is_day=lambda date_: (
            (by_day(date_) or by_weekday(date_)) if either else (by_day(date_) and by_weekday(date_))
        ),
        hour_text=hour,
    )


def _values(text: str, low: int, high: int, names: tuple[str, ...] = ()) -> set[int]:
    """Read a list of "*", "a" and "a-b", each optionally with "/s"; a range may wrap."""
    allowed: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, dash, last = span.partition("-")
        begin = low if first == "*" else _value(first, low, names)
        if dash:
            end = _value(last, low, names)
        else:
            end = high if first == "*" or step else begin
        circle = (
            list(range(begin, end + 1)) if begin <= end else [*range(begin, high + 1), *range(low, end + 1)]
        )
        allowed.update(circle[:: _value(step or "1", 1, ())])
    if not all(low <= value <= high for value in allowed):
        raise ValueError(text)
    return allowed


def _value(text: str, low: int, names: tuple[str, ...]) -> int:
    """Read a name or a plain number of at least ``low``."""
    value = names.index(text) + low if text in names else int(text)
    if value < low or not text.isalnum():
        raise ValueError(text)
    return value


def _days_of_month(text: str) -> Days:
    """Return the rule of a day-of-month field."""
    if "," in text and any(letter in text for letter in "LW"):
        rules = [_days_of_month(item) for item in text.split(",")]
        return lambda day: any(rule(day) for rule in rules)
    if text.startswith("L"):
        back = int(text.removesuffix("W").partition("-")[2] or 0)
        if text.endswith("W"):
            _require_every_month(back + 1)
            return lambda day: day == _workday_near(day, _last_day(day) - back)
        return lambda day: day.day == _last_day(day) - back
    if text.endswith("W"):
        _require_every_month(int(text[:-1]))
        return lambda day: day == _workday_near(day, int(text[:-1]))
    days = _values(text, 1, 31)
    return lambda day: day.day in days


def _days_of_week(text: str) -> Days:
    """Return the rule of a day-of-week field, 1 = Sunday."""
    if text.endswith("L") and len(text) > 1:
        value = _value(text[:-1], 1, WEEKDAYS)
        return lambda day: _weekday(day) == value and (day + timedelta(days=7)).month != day.month
    if "#" in text:
        name, _, nth = text.partition("#")
        return lambda day: _weekday(day) == _value(name, 1, WEEKDAYS) and (day.day + 6) // 7 == int(nth)
    weekdays = {7} if text == "L" else _values(text, 1, 7, WEEKDAYS)
    return lambda day: _weekday(day) in weekdays


def _require_every_month(day: int) -> None:
    """Refuse a W on a day that some months lack: the reference treats it in its own way."""
    if day > 28:
        raise ValueError(day)


def _workday_near(day: date, number: int) -> date:
    """Return the working day nearest to a day of this month, in this month."""
    value = day.replace(day=number)
    near = [value + timedelta(days=distance) for distance in (0, -1, 1, -2, 2)]
    return next(other for other in near if other.month == day.month and other.isoweekday() <= 5)


def _last_day(day: date) -> int:
    return monthrange(day.year, day.month)[1]


def _weekday(day: date) -> int:
    return day.isoweekday() % 7 + 1


def _comes_again(local: datetime) -> bool:
    """Return whether this is the first of two equal local times."""
    return local.fold == 0 and local.utcoffset() > local.replace(fold=1).utcoffset()  # type: ignore[operator]


def _skipped_minutes(second: int, tz: tzinfo) -> list[datetime]:
    """Return the local minutes that the clock skipped just before this instant."""
    here, before = datetime.fromtimestamp(second, tz), datetime.fromtimestamp(second - 60, tz)
    step = here.replace(tzinfo=None) - before.replace(tzinfo=None)
    return [
        before.replace(tzinfo=None) + timedelta(minutes=minute)
        for minute in range(1, step // timedelta(minutes=1))
    ]
