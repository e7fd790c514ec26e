"""Times of parameters: letters and steps as java.time has them, clock changes, and the ends of months."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.domain.parameters.errors import NotFilled
from tests.domain.parameters.values import AT_MS, filled, local_ms
from tests.support.truth_table import truth_table

DATA = Path(__file__).parents[2] / "data"
#: printed by tests/data/DatePatterns.java
GOLDEN = [
    json.loads(line) for line in (DATA / "date_patterns.jsonl").read_text(encoding="utf-8").splitlines()
]
BERLIN = "Europe/Berlin"


@truth_table("row", GOLDEN)
def test_times_are_those_of_java(row: dict[str, Any]) -> None:
    text = f"${{time{row['form']}}}"
    assert filled(text, logical_ms=row["at_ms"], time_zone=row["zone"]) == row["text"]


@truth_table(
    "placeholder, text",
    [
        ("${time:yyyy-MM-dd}", "2026-11-20"),
        ("${time-1d:yyyyMMdd}", "20261119"),
        ("${time.month.first:yyyy-MM-dd HH:mm:ss}", "2026-11-01 08:30:15"),
        ("${time-1M.month.last:yyyy-MM-dd}", "2026-10-31"),
        ("${time.quarter.first:MM-dd} ${time.quarter.last:MM-dd}", "10-01 12-31"),
        ("${time.year.first:MM-dd} ${time.year.last:MM-dd}", "01-01 12-31"),
        ("${time.week.first:EEE d} ${time.week.last:EEE d}", "Mon 16 Sun 22"),
        ("${time.day.first:HH:mm:ss.SSS}", "00:00:00.250"),
        ("${time.day.last:dd HH:mm:ss}", "20 23:59:59"),
        ("${time.hour.first:HH:mm:ss} ${time.hour.last:HH:mm:ss}", "08:00:00 08:59:59"),
        ("${time-9h:yyyy-MM-dd HH}", "2026-11-19 23"),
        ("${time@UTC:yyyy-MM-dd HH:mm XXX}", "2026-11-20 00:30 Z"),
        ("${time-1d@America/New_York:dd HH Z}", "18 19 -0500"),
        ("${time@Etc/GMT+8:dd HH XXX}", "19 16 -08:00"),
        ("${time.epoch_ms} ${time.epoch_s}", f"{AT_MS} {AT_MS // 1000}"),
        ("${time.day.first@UTC.epoch_s}", "1795132800"),
        ("${time-1d.month.first+1w:dd}", "08"),
        ("${time:h 'o''clock' a, ''yy'' '}'}", "8 o'clock AM, '26' }"),
        ("${time:{d}}", "{20}"),
    ],
)
def test_times_are_filled_in(placeholder: str, text: str) -> None:
    assert filled(placeholder) == text


@truth_table(
    "start, steps, end",
    [
        ("2027-01-31", "+1M", "2027-02-28"),
        ("2028-01-31", "+1M", "2028-02-29"),
        ("2027-01-31", "+1M+1M", "2027-03-28"),
        ("2027-01-31", "+2M", "2027-03-31"),
        ("2027-03-31", "-1M", "2027-02-28"),
        ("2028-02-29", "+1y", "2029-02-28"),
        ("2028-02-29", "-4y", "2024-02-29"),
        ("2027-12-31", "+2M.month.last", "2028-02-29"),
        ("2027-05-31", ".quarter.last", "2027-06-30"),
        ("2027-08-31", ".year.first-1d", "2026-12-31"),
        ("2027-01-01", ".week.first", "2026-12-28"),
        ("2026-12-31", "-1w.week.last", "2026-12-27"),
    ],
)
def test_months_end_on_their_last_day(start: str, steps: str, end: str) -> None:
    at_ms = local_ms(f"{start}T12:00", "UTC")
    assert filled(f"${{time{steps}:yyyy-MM-dd HH}}", logical_ms=at_ms, time_zone="UTC") == f"{end} 12"


@truth_table(
    "start, fold, zone, steps, end",
    [
        # 02:00 to 03:00 is skipped on 28 March 2027, and occurs twice on 31 October 2027.
        ("2027-03-27T02:30", 0, BERLIN, "+1d", "2027-03-28 03:00 +02:00"),
        ("2027-03-29T02:30", 0, BERLIN, "-1d", "2027-03-28 03:00 +02:00"),
        ("2027-02-28T02:59", 0, BERLIN, "+1M", "2027-03-28 03:00 +02:00"),
        ("2027-03-27T02:30", 0, BERLIN, "+1d+1d", "2027-03-29 03:00 +02:00"),
        ("2027-03-27T02:30", 0, BERLIN, "+24h", "2027-03-28 03:30 +02:00"),
        ("2027-03-28T01:30", 0, BERLIN, "+1h", "2027-03-28 03:30 +02:00"),
        ("2027-10-30T02:30", 0, BERLIN, "+1d", "2027-10-31 02:30 +02:00"),
        ("2027-11-01T02:30", 0, BERLIN, "-1d", "2027-10-31 02:30 +01:00"),
        ("2027-10-31T02:30", 1, BERLIN, ".hour.first", "2027-10-31 02:00 +01:00"),
        ("2027-10-31T02:30", 0, BERLIN, ".hour.last", "2027-10-31 02:59 +02:00"),
        ("2027-10-31T02:30", 0, BERLIN, "+1h", "2027-10-31 02:30 +01:00"),
        ("2027-10-31T02:30", 1, BERLIN, "-1h", "2027-10-31 02:30 +02:00"),
        # Midnight is skipped in Beirut on 28 March 2027, so the day begins at 01:00.
        ("2027-03-28T12:00", 0, "Asia/Beirut", ".day.first", "2027-03-28 01:00 +03:00"),
        # Lord Howe's clocks change by half an hour.
        ("2027-10-02T02:15", 0, "Australia/Lord_Howe", "+1d", "2027-10-03 02:30 +11:00"),
        # Samoa had no 30 December 2011.
        ("2011-12-29T10:00", 0, "Pacific/Apia", "+1d", "2011-12-31 00:00 +14:00"),
    ],
)
def test_clock_changes(start: str, fold: int, zone: str, steps: str, end: str) -> None:
    at_ms = local_ms(start, zone, fold)
    assert filled(f"${{time{steps}:yyyy-MM-dd HH:mm XXX}}", logical_ms=at_ms, time_zone=zone) == end


@truth_table(
    "steps, at_ms, zone",
    [
        ("-99999d", AT_MS, "UTC"),
        ("+99999w+99999w+99999w+99999w+99999w", AT_MS, "UTC"),
        ("+99999y", AT_MS, "UTC"),
        ("-99999M", AT_MS, "UTC"),
        ("+8000y", AT_MS, "UTC"),
        ("-57y", AT_MS, "UTC"),
        ("-1s", 0, "UTC"),
        ("", 0, "America/New_York"),
        ("", -1, "UTC"),
        ("", 10**18, "UTC"),
        ("+99999h", 253_370_764_799_000, "UTC"),
    ],
)
def test_years_out_of_range_are_refused(steps: str, at_ms: int, zone: str) -> None:
    placeholder = f"${{time{steps}:yyyy}}"
    with pytest.raises(NotFilled, match="parameter not filled: .*: year out of range"):
        filled(placeholder, logical_ms=at_ms, time_zone=zone)
