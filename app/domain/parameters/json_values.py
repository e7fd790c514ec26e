"""JSON values whose numbers keep their digits, the paths into them, and JSON texts with placeholders."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

from app.domain.parameters.placeholders import PathStep
from app.domain.runs.trigger_report import clean_text

#: dict, list, str, Digits, bool or None
JsonValue = Any


#: kept, as json.dumps makes one each time
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)


class Digits(str):
    """Number as it is written."""

    __slots__ = ()


class Missing(LookupError):
    """A path leads to no value."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=Digits, parse_float=Digits, parse_constant=_refuse_constant)


def parse_json(text: str) -> JsonValue:
    """Return the value of a JSON text; raise ValueError, also for one that is nested too deeply."""
    try:
        return _DECODER.decode(text)
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def storable(text: str) -> str:
    """Return a text that a database can store: no NUL, no lone surrogate."""
    return clean_text(text, len(text))


def find_value(value: JsonValue, path: Iterable[PathStep]) -> JsonValue:
    """Return the value that a path leads to; raise Missing."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                raise Missing
        elif not isinstance(value, dict) or step not in value:
            raise Missing
        value = value[step]
    return value


def text_of(value: JsonValue) -> str:
    """Return a value as text: strings as they are, null as nothing, objects and arrays as compact JSON."""
    if isinstance(value, str):
        return storable(value)
    return "" if value is None else compact_json(value)


def compact_json(value: JsonValue) -> str:
    """Return a value as JSON without blanks."""
    parts: list[str] = []
    # Texts that are ready are in lists of their own, so that nesting needs no recursion.
    stack: list[tuple[bool, Any]] = [(False, value)]
    while stack:
        is_ready, item = stack.pop()
        if is_ready or isinstance(item, Digits):
            parts.append(item)
        elif isinstance(item, dict):
            stack.append((True, "}"))
            for number, (name, member) in reversed(list(enumerate(item.items()))):
                stack += [(False, member), (True, f"{',' if number else ''}{quoted_json(name)}:")]
            stack.append((True, "{"))
        elif isinstance(item, list):
            stack.append((True, "]"))
            for number, member in reversed(list(enumerate(item))):
                stack += [(False, member), (True, "," if number else "")]
            stack.append((True, "["))
        else:
            parts.append(quoted_json(item) if isinstance(item, str) else json.dumps(item))
    return "".join(parts)


def quoted_json(text: str) -> str:
    """Return a text as a JSON string."""
    return _ENCODER.encode(storable(text))


def find_contexts(pieces: Sequence[str | object]) -> tuple[bool, ...] | None:
    """Return of each piece whether it begins inside of a string; None if the pieces are not JSON as a whole.

    They are if they make an object or array once each piece that is no text is replaced by ``0``.
    """
    if not _is_json("".join(piece if isinstance(piece, str) else "0" for piece in pieces)):
        return None
    contexts: list[bool] = []
    is_inside = False
    for piece in pieces:
        contexts.append(is_inside)
        if isinstance(piece, str):
            is_inside = _is_inside_after(piece, is_inside=is_inside)
    return tuple(contexts)


def find_fragment(pieces: Sequence[str | object], contexts: Sequence[bool]) -> int | None:
    """Return the number of a piece of JSON that is only a part of a number or of an escape; None if none is.

    Not every value could stand there: ``{"id": 1${job.name}}``.
    """
    zeros = [piece if isinstance(piece, str) else "0" for piece in pieces]
    for number, piece in enumerate(pieces):
        if isinstance(piece, str):
            continue
        other = "x" if contexts[number] else "null"
        if not _is_json("".join([*zeros[:number], other, *zeros[number + 1 :]])):
            return number
    return None


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        parse_json(text)
    except ValueError:
        return False
    return True


def _is_inside_after(text: str, *, is_inside: bool) -> bool:
    """Whether a place after a part of valid JSON is inside of a string."""
    quote = text.find('"')
    while quote >= 0:
        first = quote
        while is_inside and first and text[first - 1] == "\\":
            first -= 1
        is_inside = not is_inside or (quote - first) % 2 == 1
        quote = text.find('"', quote + 1)
    return is_inside
