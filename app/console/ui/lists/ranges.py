"""Time ranges of the filters: names in the URL and their instants in the reader's zone."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from flask import request

from app.clock import DAY_MS, LATEST_MS, MINUTE_MS, Millis, storable_ms
from app.console.ui.labels import RANGES

#: formats of ``datetime-local`` inputs; the seconds may be missing
INPUT_SHAPES = (
    *("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"),
    "%Y-%m-%d",
)
#: maximum days of a chart
DAYS_MAX = 366
#: accepted years
FIRST_YEAR, LAST_YEAR = 1990, 2100


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Time range, both ends inclusive; None is unbounded."""

    from_ms: Millis | None
    to_ms: Millis | None


@dataclass(frozen=True, slots=True)
class RequestedRange:
    """Time range of a list's URL: its name, its bounds, and the texts of its two fields."""

    name: str
    bounds: TimeRange
    from_text: str
    to_text: str


def requested_range(default: str, zone: ZoneInfo, *, now_ms: Millis) -> RequestedRange:
    """Read the range of a list; without a name the two texts, if there are any, else the default."""
    args = request.args
    from_text, to_text = args.get("from", ""), args.get("to", "")
    name = args.get("range", "") or ("custom" if "from" in args or "to" in args else default)
    name = name if name in RANGES else default
    if name == "custom":
        return _between(from_text, to_text, zone)
    return RequestedRange(name, named_range(name, zone, now_ms=now_ms), from_text, to_text)


def _between(from_text: str, to_text: str, zone: ZoneInfo) -> RequestedRange:
    """Return the range between two instants in either order; one that is missing is unbounded."""
    from_ms, to_ms = _storable(from_text, zone), _storable(to_text, zone)
    if from_ms is not None and to_ms is not None and to_ms < from_ms:
        return RequestedRange("custom", TimeRange(to_ms, from_ms), to_text, from_text)
    return RequestedRange("custom", TimeRange(from_ms, to_ms), from_text, to_text)


def range_text(name: str, from_text: str, to_text: str) -> str:
    """Return a range in words: its title, or its two instants as they were entered."""
    if name != "custom" or not (from_text or to_text):
        return str(RANGES[name])
    ends = (text if _moment(text) else "…" for text in (from_text, to_text))
    return " – ".join(text.replace("T", " ") for text in ends)


def _storable(text: str, zone: ZoneInfo) -> Millis | None:
    instant_ms = read_local(text, zone) if text else None
    return None if instant_ms is None else storable_ms(instant_ms)


def named_range(name: str, zone: ZoneInfo, *, now_ms: Millis) -> TimeRange:
    """Return the range of a name in ``labels.RANGES``; any other name means all."""
    sliding = {"hour": 60 * MINUTE_MS, "day": DAY_MS}
    if name in sliding:
        return TimeRange(now_ms - sliding[name], None)
    today = datetime.fromtimestamp(now_ms / 1000, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    first = today.replace(day=1)
    days = {
        "today": (today, today + timedelta(days=1)),
        "yesterday": (today - timedelta(days=1), today),
        "week": (today - timedelta(days=6), today + timedelta(days=1)),
        "month": (today - timedelta(days=29), today + timedelta(days=1)),
        "this_month": (first, today + timedelta(days=1)),
        "last_month": ((first - timedelta(days=1)).replace(day=1), first),
    }
    if name not in days:
        return TimeRange(None, None)
    start, end = days[name]
    return TimeRange(_ms(start), _ms(end) - 1)


def requested_days(texts: tuple[str, str], zone: ZoneInfo, *, now_ms: Millis) -> TimeRange:
    """Return the days between two dates in either order.

    With one date a week from or up to it, with none the last week.
    """
    today = datetime.fromtimestamp(now_ms / 1000, zone).date()
    first, last = (read_day(text) for text in texts)
    last = last or (min(first + timedelta(days=6), today) if first and first <= today else first) or today
    first, last = sorted((first or last - timedelta(days=6), last))
    first = max(first, last - timedelta(days=DAYS_MAX - 1))
    start, end = (
        datetime(day.year, day.month, day.day, tzinfo=zone) for day in (first, last + timedelta(days=1))
    )
    return TimeRange(_ms(start), _ms(end) - 1)


def read_day(text: str) -> date | None:
    """Return a day such as ``2024-05-01``, or None."""
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        return None
    return day if FIRST_YEAR <= day.year < LAST_YEAR else None


def day_names(span: TimeRange, zone: ZoneInfo) -> list[str]:
    """Return the days of a range as ``2024-05-01``."""
    if span.from_ms is None or span.to_ms is None:
        return []
    first, last = (datetime.fromtimestamp(ms / 1000, zone).date() for ms in (span.from_ms, span.to_ms))
    return [(first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1)]


def read_local(text: str, zone: ZoneInfo) -> Millis | None:
    """Return the instant of a local time such as ``2024-05-01T10:00:00``, or None."""
    moment = _moment(text)
    try:
        return _ms(moment.replace(tzinfo=zone)) if moment else None
    except (ValueError, OverflowError):
        return None


def _moment(text: str) -> datetime | None:
    for shape in INPUT_SHAPES:
        try:
            return datetime.strptime(text.strip(), shape)
        except ValueError:
            continue
    return None


def field_text(text: str, *, is_end: bool = False) -> str:
    """Return a typed local time as a ``datetime-local`` field has it; empty if it is none.

    A day is its first second, or at the end of a range its last.
    """
    moment = _moment(text)
    if moment is None:
        return ""
    is_day = not any(mark in text for mark in ":T")
    return (moment.replace(hour=23, minute=59, second=59) if is_day and is_end else moment).isoformat()


def write_local(ms: Millis, zone: ZoneInfo) -> str:
    """Return ``2024-05-01 10:00:00``; empty for 0."""
    return datetime.fromtimestamp(min(ms, LATEST_MS) / 1000, zone).strftime("%Y-%m-%d %H:%M:%S") if ms else ""


def _ms(moment: datetime) -> Millis:
    return int(moment.timestamp()) * 1000
