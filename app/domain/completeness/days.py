"""Days of the configured zone, by which completeness is counted and sealed."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.clock import Millis
from app.domain.completeness.expected_instants import Interval

#: local time of the daily message about the day before
REPORT_AT = time(8)


def day_of(at_ms: Millis, zone: ZoneInfo) -> date:
    """Return the local day of an instant."""
    return datetime.fromtimestamp(at_ms / 1000, zone).date()


def start_of(day: date, zone: ZoneInfo) -> Millis:
    """Return the instant with which a local day begins."""
    return int(datetime.combine(day, time(), zone).timestamp()) * 1000


def interval_of(day: date, zone: ZoneInfo) -> Interval:
    """Return the instants of a local day."""
    return Interval(start_of(day, zone), start_of(day + timedelta(days=1), zone))


def split_by_days(interval: Interval, zone: ZoneInfo) -> Iterator[tuple[date, Interval]]:
    """Yield the parts of an interval that lie in different local days, with their days."""
    from_ms = interval.from_ms
    while from_ms < interval.until_ms:
        day = day_of(from_ms, zone)
        until_ms = min(interval.until_ms, interval_of(day, zone).until_ms)
        yield day, Interval(from_ms, until_ms)
        from_ms = until_ms


def latest_report_day(now_ms: Millis, zone: ZoneInfo) -> date:
    """Return the latest day that a daily message is due of: the one before, from 08:00 on."""
    now = datetime.fromtimestamp(now_ms / 1000, zone)
    return now.date() - timedelta(days=1 if now.time() >= REPORT_AT else 2)
