"""Whether two names of time zones mean the same one."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from app.clock import Millis
from app.domain.schedules.time_zones import differ, goes_back
from tests.support.truth_table import truth_table

NOW: Millis = int(datetime(2022, 1, 1, tzinfo=UTC).timestamp()) * 1_000


@truth_table(
    "first, second, expected",
    [
        ("UTC", "Etc/UTC", False),
        ("Asia/Shanghai", "PRC", False),
        ("UTC", "Nowhere/At_All", False),
        ("Europe/Berlin", "Asia/Shanghai", True),
        ("Europe/London", "UTC", True),
        ("Asia/Jerusalem", "Europe/Athens", True),  # from Friday to Sunday in March
    ],
)
def test_zones_differ_if_their_times_do(first: str, second: str, expected: bool) -> None:
    assert differ(first, second, now_ms=NOW) is differ(second, first, now_ms=NOW) is expected


@truth_table(
    "zone, expected",
    [
        ("Europe/Berlin", True),
        ("America/New_York", True),
        ("Australia/Lord_Howe", True),
        ("Asia/Shanghai", False),
        ("UTC", False),
    ],
)
def test_clocks_go_back_within_a_year(zone: str, expected: bool) -> None:
    assert goes_back(ZoneInfo(zone), now_ms=NOW) is expected
