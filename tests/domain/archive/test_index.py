"""Index of archived logs: trigrams, literals of regular expressions, segments."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.archive.folding import fold
from app.domain.archive.literals import is_usable, need_of_regex
from app.domain.archive.segments import Part, Segment, build_segment
from app.domain.archive.trigrams import dump_need, holds, load_need, need_of, select, slots_of

PIECES = ["Error", "timeout", "refused", "日志", "归档", "İx", "ſt", "ошибка", "a", "0815", " ", "\t", "-"]
TEXTS = st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), max_size=20)
PATTERNS = [
    "timeout",
    "Error.*refused",
    "(timeout|refused)",
    "(timeout|x)",
    r"\d+ ?timeout",
    "(?i)ERROR",
    "(?:Err|tim)(?:or|eout)",
    "(?i:REF)used",
    "(?=Error)[A-Z]rror",
    "日志+归档?",
    "(refused){0,3}Error",
    "(?:timeout){2,}",
    "(?>refused)0815",
    "(?i)ſt",
    "^$",
]


def open_segment(texts: Sequence[str]) -> Segment:
    parts = [Part(number, 1, 9) for number in range(len(texts))]
    content = build_segment(parts, [slots_of(text) for text in texts])
    segment = Segment(lambda start, size: content[start : start + size])
    assert segment.parts() == parts
    return segment


@given(TEXTS, st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join))
def test_no_text_with_a_match_is_left_out(texts: list[str], wanted: str) -> None:
    need = need_of(wanted)
    if need is None:
        return
    bits = open_segment(texts).select(need)
    for number, text in enumerate(texts):
        assert bits >> number & 1 or fold(wanted) not in fold(text)


@given(TEXTS, st.sampled_from(PATTERNS))
def test_no_text_that_a_regular_expression_matches_is_left_out(texts: list[str], pattern: str) -> None:
    need = load_need(dump_need(need_of_regex(pattern, 0)))
    if need is None:
        return
    bits = open_segment(texts).select(need)
    for number, text in enumerate(texts):
        assert bits >> number & 1 or re.search(pattern, text) is None
        assert holds(need, fold(text)) or re.search(pattern, text) is None


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("timeout", {"a timeout": True, "time out": False}),
        ("(timeout|refused) \\d", {"timeout": True, "was refused": True, "else": False}),
        ("(?:timeout){2,}x?", {"timeouttimeout": True, "else": False}),
        ("(?i)TimeOut", {"TIMEOUT": True, "else": False}),
        ("日志", {"日志": True, "日誌": False}),
    ],
)
def test_texts_without_the_literals_are_left_out(pattern: str, texts: dict[str, bool]) -> None:
    need = need_of_regex(pattern, 0)
    assert need is not None
    bits = open_segment([*texts]).select(need)
    assert [bool(bits >> number & 1) for number in range(len(texts))] == [*texts.values()]
    assert [holds(need, fold(text)) for text in texts] == [*texts.values()]


@pytest.mark.parametrize("pattern", ["a", "(timeout|a)", "(timeout)?", "(?!timeout)", r"\w+", "(?i)ошибка"])
def test_nothing_is_known_without_a_literal(pattern: str) -> None:
    assert need_of_regex(pattern, 0) is None


def test_usable_letters_match_only_what_is_folded_to_the_same() -> None:
    letters = [chr(code) for code in range(0x2_0000) if not 0xD800 <= code < 0xE000]
    cased = [each for each in letters if each.lower() != each or each.upper() != each]
    every = "".join(letters)
    for letter in [chr(code) for code in range(128)] + cased[::11]:
        equal = re.findall(re.escape(letter), every, re.IGNORECASE)
        usable = [each for each in equal if is_usable(each, ignores_case=True)]
        if is_usable(letter, ignores_case=True):
            assert {fold(each) for each in equal} == {fold(letter)}
        assert {fold(each) for each in usable} <= {fold(letter)}, letter


def test_a_need_looks_up_few_rows_of_a_long_text() -> None:
    rows = list[int]()
    need = need_of("a rather long text with many different words, of which few suffice")
    assert need is not None
    select(need, lambda slot: rows.append(slot) or 1, 1)  # type: ignore[func-returns-value]
    assert 10 <= len(rows) <= 30
    rows.clear()
    select(need, lambda slot: rows.append(slot) or 0, 1)  # type: ignore[func-returns-value]
    assert len(rows) == 1


def test_what_is_no_segment_is_refused() -> None:
    for content in (b"", b"x" * 9_000):
        with pytest.raises(ValueError, match="no segment"):
            Segment(lambda start, size, content=content: content[start : start + size])  # type: ignore[misc]
    whole = build_segment([Part(1, 1, 1)], [slots_of("timeout")])
    damaged = Segment(lambda start, size: whole[start : start + size - 1] + b"x" if start else whole[:size])
    need = need_of("timeout")
    assert need is not None
    with pytest.raises(ValueError, match="damaged"):
        damaged.select(need)
    assert open_segment([]).select(need) == 0
