"""Next fires: documented check values, clock changes, and searches without a result."""

from datetime import UTC, datetime
from time import perf_counter

from app.domain.schedules.cron.expression import CronExpression
from app.domain.schedules.schedule import zone
from tests.support.truth_table import truth_table


def fires(expression: str, time_zone: str, start: str, count: int) -> list[str]:
    """Return chained fires after a local time, as local times with their offset."""
    cron, tz = CronExpression.parse(expression), zone(time_zone)
    at: int | None = int(datetime.fromisoformat(start).replace(tzinfo=tz).timestamp() * 1000)
    found: list[str] = []
    while len(found) < count and at is not None and (at := cron.next_after_ms(at, tz)) is not None:
        found.append(datetime.fromtimestamp(at / 1000, tz).strftime("%Y-%m-%d %H:%M:%S%z"))
    return found


@truth_table(
    "expression, start, expected",
    [
        ("0 0 0 * * ? *", "2024-02-28 12:00:00", "2024-02-29 00:00:00"),
        ("0 0/15 9-17 ? * MON-FRI", "2024-05-03 17:45:00", "2024-05-06 09:00:00"),
        ("0 30 8 L * ?", "2024-01-31 08:30:00", "2024-02-29 08:30:00"),
        ("0 0 12 ? * 6#3", "2024-05-01 00:00:00", "2024-05-17 12:00:00"),
        ("0 0 12 ? * 2L", "2024-05-01 00:00:00", "2024-05-27 12:00:00"),
        ("0 0 9 15W * ?", "2024-06-01 00:00:00", "2024-06-14 09:00:00"),
        ("0/7 * * * * ?", "2024-06-01 10:00:56.900", "2024-06-01 10:01:00"),
        ("0 0 0 29 2 ? *", "2024-02-29 00:00:00", "2028-02-29 00:00:00"),
        ("0 0 0 30 2 ?", "2024-01-01 00:00:00", None),
        ("0 0 0 1 1 ? 2020", "2024-01-01 00:00:00", None),
        ("0 0 0 LW 6 ?", "2024-01-01 00:00:00", "2024-06-28 00:00:00"),
        ("0 0 0 1W 6 ?", "2024-01-01 00:00:00", "2024-06-03 00:00:00"),
        ("0 0 0 30W 6 ?", "2024-01-01 00:00:00", "2024-06-28 00:00:00"),
        ("0 30 12 31W * ?", "2027-03-31 12:30:00", "2027-04-30 12:30:00"),
        ("0 30 12 31W * ?", "2026-12-31 12:30:00", "2027-01-29 12:30:00"),
        ("0 0 0 L-3 2 ?", "2024-01-01 00:00:00", "2024-02-26 00:00:00"),
        ("0 0 0 1 1 ? 2025/7", "2025-06-01 00:00:00", "2032-01-01 00:00:00"),
    ],
)
def test_check_values(expression: str, start: str, expected: str | None) -> None:
    cron, local = CronExpression.parse(expression), datetime.fromisoformat(start)
    expected_time = None if expected is None else datetime.fromisoformat(expected)
    assert cron.next_after(local) == expected_time
    found = cron.next_after_ms(int(local.replace(tzinfo=UTC).timestamp() * 1000), UTC)
    assert found == (None if expected_time is None else expected_time.replace(tzinfo=UTC).timestamp() * 1000)


@truth_table(
    "days, expected",
    [
        ("1,L", ["02-01", "02-29", "03-01", "03-31"]),
        ("L,15", ["02-15", "02-29", "03-15", "03-31"]),
        ("15,LW", ["02-15", "02-29", "03-15", "03-29"]),
        ("L-1,L", ["02-28", "02-29", "03-30", "03-31"]),
        ("17W,3W", ["02-02", "02-16", "03-04", "03-18"]),
        ("10-12,17W", ["02-10", "02-11", "02-12", "02-16"]),
        ("17,17W", ["02-16", "02-17", "03-17", "03-18"]),
        ("1W,31W", ["02-01", "03-01", "03-29", "04-01"]),
        ("1W,L", ["02-01", "02-29", "03-01", "03-31"]),
    ],
)
def test_each_day_of_a_list_has_its_own_rule(days: str, expected: list[str]) -> None:
    found = fires(f"0 0 2 {days} * ?", "UTC", "2024-01-31 12:00", len(expected))
    assert [text[5:10] for text in found] == expected


