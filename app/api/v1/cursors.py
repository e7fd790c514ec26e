"""Cursors: the position in a list, opaque to clients, because its values may change with a version."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import TypeVar

from app.domain.texts import N_
from app.errors import InvalidInput

T = TypeVar("T")

#: largest number in a cursor: ids and milliseconds are 64 bits wide
_NUMBER_MAX = 2**63 - 1


def write_cursor(*position: int | str) -> str:
    """Return the cursor of a position, such as the sort value and the id of the last item."""
    packed = json.dumps(position, separators=(",", ":"), ensure_ascii=False).encode()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_cursor(text: str, *kinds: type[int] | type[str]) -> tuple[int | str, ...] | None:
    """Return the position of a cursor with values of these types; None for an empty text.

    Raises InvalidInput for a text that is no cursor of this list.
    """
    if not text:
        return None
    try:
        position = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error, RecursionError) as exc:
        raise _refusal() from exc
    if not isinstance(position, list) or [type(each) for each in position] != list(kinds):
        raise _refusal()
    if any(isinstance(each, int) and not -_NUMBER_MAX <= each <= _NUMBER_MAX for each in position):
        raise _refusal()
    return tuple(position)


def read_id_cursor(text: str) -> int | None:
    """Return the id in a cursor of a list ordered by id; None for an empty text. Raises InvalidInput."""
    position = read_cursor(text, int)
    return None if position is None else int(position[0])


def cut(
    found: Sequence[T], limit: int, position: Callable[[T], tuple[int | str, ...]]
) -> tuple[Sequence[T], str | None]:
    """Return the first ``limit`` items of a list, and the cursor of the next ones; None: there are none.

    ``found`` has at least one item more than ``limit`` if the list goes on.
    """
    shown = found[:limit]
    return shown, write_cursor(*position(shown[-1])) if len(found) > limit else None


def _refusal() -> InvalidInput:
    return InvalidInput("cursor", N_("Use the next_cursor of the answer before"))
