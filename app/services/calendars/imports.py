"""Days out of files: iCalendar (RFC 5545) and CSV.

iCalendar is read here, not by a library: only the dates of events are needed, and each error has to name its
line, which the library icalendar does not keep.
"""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta

from app.domain.calendars.calendar import DayKind
from app.domain.calendars.drafts import DAYS_MAX
from app.domain.text.texts import N_, Text
from app.errors import InvalidInput
from app.services.calendars.days import CountryDays

#: most bytes of a file, as UTF-8
BYTES_MAX = 1_000_000
#: characters of a text of an event that are read
TEXT_MAX = 1_000
#: longest name of a day that is kept, in characters
NAME_MAX = 100
YEARS = range(2000, 2100)
#: field of the errors
FILE = "file"
DAY = timedelta(days=1)

KINDS = {
    **dict.fromkeys(("workday", "work", "班", "补班", "補班", "上班", "工作日"), DayKind.WORKDAY),
    **dict.fromkeys(("holiday", "休", "放假", "假", "节假日", "節假日"), DayKind.HOLIDAY),
}
#: first cell of a line of titles
TITLES = frozenset({"date", "day", "日期"})
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})-(\d{1,2})|/(\d{1,2})/(\d{1,2})|(\d\d)(\d\d))", re.ASCII)

#: DTSTART;TZID="GMT+08:00":20261001T000000
_PROPERTY = re.compile(r'([\w-]+)(?:;[\w-]+=(?:"[^"]*"|[^";:])*)*:(.*)', re.DOTALL)
_TIME = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?", re.ASCII | re.IGNORECASE)
_DURATION = re.compile(r"\+?P(\d{1,4})([DW])", re.ASCII | re.IGNORECASE)
_ESCAPED = re.compile(r"\\(.)")
#: 春节 补班 第1天/共2天
_COUNT = re.compile(r"\s*第\d+天/共\d+天$")
#: a mark at the end of a name decides: 国庆节（休）
_OFF = re.compile(r"(?:休|放假|假期)[)）\]】]?$")
_WORK = re.compile(r"班|\bwork(?:ing)?[ -]?days?\b|\bmake-?up\b(?!.*\b(?:holiday|off)\b)", re.IGNORECASE)
_MARK = re.compile(r"[\s·-]*[(（\[【]?(?:[调調补補]?休|放假|假期|(?:[调調]休)?上班|[补補]?班)[)）\]】]?$")
#: of Apple's calendars, whose other events are no holidays
_SPECIAL = "X-APPLE-SPECIAL-DAY"
_SPECIAL_KINDS = {"WORK-HOLIDAY": DayKind.HOLIDAY, "ALTERNATE-WORKDAY": DayKind.WORKDAY}


@dataclass(slots=True)
class _Days:
    """Days read so far."""

    days: dict[date, DayKind] = field(default_factory=dict)
    names: dict[date, str] = field(default_factory=dict)
    lines: dict[date, int] = field(default_factory=dict)

    def add(self, line: int, day: date, kind: DayKind, name: str) -> None:
        """Add a day; of two names the first one stays."""
        if self.days.setdefault(day, kind) is not kind:
            problem = N_(
                "%(day)s is both a workday and a holiday, see line %(other)s; remove one of them",
                day=day,
                other=self.lines[day],
            )
            raise _refusal(line, problem)
        if len(self.days) > DAYS_MAX:
            raise _refusal(line, N_("there are more than %(limit)s days; give fewer years", limit=DAYS_MAX))
        self.lines.setdefault(day, line)
        if name:
            self.names.setdefault(day, name[:NAME_MAX])

    def in_order(self) -> CountryDays:
        """Return the days in order, valid until the end of their last year."""
        if not self.days:
            raise InvalidInput(FILE, N_("The file has no days"))
        days = dict(sorted(self.days.items()))
        names = {day: self.names[day] for day in days if day in self.names}
        return CountryDays(days=days, names=names, valid_until=date(max(days).year, 12, 31))


