"""Lenient JSON: tolerant parsing of what different clients send, and compact output.

Numeric strings count as numbers; absent and null fields become 0 or "". Strings may contain line ends and
other control characters as they are, which XXL-JOB's parser accepts. Anything else raises ``Unreadable``,
a ``ValueError`` with the reason.
"""

import json
import math
import re
from typing import Any

_LONG_MAX = 2**63 - 1
_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,400}(\.0*)?")
_TRAILING_COMMA = re.compile(r",\s*\]\s*\Z")


class Unreadable(ValueError):
    """A body or field violates the protocol; the text names it."""


def dump_json(value: Any) -> bytes:
    """Return compact JSON in UTF-8; key order is kept."""
    return _ENCODER.encode(value).encode("utf-8", "replace")


def load_json(body: bytes, *, trailing_comma: bool = False) -> Any:
    """Parse JSON regardless of the content type; raise ``Unreadable``.

    With ``trailing_comma``, ``[1,]`` is ``[1, null]``, as in XXL-JOB's parser.
    """
    text = body.decode("utf-8-sig", "replace")
    if trailing_comma:
        text = _TRAILING_COMMA.sub(",null]", text)
    try:
        return _DECODER.decode(text)
    except RecursionError as exc:
        raise Unreadable("nested too deeply") from exc
    except json.JSONDecodeError as exc:
        raise Unreadable(f"not JSON: {exc}") from exc
    except Unreadable:
        raise
    except ValueError as exc:
        raise Unreadable("a number has too many digits") from exc


def _refuse_constant(name: str) -> Any:
    raise Unreadable(f"{name} is not JSON")


#: created once, because that costs as much as coding a small body
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, strict=False)


def object_of(value: Any, label: str) -> dict[str, Any]:
    """Return a JSON object; raise ``Unreadable``, naming it ``label``, for anything else."""
    if not isinstance(value, dict):
        raise Unreadable(f"{label} must be a JSON object, not {kind_of(value)}")
    return value


def kind_of(value: Any) -> str:
    """Return the JSON type of a value, for messages."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def first_of(fields: dict[str, Any], *names: str) -> Any:
    """Return the first of these fields that is neither absent nor null, or None."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def whole_number(value: Any, name: str) -> int:
    """Parse ``17``, ``17.0``, ``"17"`` and null (0); raise ``Unreadable`` for anything else."""
    if value is None or value == "":
        return 0
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return int(value)
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value.strip()):
        return int(value.strip().partition(".")[0])
    raise Unreadable(f"{name} must be a whole number, not {kind_of(value)}")


def long_field(fields: dict[str, Any], *names: str) -> int:
    """Parse a 64-bit number from the first of these fields that is present."""
    number = whole_number(first_of(fields, *names), names[0])
    if abs(number) > _LONG_MAX:
        raise Unreadable(f"{names[0]} is out of range")
    return number


def long_or(fields: dict[str, Any], name: str, default: int) -> int:
    """Parse a 64-bit number; ``default`` if it is absent, null or unusable."""
    try:
        return default if fields.get(name) is None else long_field(fields, name)
    except Unreadable:
        return default


def as_text(value: Any) -> str:
    """Return a string as is, anything else as JSON; lone surrogates become "?", NUL is dropped."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")


def text_field(fields: dict[str, Any], name: str) -> str:
    """Parse a string; null and absent are "", numbers become strings."""
    value = fields.get(name)
    if isinstance(value, (dict, list)):
        raise Unreadable(f"{name} must be a string, not {kind_of(value)}")
    return "" if value is None else as_text(value)
