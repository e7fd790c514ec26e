"""Durations and lists as pages write them."""

import pytest
from flask import Flask
from flask_babel import force_locale

from app.console.ui.filters import comma_list, duration


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


@pytest.mark.parametrize(
    ("language", "text"),
    [("en", "8, 9, a <b>"), ("zh_Hans_CN", "8、9、a <b>")],
)
def test_a_list_has_the_separator_of_its_language(app: Flask, language: str, text: str) -> None:
    with app.test_request_context(), force_locale(language):
        assert comma_list([8, 9, "a <b>"]) == text
