"""Whether two names of time zones mean the same one."""

from datetime import UTC, datetime

from app.clock import Millis
from app.domain.schedules.time_zones import differ
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
