"""Dates sent by scripts, parsed like the original's SimpleDateFormat."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from app.clock import LATEST_MS
from app.console.scripting.dates import read_lenient, read_strict

ZONE = "Asia/Shanghai"


def millis(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(ZONE)).timestamp()) * 1000


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2024-05-01 03:04:05", "2024-05-01 03:04:05"),
        ("2020-01-02 00:00:00.000", "2020-01-02 00:00:00"),
        ("2020-01-02 00:00:59.999999", "2020-01-02 00:00:59"),
        ("2020-01-02 00:00:00+08:00 and more", "2020-01-02 00:00:00"),
        ("  2020-1-2  3:4:5", "2020-01-02 03:04:05"),
    ],
)
def test_text_after_the_seconds_is_ignored(text: str, meant: str) -> None:
    assert read_lenient(text, ZONE) == read_strict(text, ZONE) == millis(meant)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2020-01-01 24:00:00", "2020-01-02 00:00:00"),
        ("2020-02-30 00:00:00", "2020-03-01 00:00:00"),
        ("2020-13-01 00:00:00", "2021-01-01 00:00:00"),
        ("2020-00-00 00:00:00", "2019-11-30 00:00:00"),
        ("2020-12-31 23:59:60", "2021-01-01 00:00:00"),
        ("2020-01-01 00:-1:00", "2019-12-31 23:59:00"),
    ],
)
def test_a_field_beyond_its_range_is_carried_over_if_allowed(text: str, meant: str) -> None:
    assert read_lenient(text, ZONE) == millis(meant)
    assert read_strict(text, ZONE) is None


@pytest.mark.parametrize(
    ("text", "instant_ms"),
    [
        ("0001-01-01 00:00:00", 0),
        ("-2020-01-01 00:00:00", 0),
        ("2020-01-01 00:00:-99999999999999999999", 0),
        ("9999-12-31 23:59:59", LATEST_MS),
        ("20240-01-01 00:00:00", LATEST_MS),
        ("2020-01-99999999999999999999 00:00:00", LATEST_MS),
        (f"{'9' * 5000}-01-01 00:00:00", LATEST_MS),
    ],
)
def test_an_instant_that_cannot_be_stored_becomes_the_nearest_one(text: str, instant_ms: int) -> None:
    assert read_lenient(text, ZONE) == instant_ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "2024-05-01",
        "2024-05-01T00:00:00",
        "2024/05/01 00:00:00",
        "2024-05-01 00:00",
        "2024 -05-01 00:00:00",
    ],
)
def test_text_that_does_not_start_like_a_date_is_refused(text: str) -> None:
    assert read_lenient(text, ZONE) is None
    assert read_strict(text, ZONE) is None
