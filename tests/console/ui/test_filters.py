"""Durations as pages write them."""

import pytest
from flask import Flask

from app.console.ui.filters import duration


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, ""),
        (-5, "< 1 s"),
        (0, "< 1 s"),
        (320, "320 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (1_290, "1.2 s"),
        (9_999, "9.9 s"),
        (12_900, "12 s"),
        (200_000, "3 min 20 s"),
        (18_120_000, "5 h 2 min"),
    ],
)
def test_a_duration_is_as_exact_as_one_reads(app: Flask, ms: int | None, text: str) -> None:
    with app.test_request_context():
        assert duration(ms) == text
