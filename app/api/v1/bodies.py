"""Bodies of requests: JSON checked by a schema, without members that are named twice."""

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel

from app.errors import InvalidInput

Body = TypeVar("Body", bound=BaseModel)
#: of a member or a parameter
REPEATED = "is given more than once"


def read_body(schema: type[Body], data: bytes) -> Body:
    """Return a checked body; raises ValidationError, and InvalidInput for repeated members.

    The schema would take the last of them, so a slip in a written body would go unnoticed.
    """
    body = schema.model_validate_json(data)  # first: it limits how deep objects are nested
    places = list(dict.fromkeys(_repeated(data)))
    if places:
        error = InvalidInput(places[0], REPEATED)
        error.further_errors = tuple(InvalidInput(place, REPEATED) for place in places[1:])
        raise error
    return body


def _repeated(data: bytes) -> Iterator[str]:
    """Return the places of the members that an object names again: ``jobs.0.owner``."""
    is_repeated = False

    def read(pairs: list[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
        nonlocal is_repeated
        is_repeated = is_repeated or len(dict(pairs)) < len(pairs)
        return tuple(pairs)

    # numbers stay texts: a long one would take its time, or be refused
    tree = json.loads(data, object_pairs_hook=read, parse_int=str, parse_float=str)
    return _places(tree, "") if is_repeated else iter(())


def _places(value: Any, place: str) -> Iterator[str]:
    """Yield the places in a value whose objects are tuples of pairs."""
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _places(inner, f"{place}{number}.")
    elif isinstance(value, tuple):
        seen = set[str]()
        for name, inner in value:
            if name in seen:
                yield place + name
            seen.add(name)
            yield from _places(inner, f"{place}{name}.")
