"""Names of near instants."""

from datetime import datetime
from zoneinfo import ZoneInfo

from app.domain.text.relative_times import Nearness, nearness
from tests.support.truth_table import truth_table

SHANGHAI = ZoneInfo("Asia/Shanghai")
BERLIN = ZoneInfo("Europe/Berlin")


def ms_of(text: str, zone: ZoneInfo) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


@truth_table(
    "now, instant, expected",
    [
        ("2026-11-28T09:41:00", "2026-11-28T09:41:00", (Nearness.JUST_NOW, 0)),
        ("2026-11-28T09:41:01", "2026-11-28T09:41:00", (Nearness.JUST_NOW, 0)),
        ("2026-11-28T09:41:00", "2026-11-28T09:41:01", (Nearness.NOW, 0)),
        ("2026-11-28T09:41:00", "2026-11-28T09:53:00", (Nearness.SECONDS, 720)),
        ("2026-11-28T09:41:00", "2026-11-28T09:40:57", (Nearness.SECONDS, -3)),
        ("2026-11-28T23:50:00", "2026-11-29T00:10:00", (Nearness.SECONDS, 1_200)),
        ("2026-11-28T09:41:00", "2026-11-28T21:40:59", (Nearness.SECONDS, 43_199)),
        ("2026-11-28T09:41:00", "2026-11-28T21:41:00", (Nearness.TODAY, 0)),
        ("2026-11-28T23:00:00", "2026-11-28T08:00:00", (Nearness.TODAY, 0)),
        ("2026-11-28T19:00:00", "2026-11-29T06:00:00", (Nearness.SECONDS, 39_600)),
        ("2026-11-28T17:00:00", "2026-11-29T06:00:00", (Nearness.TOMORROW, 1)),
        ("2026-11-28T00:30:00", "2026-11-29T23:30:00", (Nearness.TOMORROW, 1)),
        ("2026-11-28T12:00:00", "2026-11-27T23:10:00", (Nearness.YESTERDAY, -1)),
        ("2026-11-28T23:50:00", "2026-11-30T00:10:00", (Nearness.DAYS, 2)),
        ("2026-11-28T00:10:00", "2026-11-26T23:50:00", (Nearness.DAYS, -2)),
        ("2026-11-28T12:00:00", "2026-12-28T11:00:00", (Nearness.DAYS, 30)),
        ("2026-11-28T12:00:00", "2026-12-28T13:00:00", (Nearness.DATE, 0)),
        ("2026-11-28T12:00:00", "2025-01-01T00:00:00", (Nearness.DATE, 0)),
    ],
)
def test_an_instant_is_named_by_its_distance_or_day(
    now: str, instant: str, expected: tuple[Nearness, int]
) -> None:
    assert nearness(ms_of(instant, SHANGHAI), SHANGHAI, now_ms=ms_of(now, SHANGHAI)) == expected


def test_days_are_those_of_the_reader() -> None:
    now_ms, at_ms = ms_of("2026-11-28T08:00:00", BERLIN), ms_of("2026-11-28T22:00:00", BERLIN)
    assert nearness(at_ms, BERLIN, now_ms=now_ms) == (Nearness.TODAY, 0)
    assert nearness(at_ms, SHANGHAI, now_ms=now_ms) == (Nearness.TOMORROW, 1)


def test_the_day_of_a_clock_change_is_a_day() -> None:
    now_ms, at_ms = ms_of("2027-03-27T12:00:00", BERLIN), ms_of("2027-03-28T12:00:00", BERLIN)
    assert nearness(at_ms, BERLIN, now_ms=now_ms) == (Nearness.TOMORROW, 1)