@dataclass(slots=True)
class _Event:
    """Properties of an event that are used, each with its line."""

    line: int
    values: dict[str, tuple[int, str]] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return the text of a property; empty: it has none."""
        value = self.values.get(name, (0, ""))[1][:TEXT_MAX]
        return " ".join(_ESCAPED.sub(lambda sign: " " if sign[1] in "nN" else sign[1], value).split())


def days_of_csv(text: str) -> CountryDays:
    """Return the days of lines such as ``2026-10-01,holiday,国庆节``; the name may be left out.

    A first line of titles is skipped, and lines that start with ``#``.
    """
    text = _checked_text(text)
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    separator = re.search(r"[,;\t]", first)
    result = _Days()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator[0] if separator else ",")
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if cells[0].casefold() in TITLES and not result.days:
                continue
            result.add(reader.line_num, *_csv_day(reader.line_num, cells))
    except csv.Error as exc:
        raise _refusal(reader.line_num, N_("not readable as CSV: %(problem)s", problem=exc)) from exc
    return result.in_order()


def _csv_day(line: int, cells: list[str]) -> tuple[date, DayKind, str]:
    """Return date, kind and name of a line of a CSV file."""
    while cells[3:] and not cells[-1]:
        cells = cells[:-1]
    if not 2 <= len(cells) <= 3:
        raise _refusal(line, N_("give date, kind and perhaps a name, such as 2026-10-01,holiday,国庆节"))
    match = _DATE.fullmatch(cells[0])
    numbers = [int(number) for number in match.groups() if number] if match else []
    try:
        day = date(*numbers)
    except (TypeError, ValueError):
        problem = N_('"%(text)s" is not a date; give one such as 2026-10-01', text=cells[0])
        raise _refusal(line, problem) from None
    kind = KINDS.get(cells[1].casefold())
    if kind is None:
        raise _refusal(line, N_('"%(text)s" is not a kind of day; give workday or holiday', text=cells[1]))
    return _checked_day(line, day), kind, cells[2] if len(cells) == 3 else ""


def days_of_ics(text: str) -> CountryDays:
    """Return the days of the events of an iCalendar file.

    An event is a holiday unless its summary or a category says work: 班, *workday*, *make-up*. If events
    have Apple's marks of special days, only these count.
    """
    events = list(_events(_checked_text(text)))
    if any(_SPECIAL in event.values for event in events):
        events = [event for event in events if event.text(_SPECIAL).upper() in _SPECIAL_KINDS]
    result = _Days()
    for event in events:
        if event.text("STATUS").upper() == "CANCELLED":
            continue
        for recurrence in ("RRULE", "RDATE"):
            if recurrence in event.values:
                problem = N_(
                    'the event "%(name)s" recurs (%(property)s); give each of its days as an event',
                    name=event.text("SUMMARY"),
                    property=recurrence,
                )
                raise _refusal(event.values[recurrence][0], problem)
        summary = _COUNT.sub("", event.text("SUMMARY"))
        kind = _kind(event, summary)
        for day in _event_days(event):
            result.add(event.line, day, kind, _MARK.sub("", summary) or summary)
    return result.in_order()


def _kind(event: _Event, summary: str) -> DayKind:
    """Return whether the days of an event are holidays or workdays."""
    if special := event.text(_SPECIAL).upper():
        return _SPECIAL_KINDS[special]
    if _OFF.search(summary):
        return DayKind.HOLIDAY
    says_work = _WORK.search(summary) or _WORK.search(event.text("CATEGORIES"))
    return DayKind.WORKDAY if says_work else DayKind.HOLIDAY


def _event_days(event: _Event) -> Iterator[date]:
    """Yield the days of an event; the end is the first moment after it."""
    if "DTSTART" not in event.values:
        raise _refusal(
            event.line, N_("the event has no DTSTART; give its first day, such as DTSTART:20261001")
        )
    first, _ = _day(*event.values["DTSTART"])
    last = first
    if "DTEND" in event.values:
        line, value = event.values["DTEND"]
        end, ends_within = _day(line, value)
        if end < first:
            raise _refusal(line, N_("the event ends before it starts; give the day after its last one"))
        last = end if ends_within else max(first, end - DAY)
    elif "DURATION" in event.values:
        line, value = event.values["DURATION"]
        match = _DURATION.fullmatch(value)
        if not match or not int(match[1]):
            raise _refusal(line, N_('"%(text)s" is not a duration of days; give one such as P7D', text=value))
        last = first + DAY * (int(match[1]) * (7 if match[2] in "Ww" else 1) - 1)
    if (last - first).days >= DAYS_MAX:
        raise _refusal(event.line, N_("there are more than %(limit)s days; give fewer years", limit=DAYS_MAX))
    for number in range((last - first).days + 1):
        yield first + DAY * number


def _day(line: int, value: str) -> tuple[date, bool]:
    """Return the day of ``20261001`` or ``20261001T093000``, and whether its time is after midnight."""
    match = _TIME.fullmatch(value)
    try:
        day = date.fromisoformat(match[1]) if match else None
    except ValueError:
        day = None
    if not match or not day:
        raise _refusal(line, N_('"%(text)s" is not a date; give one such as 20261001', text=value))
    if match[3]:
        problem = N_(
            '"%(text)s" is a time in UTC, whose day depends on the zone; give a date such as 20261001',
            text=value,
        )
        raise _refusal(line, problem)
    return _checked_day(line, day), bool(match[2] and int(match[2]))


def _events(text: str) -> Iterator[_Event]:
    """Yield the events of an iCalendar file; other components, such as an alarm of an event, are skipped."""
    open_components: list[tuple[int, str]] = []
    event = _Event(0)
    number = 0
    for number, content in _content_lines(text):
        match = _PROPERTY.fullmatch(content)
        name, value = (match[1].upper(), match[2].strip()) if match else ("", "")
        if not open_components and (name, value.upper()) != ("BEGIN", "VCALENDAR"):
            raise _refusal(number, N_("not an iCalendar file; it must start with BEGIN:VCALENDAR"))
        if name == "BEGIN":
            open_components.append((number, value.upper()))
            if value.upper() == "VEVENT":
                event = _Event(number)
        elif name == "END":
            if open_components.pop()[1] != value.upper():
                raise _refusal(number, N_("END:%(name)s does not belong to the last BEGIN", name=value))
            if value.upper() == "VEVENT":
                yield event
        elif open_components[-1][1] == "VEVENT":
            if not match:
                raise _refusal(number, N_("not a property; give one such as DTSTART:20261001"))
            event.values.setdefault(name, (number, value))
    if open_components:
        line, name = open_components[-1]
        raise _refusal(number, N_("END:%(name)s of line %(line)s is missing", name=name, line=line))


def _content_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers; one that starts with a blank or tab goes on with the one before."""
    first, content = 0, ""
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        if line[:1] in (" ", "\t") and content:
            content += line[1:]
            continue
        if content.strip():
            yield first, content
        first, content = number, line
    if content.strip():
        yield first, content


def _checked_day(line: int, day: date) -> date:
    """Return the day; raise ``InvalidInput`` if it is not of our time."""
    if day.year not in YEARS:
        raise _refusal(line, N_("%(day)s is not in the years 2000 to 2099", day=day))
    return day


def _checked_text(text: str) -> str:
    """Return the text without a byte order mark; raise ``InvalidInput`` if it is too large."""
    if len(text) > BYTES_MAX or len(text.encode("utf-8", "replace")) > BYTES_MAX:
        raise InvalidInput(FILE, N_("The file is larger than 1 MB; give fewer years"))
    return text.removeprefix("\ufeff")


def _refusal(line: int, problem: Text) -> InvalidInput:
    return InvalidInput(FILE, N_("Line %(line)s: %(problem)s", line=line, problem=problem))
