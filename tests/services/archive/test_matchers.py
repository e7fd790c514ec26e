"""Matchers: texts and regular expressions."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.archive.folding import fold
from app.errors import InvalidInput
from app.services.archive import matchers
from app.services.archive.matchers import SHOWN_MAX, TextMatcher, open_matcher

WORDS = [
    "Error",
    "error",
    "ERROR",
    "İstanbul",
    "straße",
    "ΑΣ",
    "σας",
    "ошибка",
    "ОШИБКА",
    "日志归档",
    "日誌",
    "K",
    "ſ",
    "a.b",
    "",
    " ",
]
LINES = st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), min_size=1, max_size=12)


@given(LINES, st.sampled_from([word for word in WORDS if word.strip()]), st.booleans(), st.integers(0, 3))
def test_a_text_is_found_where_a_look_at_each_line_finds_it(
    lines: list[str], wanted: str, ignores_case: bool, first: int
) -> None:
    matches = [*TextMatcher(wanted, ignores_case=ignores_case).find("\n".join(lines), first)]
    fitting = fold if ignores_case else str
    expected = [
        number for number, line in enumerate(lines) if number >= first and fitting(wanted) in fitting(line)
    ]
    assert [match.line for match in matches] == expected
    for match in matches:
        assert match.text == lines[match.line]
        assert {fitting(match.text[start:end]) for start, end in match.marks} == {fitting(wanted)}


def test_folding_keeps_the_positions_of_characters() -> None:
    every = [chr(code) for code in range(0x11000) if not 0xD800 <= code < 0xE000]
    assert [fold(each) for each in every if len(fold(each)) != 1] == []
    assert fold("".join(every)) == "".join(map(fold, every))


@pytest.mark.parametrize("ignores_case", [False, True])
def test_a_regular_expression_is_found_line_by_line(ignores_case: bool) -> None:
    lines = ["", "Error 17", "no error", "error 5\tx", "日志 error 9"] * 3
    with open_matcher(r"^\w* ?error \d+\s*", is_regex=True, ignores_case=ignores_case) as matcher:
        matches = [*matcher.find("\n".join(lines), 2)]
    pattern = re.compile(r"^\w* ?error \d+\s*", re.IGNORECASE if ignores_case else 0)
    expected = [
        (number, found.span())
        for number, line in enumerate(lines)
        if number >= 2 and (found := pattern.search(line))
    ]
    assert [(match.line, match.marks[0]) for match in matches] == expected


def test_more_lines_than_one_answer_has_are_found() -> None:
    with open_matcher("x", is_regex=True, ignores_case=False) as matcher:
        assert [match.line for match in matcher.find("x\n" * 2_500, 10)] == [*range(10, 2_500)]


def test_an_expression_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matchers, "PIECE_S", 0.2)
    started_s = time.monotonic()
    with (
        open_matcher("(a+)+$", is_regex=True, ignores_case=False) as matcher,
        pytest.raises(InvalidInput, match="takes too long"),
    ):
        [*matcher.find("a" * 60 + "!", 0)]
    assert time.monotonic() - started_s < 10


@pytest.mark.parametrize("pattern", ["(", "*", "(?P<a>x)(?P<a>y)", "a{99999999999}", "(" * 400])
def test_an_invalid_expression_is_refused(pattern: str) -> None:
    with (
        pytest.raises(InvalidInput, match="valid regular expression"),
        open_matcher(pattern, is_regex=True, ignores_case=False),
    ):
        pass


def test_of_a_long_line_the_part_around_the_match_is_shown() -> None:
    line = "x" * 5_000 + "needle" + "y" * 5_000 + "needle"
    [match] = TextMatcher("needle", ignores_case=False).find(line, 0)
    assert match.is_cut
    assert len(match.text) == SHOWN_MAX
    assert [match.text[start:end] for start, end in match.marks] == ["needle"]