@truth_table(
    "expression, time_zone, start, expected",
    [
        (
            "0 30 2 * * ?",
            "America/New_York",
            "2025-03-08 12:00",
            ["2025-03-10 02:30:00-0400", "2025-03-11 02:30:00-0400"],
        ),
        (
            "0 30 * * * ?",
            "America/New_York",
            "2025-03-09 01:00",
            ["2025-03-09 01:30:00-0500", "2025-03-09 03:30:00-0400"],
        ),
        ("0 0 2 * * ?", "Australia/Lord_Howe", "2025-10-04 12:00", ["2025-10-06 02:00:00+1100"]),
        (
            "0 15,40 2 * * ?",
            "Australia/Lord_Howe",
            "2025-10-04 12:00",
            ["2025-10-05 02:40:00+1100", "2025-10-06 02:15:00+1100"],
        ),
        ("0 0 0 * * ?", "America/Sao_Paulo", "2018-11-03 12:00", ["2018-11-05 00:00:00-0200"]),
        ("0 0 0/12 30 12 ? 2011", "Pacific/Apia", "2011-12-29 00:00", []),
    ],
)
def test_a_missing_local_time_is_left_out(
    expression: str, time_zone: str, start: str, expected: list[str]
) -> None:
    assert fires(expression, time_zone, start, max(len(expected), 1)) == expected


@truth_table(
    "expression, time_zone, start, expected",
    [
        (
            "0 30 1 * * ?",
            "America/New_York",
            "2025-11-01 12:00",
            ["2025-11-02 01:30:00-0500", "2025-11-03 01:30:00-0500"],
        ),
        (
            "0 0/30 * * * ?",
            "Europe/Berlin",
            "2025-10-26 01:30",
            ["2025-10-26 02:00:00+0100", "2025-10-26 02:30:00+0100"],
        ),
        (
            "0 40 1 * * ?",
            "Australia/Lord_Howe",
            "2025-04-05 12:00",
            ["2025-04-06 01:40:00+1030", "2025-04-07 01:40:00+1030"],
        ),
        # started at the first 01:40: counts as the second
        ("0 30 1 * * ?", "America/New_York", "2025-11-02 01:40", ["2025-11-03 01:30:00-0500"]),
    ],
)
def test_a_repeated_local_time_fires_the_second_time(
    expression: str, time_zone: str, start: str, expected: list[str]
) -> None:
    assert fires(expression, time_zone, start, len(expected)) == expected


@truth_table(
    "expression",
    [
        "0 0 0 L-30W 2 ?",
        "0 0 0 31W 2 ?",
        "0 0 0 30 2 ?",
        "0 0 0 31 2,4,6,9,11 ?",
        "0 0 0 1 1 ? 1970",
        "0 0 0 1 1 ? 2199",
        "0 0 0 1 1 ? 99999999",
        "0 0 0 1 1 ? L",
        "0 0 0 L-28W 2 ? 2025,2026",
    ],
)
def test_a_search_without_a_result_ends_soon(expression: str) -> None:
    cron = CronExpression.parse(expression)
    begin = perf_counter()
    assert cron.next_after_ms(1_750_000_000_000, zone("Europe/Berlin")) is None
    assert perf_counter() - begin < 0.5


def test_a_huge_range_of_years_takes_neither_time_nor_memory() -> None:
    cron = CronExpression.parse("0 0 0 1 1 ? 1970-99999999")
    assert cron.years == (range(1970, 100_000_000),)
    assert cron.next_after_ms(0, UTC) == 365 * 86_400_000


@truth_table("after_ms", [2**63 - 1, 253_402_300_799_999, 253_370_764_800_000])
def test_nothing_fires_at_the_end_of_datetime(after_ms: int) -> None:
    assert CronExpression.parse("* * * * * ?").next_after_ms(after_ms, zone("Asia/Shanghai")) is None


def test_an_instant_before_1970_can_be_the_start() -> None:
    assert CronExpression.parse("0 0 0 1 1 ?").next_after_ms(-1_000_000_000_000, UTC) == 0
