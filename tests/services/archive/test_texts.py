"""Redaction of lines."""

import time

import pytest

from app.services.archive.texts import OVERLAP, PART_MAX, Redaction

WORDS = Redaction(r"password=\S+|\b\d{16}\b")


@pytest.mark.parametrize("before", [0, 1, OVERLAP, PART_MAX - 30, PART_MAX - 9, PART_MAX - 1, 3 * PART_MAX])
@pytest.mark.parametrize("value", ["password=hunter2", "1234567890123456", "password=" + "x" * 3 * PART_MAX])
def test_long_lines_are_redacted_wherever_a_match_begins(before: int, value: str) -> None:
    start, end = "." * before, " and so on." * PART_MAX
    assert WORDS.redact(f"{start} {value}{end}") == f"{start} ***{end}"


def test_what_only_the_end_of_a_part_lets_match_stays() -> None:
    line = "." * (PART_MAX - 17) + " " + "7" * 40 + "." * PART_MAX
    assert WORDS.redact(line) == line


def test_a_hostile_line_holds_nothing_up() -> None:
    started_s = time.monotonic()
    line = "a" * 100_000
    assert Redaction(r"\S+@\S+").redact(line) == line
    assert time.monotonic() - started_s < 5.0, "it takes the square of its length otherwise"
