"""Request bodies: JSON that is validated by a schema and has no repeated members."""

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel

from app.errors import InvalidInput

Body = TypeVar("Body", bound=BaseModel)
#: reason for a repeated member or parameter
REPEATED = "is given more than once"


def read_body(schema: type[Body], data: bytes) -> Body:
    """Return a checked body; raises ValidationError, and InvalidInput for repeated members.

    The schema alone would take the last one, so that a mistake in a body would go unnoticed.
    """
    body = schema.model_validate_json(data)  # comes first, because it limits the nesting
    places = list(dict.fromkeys(_repeated_places(data)))
    if places:
        error = InvalidInput(places[0], REPEATED)
        error.further_errors = tuple(InvalidInput(place, REPEATED) for place in places[1:])
        raise error
    return body


def _repeated_places(data: bytes) -> Iterator[str]:
    """Return the places of the members that an object names again: ``jobs.0.owner``."""
    is_repeated = False

    def read(pairs: list[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
        nonlocal is_repeated
        is_repeated = is_repeated or len(dict(pairs)) < len(pairs)
        return tuple(pairs)

    # Numbers stay texts, because a long one would be slow to convert, or refused.
    tree = json.loads(data, object_pairs_hook=read, parse_int=str, parse_float=str)
    return _places(tree, "") if is_repeated else iter(())


def _places(value: Any, place: str) -> Iterator[str]:
    """Yield the places in a value whose objects are tuples of pairs."""
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _places(inner, f"{place}{number}.")
    elif isinstance(value, tuple):
        names = set[str]()
        for name, inner in value:
            if name in names:
                yield place + name
            names.add(name)
            yield from _places(inner, f"{place}{name}.")
