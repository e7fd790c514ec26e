"""Cursors: opaque positions in a list, whose content may change between versions."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TypeVar

from app.clock import LATEST_MS
from app.domain.text.texts import N_
from app.errors import InvalidInput

T = TypeVar("T")
#: length of the prefix that identifies the list
MARK = 6

#: ranges of the numbers in a position, as wide as their columns: PostgreSQL refuses larger parameters
ID, BIG_ID, INSTANT = range(1, 2**31), range(1, 2**63), range(LATEST_MS + 1)
#: characters that no column can store
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def write_cursor(*position: int | str) -> str:
    """Return the cursor of a position, such as the sort value and the id of the last item."""
    text = json.dumps(position, separators=(",", ":"), ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def read_cursor(text: str, *kinds: range | type[str]) -> tuple[int | str, ...] | None:
    """Return the position of a cursor with numbers in these ranges and texts; None for an empty text.

    Raises InvalidInput for a text that is no cursor of this list.
    """
    if not text:
        return None
    try:
        position = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error, RecursionError) as exc:
        raise _refusal() from exc
    if not isinstance(position, list) or len(position) != len(kinds):
        raise _refusal()
    if not all(_fits(value, kind) for value, kind in zip(position, kinds, strict=True)):
        raise _refusal()
    return tuple(position)


def read_id_cursor(text: str, kind: range = ID) -> int | None:
    """Return the id in a cursor of a list ordered by id; None for an empty text. Raises InvalidInput."""
    position = read_cursor(text, kind)
    return None if position is None else int(position[0])


def mark_cursor(cursor: str, path: str) -> str:
    """Return a cursor with the prefix of the list at ``path``, which only that list accepts."""
    return _mark(path) + cursor


def unmark_cursor(text: str, path: str) -> str:
    """Return a cursor without the prefix of the list at ``path``; raises InvalidInput for another list's."""
    if not text.startswith(_mark(path)):
        raise _refusal()
    return text[MARK:]


def _mark(path: str) -> str:
    return sha256(path.encode()).hexdigest()[:MARK]


def cut(
    items: Sequence[T], limit: int, position: Callable[[T], tuple[int | str, ...]]
) -> tuple[Sequence[T], str | None]:
    """Return the first ``limit`` items of a list, and the cursor of the next ones; None: there are none.

    ``items`` has at least one item more than ``limit`` if the list continues.
    """
    page = items[:limit]
    return page, write_cursor(*position(page[-1])) if len(items) > limit else None


def _fits(value: object, kind: range | type[str]) -> bool:
    if isinstance(kind, range):
        return type(value) is int and value in kind
    return isinstance(value, str) and _UNSTORABLE.search(value) is None


def _refusal() -> InvalidInput:
    return InvalidInput("cursor", N_("Use the next_cursor of the answer before"))
