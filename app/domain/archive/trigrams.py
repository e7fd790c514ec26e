"""Trigrams of words: what the index of archived logs has of a text, and what a search needs of it.

A word is what blanks surround, in lower case, as bytes of UTF-8: so that two Chinese characters suffice for a
search. Each trigram has one of SLOTS numbers; a text that has a word has the slots of all its trigrams.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from zlib import crc32

from app.domain.archive.folding import fold

#: slots that trigrams are hashed to; with fewer the index is smaller and has more false positives
SLOTS: Final = 1 << 16
_MASK: Final = SLOTS - 1
#: bytes of a trigram
SIZE: Final = 3
#: trigrams of one word that are looked up: further ones leave out hardly any text
LOOKED_UP_MAX: Final = 12


def slots_of(text: str) -> set[int]:
    """Return the slots of a text."""
    words = set(fold(text).encode("utf-8", "replace").split())
    trigrams = {word[at : at + SIZE] for word in words for at in range(len(word) - SIZE + 1)}
    return {crc32(trigram) & _MASK for trigram in trigrams}


@dataclass(frozen=True, slots=True)
class Word:
    """A text that each match has, folded."""

    text: str
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Several texts that each match has."""

    parts: "tuple[Need, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Texts of which each match has one."""

    parts: "tuple[Need, ...]"


#: what each match has
Need = Word | AllOf | AnyOf


def need_of(text: str) -> Need | None:
    """Return what a text needs that each match has; None: it is too short for the index."""
    text = fold(text)
    slots = sorted(slots_of(text))
    return Word(text, tuple(slots[:: max(1, len(slots) // LOOKED_UP_MAX)])) if slots else None


def all_of(needs: Iterable[Need | None]) -> Need | None:
    """Return the need for all of some; those that are not known ask for nothing."""
    parts = tuple(need for need in needs if need is not None)
    return AllOf(parts) if parts else None


def any_of(needs: Iterable[Need | None]) -> Need | None:
    """Return the need for one of some; if one is not known, nothing is."""
    parts = tuple(needs)
    return AnyOf(tuple(part for part in parts if part is not None)) if parts and None not in parts else None


def select(need: Need, row: Callable[[int], int], every: int) -> int:
    """Return the texts that may match, as bits; ``row``: those that have a slot; ``every``: all."""
    match need:
        case Word(_, slots):
            bits = every
            for slot in slots:
                if not bits:
                    break
                bits &= row(slot)
            return bits
        case AllOf(parts):
            for part in parts:
                every = select(part, row, every) if every else 0
            return every
        case AnyOf(parts):
            bits = 0
            for part in parts:
                bits |= select(part, row, every)
            return bits


def holds(need: Need, content: str) -> bool:
    """Whether a folded text has what each match has."""
    match need:
        case Word(text):
            return text in content
        case AllOf(parts):
            return all(holds(part, content) for part in parts)
        case AnyOf(parts):
            return any(holds(part, content) for part in parts)


def dump_need(need: Need | None) -> Any:
    """Return a need as a JSON value."""
    match need:
        case None:
            return None
        case Word(text):
            return text
        case AllOf(parts):
            return {"all": [*map(dump_need, parts)]}
        case AnyOf(parts):
            return {"any": [*map(dump_need, parts)]}


def load_need(value: Any) -> Need | None:
    """Return the need that ``dump_need`` has made a value of."""
    if value is None:
        return None
    if isinstance(value, str):
        return need_of(value)
    if "all" in value:
        return all_of(map(load_need, value["all"]))
    return any_of(map(load_need, value["any"]))
