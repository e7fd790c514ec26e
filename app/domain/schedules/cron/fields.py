"""Fields of a Quartz-like cron expression: parse the text of a field into the values it allows.

Source: the dialect of XXL-JOB 2.4.1, observed from outside. It is far more lenient than its manual (text
after a complete value is ignored, 99 means "every", 98 means "?", a zero step is no step). Jobs rely on that,
so this parser does the same. Lists of days of the month with L or W are read as since XXL-JOB 3.1.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.domain.text.texts import N_


class InvalidCronExpression(ValueError):
    """A schedule that cannot be parsed or evaluated.

    ``field`` is the name of the field ("hour", "day of month"; "expression" for the whole), ``text`` its
    content.
    """

    def __init__(self, field: str, text: str, reason: str) -> None:
        self.message = N_("%(field)s '%(text)s': %(reason)s", field=field, text=text, reason=reason)
        super().__init__(str(self.message))
        self.field = field
        self.text = text


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Field of an expression: its name and range. There is one object per field, compared by identity."""

    name: str
    low: int
    high: int
    #: names of the values from ``low`` on, such as JAN or SUN
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The number of values; a range that wraps continues after this many."""
        return self.high - self.low + 1

    def refusal(self, text: str, reason: str) -> InvalidCronExpression:
        """Return the error for this field, with its content and what is allowed."""
        return InvalidCronExpression(self.name, text, reason)


#: the year a "*" starts with, and the last one a datetime can represent
FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 9999

SECOND = Field(N_("second"), 0, 59)
MINUTE = Field(N_("minute"), 0, 59)
HOUR = Field(N_("hour"), 0, 23)
DAY_OF_MONTH = Field(N_("day of month"), 1, 31)
MONTH = Field(
    N_("month"), 1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
)
DAY_OF_WEEK = Field(N_("day of week"), 1, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
YEAR = Field(N_("year"), FIRST_YEAR, LAST_YEAR)

#: the number that means "*", and the one that means "?" in the two day fields
EVERY: Final = 99
NO_VALUE: Final = 98
#: the largest number the dialect can read
MAX_NUMBER: Final = 2**31 - 1
#: furthest day before the last one: "L-30"
MAX_LAST_OFFSET: Final = 30
#: most occurrences of a weekday in a month: "6#5"
MAX_NTH: Final = 5


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """Values that a field, or an item of its list, allows."""

    #: value spans; one that wraps continues past the highest value of the field
    spans: tuple[range, ...] = ()
    #: "?"
    no_value: bool = False
    #: "L": of the month, or in the day of week "6L"
    last: bool = False
    #: the 3 of "L-3"
    last_offset: int = 0
    #: "W"
    workday: bool = False
    #: the 3 of "6#3"; 0 without
    nth: int = 0
    #: items of a list of days of the month with L or W, each with a rule of its own
    items: tuple["AllowedValues", ...] = ()


_LAST = re.compile(r"L(?:-([0-9]*))?(W?)")
_LEADING_NUMBER = re.compile(r"[0-9]+")
_RANGE = re.compile(r"-(\d[0-9]*+)(?:/(\d[0-9]*)|(?!/))")
_STEP = re.compile(r"/(\d[0-9]+|\d\Z)")
_INTEGER = re.compile(r"[+-]?\d+")


@lru_cache(maxsize=4096)
def parse_field(field: Field, text: str) -> AllowedValues:
    """Parse a field such as "0/15" or "MON-FRI", in upper case; raise InvalidCronExpression."""
    if "," in text and "L" in text and field is DAY_OF_WEEK:
        raise field.refusal(text, N_("L must stand alone, not in a list"))
    if field is DAY_OF_WEEK and text.count("#") > 1:
        raise field.refusal(text, N_("only one # is possible"))
    items = [_parse_item(field, item) for item in text.split(",") if item]
    if field is DAY_OF_MONTH and len(items) > 1 and any(item.last or item.workday for item in items):
        return AllowedValues(no_value=any(item.no_value for item in items), items=tuple(items))
    values = AllowedValues(
        spans=tuple(span for item in items for span in item.spans),
        no_value=any(item.no_value for item in items),
        last=any(item.last for item in items),
        last_offset=max((item.last_offset for item in items), default=0),
        workday=any(item.workday for item in items),
        nth=max((item.nth for item in items), default=0),
    )
    if field is not YEAR and not (any(values.spans) or values.no_value or values.last):
        raise field.refusal(
            text, N_("no value in it; use %(low)s-%(high)s or *", low=field.low, high=field.high)
        )
    return values


def _parse_item(field: Field, item: str) -> AllowedValues:
    if last := _LAST.fullmatch(item):
        return _parse_last(field, item, last)
    if item[0] in "*/":
        return _parse_every(field, item)
    if item[0] == "?":
        return _parse_no_value(field, item)
    if "0" <= item[0] <= "9":
        return _parse_number(field, item)
    if "A" <= item[0] <= "Z":
        return _parse_name(field, item)
    raise field.refusal(item, N_("use %(low)s-%(high)s or *", low=field.low, high=field.high))


def _parse_last(field: Field, item: str, match: re.Match[str]) -> AllowedValues:
    """Read "L", "L-3", "LW", "L-3W".

    In the day of week it means Saturday; in other fields it allows nothing.
    """
    if field is DAY_OF_WEEK:
        return AllowedValues((range(field.high, field.high + 1),))
    if field is not DAY_OF_MONTH:
        return AllowedValues()
    offset = int(match[1] or 0)
    if offset > MAX_LAST_OFFSET:
        raise field.refusal(item, N_("at most %(limit)s days before the last one", limit=MAX_LAST_OFFSET))
    return AllowedValues(last=True, last_offset=offset, workday=bool(match[2]))


def _parse_every(field: Field, item: str) -> AllowedValues:
    """Read "*", "*/5" and "/5"; a step below 1 counts as 1."""
    step = item.removeprefix("*")
    if not step.startswith("/"):
        return AllowedValues((_span(field, item, EVERY),))
    if not _INTEGER.fullmatch(step[1:]):
        raise field.refusal(item, N_("a whole number must follow the /"))
    return AllowedValues((_span(field, item, EVERY, step=_checked_step(field, item, step[1:])),))


def _parse_no_value(field: Field, item: str) -> AllowedValues:
    if field not in (DAY_OF_MONTH, DAY_OF_WEEK):
        raise field.refusal(item, N_("? is only for the day of month or the day of week"))
    if len(item) > 2:
        raise field.refusal(item, N_("nothing may follow the ?"))
    return AllowedValues(no_value=True)


def _parse_name(field: Field, item: str) -> AllowedValues:
    """Read "MON", "MON-FRI", "FRIL", "FRI#3"."""
    start, rest = _number_of(field, item, item[:3]), item[3:]
    if rest.startswith("-"):
        return AllowedValues((_span(field, item, start, _number_of(field, item, rest[1:4]), step=1),))
    single = (range(start, start + 1),)
    if field is DAY_OF_WEEK and rest.startswith("#"):
        return AllowedValues(single, nth=_nth(field, item, rest))
    return AllowedValues(single, last=field is DAY_OF_WEEK and rest.startswith("L"))


def _parse_number(field: Field, item: str) -> AllowedValues:
    """Read "5", "5/15", "5-20", "5-20/3", "15W", "6L", "6#3"."""
    digits = _LEADING_NUMBER.match(item)
    assert digits
    start, rest = _number(field, item, digits[0]), item[digits.end() :]
    if rest[:1] in ("L", "W", "#"):
        return _parse_option(field, item, start, rest)
    if rest.startswith("-"):
        if not (span := _RANGE.match(rest)):
            raise field.refusal(item, N_("a number must follow the - and the /"))
        stop, step = _number(field, item, span[1]), _number(field, item, span[2] or "1")
        return _allowed_values(field, item, start, stop, step=step)
    if rest.startswith("/"):
        if not (every := _STEP.match(rest)):
            raise field.refusal(item, N_("a whole number must follow the /"))
        return _allowed_values(field, item, start, step=_checked_step(field, item, every[1]))
    return _allowed_values(field, item, start)


def _parse_option(field: Field, item: str, value: int, rest: str) -> AllowedValues:
    """Read the option after the number in "15W", "6L" and "6#3"."""
    option, its_field = rest[0], DAY_OF_MONTH if rest[0] == "W" else DAY_OF_WEEK
    if field is not its_field:
        raise field.refusal(
            item, N_("%(option)s is only for the %(field)s", option=option, field=its_field.name)
        )
    # Day 0 is accepted with # and means Saturday.
    if not (value or option == "#") or value > field.high:
        raise field.refusal(
            item, N_("%(option)s goes with %(low)s-%(high)s", option=option, low=field.low, high=field.high)
        )
    nth = _nth(field, item, rest) if option == "#" else 0
    return AllowedValues((range(value, value + 1),), last=option == "L", workday=option == "W", nth=nth)


def _allowed_values(
    field: Field, item: str, start: int, stop: int | None = None, *, step: int = 0
) -> AllowedValues:
    if start == NO_VALUE and field in (DAY_OF_MONTH, DAY_OF_WEEK):
        return AllowedValues(no_value=not step)
    return AllowedValues((_span(field, item, start, stop, step=step),))


def _span(field: Field, item: str, start: int, stop: int | None = None, *, step: int = 0) -> range:
    """Return the values of an item; a step below 1 means the start alone, or every value after EVERY."""
    every = start == EVERY
    if every:
        start, step = field.low, max(step, 1)
        stop = None if stop is None else min(stop, field.high)
    elif field is not YEAR and not (field.low <= start <= field.high and (stop or 0) <= field.high):
        raise field.refusal(item, N_("use %(low)s-%(high)s", low=field.low, high=field.high))
    if step < 1:
        return range(start, start + 1)
    if stop is None:
        stop = field.high
    if stop < start:
        if field is YEAR:
            raise field.refusal(item, N_("the first year must not be after the last"))
        stop += field.size
    return range(start, stop + 1, step)


def _number_of(field: Field, item: str, name: str) -> int:
    if name not in field.names:
        if not field.names:
            raise field.refusal(item, N_("use %(low)s-%(high)s", low=field.low, high=field.high))
        bounds = {"low": field.low, "high": field.high, "first": field.names[0], "last": field.names[-1]}
        raise field.refusal(item, N_("use %(low)s-%(high)s or %(first)s-%(last)s", **bounds))
    return field.low + field.names.index(name)


def _number(field: Field, item: str, digits: str) -> int:
    value = int(digits)
    if value > MAX_NUMBER:
        raise field.refusal(item, N_("the number is too large"))
    return value


def _checked_step(field: Field, item: str, digits: str) -> int:
    step = _number(field, item, digits)
    if field is not YEAR and step > field.high:
        raise field.refusal(item, N_("the step is at most %(limit)s", limit=field.high))
    return step


def _nth(field: Field, item: str, rest: str) -> int:
    """Return the number after the #."""
    if not (_INTEGER.fullmatch(rest[1:]) and 1 <= int(rest[1:]) <= MAX_NTH):
        raise field.refusal(item, N_("a number from 1 to %(limit)s must follow the #", limit=MAX_NTH))
    return int(rest[1:])
