"""Tags of a job: short free texts, stored as entered and compared without case."""

import re
import unicodedata
from collections.abc import Iterable

from app.domain.text.texts import N_, fold
from app.errors import InvalidInput

#: wire name of the field, and its limits
FIELD = "tags"
TAGS_MAX = 8
TAG_MAX = 30
#: the blank of Chinese keyboards
WIDE_BLANK = "\u3000"
#: separators of tags in the form, including the Chinese comma
_COMMAS = re.compile("[,，]")


def split_tags(text: str) -> list[str]:
    """Return the tags of a line such as ``nightly, money``."""
    return [tag.strip() for tag in _COMMAS.split(text) if tag.strip()]


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return tags as they are stored: sorted, without duplicates.

    Raise InvalidInput for invalid or too many tags.
    """
    tag_by_key: dict[str, str] = {}
    for tag in tags:
        tag_by_key.setdefault(fold(tag), check_tag(tag))
    if len(tag_by_key) > TAGS_MAX:
        raise InvalidInput(
            FIELD,
            N_(
                "A job has at most %(limit)s tags; these are %(count)s", limit=TAGS_MAX, count=len(tag_by_key)
            ),
        )
    return tuple(tag_by_key[key] for key in sorted(tag_by_key))


def check_tag(text: str) -> str:
    """Return a tag as it is stored; raise InvalidInput for an invalid one."""
    tag = unicodedata.normalize("NFC", text.replace(WIDE_BLANK, " ").strip())
    if not 1 <= len(tag) <= TAG_MAX:
        raise InvalidInput(
            FIELD,
            N_("Tags must have 1 to %(limit)s characters: %(tag)s", limit=TAG_MAX, tag=tag[: 2 * TAG_MAX]),
        )
    if _COMMAS.search(tag) or not tag.isprintable():
        raise InvalidInput(
            FIELD, N_("Tags must not contain commas, line breaks or invisible characters: %(tag)s", tag=tag)
        )
    return " ".join(tag.split())


def tags_text(tags: Iterable[str]) -> str:
    """Return tags as one line, as in the form."""
    return ", ".join(tags)
