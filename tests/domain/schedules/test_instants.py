"""Instants as texts: written in UTC, read with any offset."""

import pytest

from app.clock import LATEST_MS
from app.domain.schedules.instants import read_instant, write_instant
from tests.support.truth_table import truth_table

AT_MS = 1_714_532_645_123


@truth_table("at_ms", [0, AT_MS, LATEST_MS])
def test_an_instant_survives_the_way_to_text_and_back(at_ms: int) -> None:
    assert read_instant(write_instant(at_ms)) == at_ms


@truth_table(
    "text", ["2024-05-01T03:04:05.123Z", "2024-05-01T05:04:05.123+02:00", "2024-04-30T21:04:05.123-06:00"]
)
def test_an_instant_may_have_any_offset(text: str) -> None:
    assert read_instant(text) == AT_MS


@truth_table(
    "text",
    [
        "2024-05-01T03:04:05",
        "2024-05-01",
        "soon",
        "",
        5,
        None,
        "9999-06-01T00:00:00Z",
        "1969-12-31T00:00:00Z",
    ],
)
def test_a_text_that_is_no_instant_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="must be a time"):
        read_instant(text)
