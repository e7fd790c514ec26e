"""Tags of a job: short free words, kept as they are typed, the same in whatever case."""

import re
import unicodedata
from collections.abc import Iterable

from app.domain.texts import N_, folded
from app.errors import InvalidInput

#: wire name of the field, and what it may hold
FIELD = "tags"
TAGS_MAX = 8
TAG_MAX = 30
#: the blank of Chinese keyboards
WIDE_BLANK = "\u3000"
#: what stands between tags where they are typed; in Chinese as well
_COMMAS = re.compile("[,，]")


def split_tags(typed: str) -> list[str]:
    """Return the tags of a line such as ``nightly, money``."""
    return [tag.strip() for tag in _COMMAS.split(typed) if tag.strip()]


def check_tags(typed: Iterable[str]) -> tuple[str, ...]:
    """Return tags as they are stored: by name, of equal ones the first; raises InvalidInput where one is none, or for too many."""
    found: dict[str, str] = {}
    for tag in typed:
        found.setdefault(folded(tag), check_tag(tag))
    if len(found) > TAGS_MAX:
        raise InvalidInput(
            FIELD,
            N_("A job has at most %(limit)s tags; these are %(count)s", limit=TAGS_MAX, count=len(found)),
        )
    return tuple(found[key] for key in sorted(found))


def check_tag(typed: str) -> str:
    """Return one tag as it is stored; raises InvalidInput where it is none."""
    tag = unicodedata.normalize("NFC", typed.replace(WIDE_BLANK, " ").strip())
    if not 1 <= len(tag) <= TAG_MAX:
        raise InvalidInput(
            FIELD, N_("Tags must have 1 to %(limit)s characters: %(tag)s", limit=TAG_MAX, tag=tag[: 2 * TAG_MAX])
        )
    if _COMMAS.search(tag) or not tag.isprintable():
        raise InvalidInput(
            FIELD, N_("Tags must not contain commas, line breaks or invisible characters: %(tag)s", tag=tag)
        )
    return " ".join(tag.split())


def tags_text(tags: Iterable[str]) -> str:
    """Return tags as one line, as they are typed."""
    return ", ".join(tags)
