"""Cursors: the position in a list, opaque to clients, because its values may change with a version."""

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
#: characters at the beginning that stand for the list
MARK = 6

#: numbers of a position, as wide as their columns: PostgreSQL refuses to compare with a larger one
ID, BIG_ID, INSTANT = range(1, 2**31), range(1, 2**63), range(LATEST_MS + 1)
#: what no column holds
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def write_cursor(*position: int | str) -> str:
    """Return the cursor of a position, such as the sort value and the id of the last item."""
    packed = json.dumps(position, separators=(",", ":"), ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


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
    if not all(_fits(each, kind) for each, kind in zip(position, kinds, strict=True)):
        raise _refusal()
    return tuple(position)


def read_id_cursor(text: str, kind: range = ID) -> int | None:
    """Return the id in a cursor of a list ordered by id; None for an empty text. Raises InvalidInput."""
    position = read_cursor(text, kind)
    return None if position is None else int(position[0])


def marked(cursor: str, path: str) -> str:
    """Return a cursor as it is answered: only the list at ``path`` takes it."""
    return _mark(path) + cursor


def unmarked(text: str, path: str) -> str:
    """Return a cursor as the list at ``path`` wrote it; raises InvalidInput for one of another list."""
    if not text.startswith(_mark(path)):
        raise _refusal()
    return text[MARK:]


def _mark(path: str) -> str:
    return sha256(path.encode()).hexdigest()[:MARK]


def cut(
    found: Sequence[T], limit: int, position: Callable[[T], tuple[int | str, ...]]
) -> tuple[Sequence[T], str | None]:
    """Return the first ``limit`` items of a list, and the cursor of the next ones; None: there are none.

    ``found`` has at least one item more than ``limit`` if the list goes on.
    """
    shown = found[:limit]
    return shown, write_cursor(*position(shown[-1])) if len(found) > limit else None


def _fits(value: object, kind: range | type[str]) -> bool:
    if isinstance(kind, range):
        return type(value) is int and value in kind
    return isinstance(value, str) and _UNSTORABLE.search(value) is None


def _refusal() -> InvalidInput:
    return InvalidInput("cursor", N_("Use the next_cursor of the answer before"))
