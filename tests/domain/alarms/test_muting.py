"""Mutes: how long one lasts, and which of several an alarm belongs to."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.domain.alarms.muting import UNTIL_UNDONE_MS, MuteSpan, end_of, is_muted, longest
from tests.support.truth_table import truth_table

NOW: Millis = 1_714_532_645_123
HOUR: Millis = 60 * MINUTE_MS


@dataclass(frozen=True)
class Sample:
    until_ms: Millis


def at(text: str, zone: str) -> Millis:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1000


@truth_table(
    "span, end",
    [
        (MuteSpan.HOUR, NOW + HOUR),
        (MuteSpan.EIGHT_HOURS, NOW + 8 * HOUR),
        (MuteSpan.DAY, NOW + DAY_MS),
        (MuteSpan.WEEK, NOW + 7 * DAY_MS),
        (MuteSpan.UNTIL_UNDONE, UNTIL_UNDONE_MS),
    ],
)
def test_a_mute_ends_after_its_span(span: MuteSpan, end: Millis) -> None:
    assert end_of(span, now_ms=NOW, zone="Asia/Shanghai") == end


@truth_table(
    "now, zone, end",
    [
        ("2024-05-01 23:30:00", "Asia/Shanghai", "2024-05-02 08:00:00"),
        ("2024-05-01 00:10:00", "Asia/Shanghai", "2024-05-02 08:00:00"),
        ("2024-05-01 07:59:59", "UTC", "2024-05-02 08:00:00"),
        ("2024-12-31 12:00:00", "America/New_York", "2025-01-01 08:00:00"),
        ("2024-03-30 22:00:00", "Europe/Berlin", "2024-03-31 08:00:00"),
        ("2024-10-26 22:00:00", "Europe/Berlin", "2024-10-27 08:00:00"),
    ],
)
def test_tomorrow_is_eight_in_the_morning_of_the_readers_next_day(now: str, zone: str, end: str) -> None:
    assert end_of(MuteSpan.TOMORROW, now_ms=at(now, zone), zone=zone) == at(end, zone)


@truth_table("until_ms, muted", [(NOW + 1, True), (NOW, False), (NOW - 1, False), (UNTIL_UNDONE_MS, True)])
def test_a_mute_holds_until_its_end_and_not_at_it(until_ms: Millis, muted: bool) -> None:
    assert is_muted(until_ms, NOW) is muted


@truth_table(
    "ends, chosen",
    [
        ([], None),
        ([NOW], None),
        ([NOW - 5, NOW + 5], NOW + 5),
        ([NOW + 9, NOW + 5], NOW + 9),
        ([NOW + 9, UNTIL_UNDONE_MS], UNTIL_UNDONE_MS),
    ],
)
def test_an_alarm_belongs_to_the_mute_that_ends_last(ends: list[Millis], chosen: Millis | None) -> None:
    found = longest([Sample(end) for end in ends], now_ms=NOW)
    assert (found.until_ms if found else None) == chosen
