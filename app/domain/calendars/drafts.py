"""Entered calendars: checks of what a form, the API or a file says of one, and what is compared and stored.

Source: docs/reference/calendars.md, section 1.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from app.domain.calendars.calendar import Calendar, DayKind, UnknownDays
from app.domain.calendars.day_rule import NAME_MAX
from app.domain.text.input_errors import InputErrors
from app.domain.text.limits import limited_text, required_text
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: names of weekdays, as ``date.isoweekday`` numbers them from 1
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: days of a calendar with a kind of their own, and characters of the name of a day
DAYS_MAX, DAY_NAME_MAX = 4_000, 64
#: years of days; the last one is included
FIRST_YEAR, LAST_YEAR = 1970, 2100


@dataclass(frozen=True, slots=True)
class CalendarDraft:
    """A calendar as entered; days as ``2026-10-01``."""

    #: names of weekdays, or their numbers
    weekend: Sequence[str | int] = ("saturday", "sunday")
    #: day -> workday or holiday
    days: Mapping[str, str] = field(default_factory=dict)
    #: day -> its name; of days that have a kind
    names: Mapping[str, str] = field(default_factory=dict)
    #: the last day that it knows; empty: it knows all
    valid_until: str = ""
    unknown: str = UnknownDays.WEEKDAY.value
    #: refuse what a Java admin on the same database ignores (XXL_JOB_SHARED_WITH_JAVA)
    readable_by_java: bool = False


def check_name(text: str) -> str:
    """Return the name of a calendar, trimmed; raises InvalidInput."""
    name = required_text("name", text, NAME_MAX, N_("Enter a name"))
    if not name.isprintable() or "/" in name or not name.strip("."):
        problem = N_("A name can have letters, digits, blanks and signs, but no / and no control characters")
        raise InvalidInput("name", problem)
    return name


def read_draft(name: str, draft: CalendarDraft) -> Calendar:
    """Return the calendar that was entered; raises InvalidInput with all errors."""
    errors = InputErrors()
    weekend, valid_until, unknown = frozenset[int](), None, UnknownDays.WEEKDAY
    with errors:
        name = check_name(name)
    with errors:
        weekend = _read_weekend(draft.weekend)
    days = _read_days(draft.days, errors)
    names = _read_names(draft.names, days, errors)
    with errors:
        valid_until = _read_day("valid_until", draft.valid_until) if draft.valid_until else None
    with errors:
        unknown = UnknownDays(_read_word("unknown", draft.unknown, UnknownDays))
    errors.raise_all()
    return Calendar(name, weekend, days, names, valid_until, unknown)


def draft_of(calendar: Calendar) -> CalendarDraft:
    """Return a calendar as it is entered."""
    return CalendarDraft(
        weekend_names(calendar),
        {day.isoformat(): kind.value for day, kind in sorted(calendar.days.items())},
        {day.isoformat(): name for day, name in sorted(calendar.names.items())},
        "" if calendar.valid_until is None else calendar.valid_until.isoformat(),
        calendar.unknown.value,
    )


def weekend_names(calendar: Calendar) -> list[str]:
    """Return the weekdays that are no workdays, from Monday on."""
    return [WEEKDAYS[number - 1] for number in sorted(calendar.weekend)]


def days_text(calendar: Calendar) -> str:
    """Return the days of a calendar as JSON text: day -> its kind, or that and its name."""
    days: dict[str, Any] = {}
    for day, kind in sorted(calendar.days.items()):
        name = calendar.names.get(day)
        days[day.isoformat()] = [kind.value, name] if name else kind.value
    return json.dumps(days, ensure_ascii=False, separators=(",", ":"))


def is_same(calendar: Calendar, other: Calendar) -> bool:
    """Whether two calendars say the same."""
    return draft_of(calendar) == draft_of(other)


def summary(calendar: Calendar) -> dict[str, object]:
    """Return what is audited of a calendar: its settings, and how many days have a kind of their own."""
    counts = count_kinds(calendar)
    return {
        "weekend": weekend_names(calendar),
        "workdays": counts[DayKind.WORKDAY],
        "holidays": counts[DayKind.HOLIDAY],
        "valid_until": None if calendar.valid_until is None else calendar.valid_until.isoformat(),
        "unknown": calendar.unknown.value,
    }


def count_kinds(calendar: Calendar) -> dict[DayKind, int]:
    """Return how many days are of each kind, of those with a kind of their own."""
    kinds = list(calendar.days.values())
    return {kind: kinds.count(kind) for kind in DayKind}


def _read_weekend(weekdays: Sequence[str | int]) -> frozenset[int]:
    numbers = set()
    for place, weekday in enumerate(weekdays):
        text = str(weekday).strip().lower()
        if text in WEEKDAYS:
            numbers.add(WEEKDAYS.index(text) + 1)
        elif text.isdecimal() and 1 <= int(text) <= len(WEEKDAYS):
            numbers.add(int(text))
        else:
            problem = N_("'%(text)s' is not one of %(options)s", text=text[:20], options=", ".join(WEEKDAYS))
            raise InvalidInput(f"weekend.{place}", problem)
    return frozenset(numbers)


def _read_days(day_kinds: Mapping[str, str], errors: InputErrors) -> dict[date, DayKind]:
    days: dict[date, DayKind] = {}
    if len(day_kinds) > DAYS_MAX:
        with errors:
            raise InvalidInput("days", N_("at most %(limit)s days", limit=DAYS_MAX))
        return days
    for text, kind in day_kinds.items():
        place = f"days.{text[:20]}"
        with errors:
            days[_read_day(place, text)] = DayKind(_read_word(place, kind, DayKind))
    return days


def _read_names(
    day_names: Mapping[str, str], days: Mapping[date, DayKind], errors: InputErrors
) -> dict[date, str]:
    names: dict[date, str] = {}
    if len(day_names) > DAYS_MAX:
        with errors:
            raise InvalidInput("names", N_("at most %(limit)s days", limit=DAYS_MAX))
        return names
    for text, entered_name in day_names.items():
        place = f"names.{text[:20]}"
        with errors:
            day = _read_day(place, text)
            name = limited_text(place, entered_name.strip(), DAY_NAME_MAX)
            if day not in days:
                raise InvalidInput(place, N_("This day has a name, but is neither a workday nor a holiday"))
            if not name.isprintable():
                raise InvalidInput(place, N_("A name can have no control characters"))
            if name:
                names[day] = name
    return names


def _read_day(place: str, text: str) -> date:
    try:
        day = date.fromisoformat(text)
        if day.isoformat() != text or not FIRST_YEAR <= day.year <= LAST_YEAR:
            raise ValueError(text)
    except ValueError as exc:
        problem = N_(
            "'%(text)s' is not a day such as 2026-10-01, of the years %(first)s to %(last)s",
            text=text[:20],
            first=FIRST_YEAR,
            last=LAST_YEAR,
        )
        raise InvalidInput(place, problem) from exc
    return day


def _read_word(place: str, text: str, words: type[DayKind] | type[UnknownDays]) -> str:
    options = [word.value for word in words]
    if text not in options:
        problem = N_("'%(text)s' is not one of %(options)s", text=text[:20], options=", ".join(options))
        raise InvalidInput(place, problem)
    return text
