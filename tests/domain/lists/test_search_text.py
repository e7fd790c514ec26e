"""Search text of a list: words before a colon, quotes, and words that all have to match."""

import pytest

from app.domain.lists.search_text import TEXT_MAX, WORDS_MAX, Term, free_text, searched_words, split_search


@pytest.mark.parametrize(
    ("text", "terms", "free"),
    [
        ("", [], ""),
        ("payout", [("", "payout")], "payout"),
        ("tag:nightly payout", [("tag", "nightly"), ("", "payout")], "payout"),
        ("last: failing", [("last", "failing")], ""),
        ("负责人：lina 报表", [("负责人", "lina"), ("", "报表")], "报表"),
        ('executor:"a b" x', [("executor", "a b"), ("", "x")], "x"),
        ('"a: b" "c d"', [("", "a: b"), ("", "c d")], '"a: b" "c d"'),
        ("tag:", [("tag", "")], ""),
        ("at 10:30", [("", "at"), ("", "10:30")], 'at "10:30"'),
        ('tag:"open', [("tag", "open")], ""),
        ('""', [], ""),
    ],
)
def test_terms_of_a_text(text: str, terms: list[tuple[str, str]], free: str) -> None:
    assert split_search(text) == [Term(value, word) for word, value in terms]
    assert free_text(split_search(text)) == free
    assert free_text(split_search(free)) == free, "the field can be sent again"


def test_words_and_texts_are_bounded() -> None:
    assert searched_words("a tag:x b") == ("a", "b")
    assert len(searched_words("a b c d e f g")) == WORDS_MAX
    assert sum(len(word) for word in searched_words("x" * 5_000)) == TEXT_MAX
