"""Search text of a list: ``tag:nightly last:failing payout`` as terms, each a filter or a word."""

import re
from dataclasses import dataclass

#: most words that each have to match, and longest text that is read
WORDS_MAX, TEXT_MAX = 5, 255
_VALUE = r'["“]([^"”]*)["”]?|([^\s"“]\S*)'
#: a word before a colon, also a full-width one, with a value, or a value; one in quotes may have blanks
_TERM = re.compile(rf"([^\W\d]\w*)[:：][ \t]*(?:{_VALUE})?|{_VALUE}")


@dataclass(frozen=True, slots=True)
class Term:
    """Part of a search text: a word before a colon and its value; without one, text to search for."""

    value: str
    word: str = ""


def split_search(text: str) -> list[Term]:
    """Return the terms of a search text; quotes keep blanks and colons: ``tag:"night shift" "a: b"``."""
    matches = (match.groups(default="") for match in _TERM.finditer(text[:TEXT_MAX]))
    terms = [Term("".join(values).strip(), word) for word, *values in matches]
    return [term for term in terms if term.value or term.word]


def free_text(terms: list[Term]) -> str:
    """Return the text to search for, as it is typed: quotes stay around what needs them."""
    return " ".join(
        f'"{term.value}"' if re.search(r"[\s:：]", term.value) else term.value
        for term in terms
        if not term.word
    )


def searched_words(text: str) -> tuple[str, ...]:
    """Return the words that all have to occur in a row; those after WORDS_MAX are left out."""
    return tuple(term.value for term in split_search(text) if not term.word)[:WORDS_MAX]
