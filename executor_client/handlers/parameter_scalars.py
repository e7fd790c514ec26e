"""Scalar parameter types: text or a JSON value becomes an int, a date, a UUID and so on."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any
from uuid import UUID

#: converts a value at a path such as ``order.items[2].price``; appends a message to the list on failure
Reader = Callable[[object, str, list[str]], Any]

#: longer values are truncated in messages
EXCERPT_MAX = 60

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_CLOCK = re.compile(r"(\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,6}))?(Z|[+-]\d\d:?\d\d)?", re.ASCII | re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DURATION = re.compile(
    r"(?P<sign>[+-]?)P(?=.)((?P<weeks>\d+)W)?((?P<days>\d+)D)?"
    r"(T(?=.)((?P<hours>\d+)H)?((?P<minutes>\d+)M)?((?P<seconds>\d+([.,]\d+)?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """Type of a parameter: reader of its values, and their description for messages and JSON Schema."""

    read: Reader
    #: what would be right, as in ``expected YYYY-MM-DD``
    syntax: str
    #: its JSON Schema
    schema: dict[str, Any]
    #: accepts any text unchanged
    is_text: bool = False
    #: JSON type of a type that takes more than a scalar: ``array`` or ``object``
    structure: str = ""


def excerpt(value: object) -> str:
    """Return a value for a message: ``'2026-13-01'``, truncated."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= EXCERPT_MAX else text[:EXCERPT_MAX] + "…"


def label(name: str) -> str:
    """Return an unknown name for a message; in quotes if it is not an identifier."""
    return name if name.isidentifier() else excerpt(name)


def scalar(convert: Callable[[Any], Any], description: str, syntax: str, schema: dict[str, Any]) -> Kind:
    """Return the kind of a scalar; ``convert`` raises an error for any value that it does not take."""

    def read(value: object, path: str, errors: list[str]) -> Any:
        try:
            return convert(value)
        except (ValueError, TypeError, ArithmeticError, AttributeError):
            errors.append(f"{path}: {excerpt(value)} is not {description}; expected {syntax}")
            return None

    return Kind(read, syntax, schema)


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return match


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, float) and value.is_integer() or isinstance(value, int):
        return int(value)
    _match(_NUMBER, value)
    return int(value)


def _number(value: Any) -> str:
    """Return the digits of a JSON number or of a text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    return _match(_NUMBER, value if isinstance(value, str) else repr(value))[0]


def _float(value: Any) -> float:
    number = float(_number(value))
    if not isfinite(number):
        raise ValueError(value)
    return number


def _boolean(value: Any) -> bool:
    return value if isinstance(value, bool) else _BOOLEANS[_boolean_word(value.strip().lower())]


def _boolean_word(word: str) -> str:
    if word not in _BOOLEANS:
        raise ValueError(word)
    return word


def _date(value: Any) -> date:
    return date.fromisoformat(_match(_DAY, value)[0])


def _time(value: Any) -> time:
    clock, seconds, fraction, zone = _match(_CLOCK, value).groups()
    if fraction and not seconds:
        raise ValueError(value)
    zone = "+00:00" if zone in ("Z", "z") else zone
    if zone and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    # Python 3.10 reads fractions of three or six digits only, so the digits are filled up.
    return time.fromisoformat(f"{clock}{seconds or ':00'}.{(fraction or '0').ljust(6, '0')}{zone or ''}")


def _datetime(value: Any) -> datetime:
    text = value.strip()
    day, clock = text[:10], text[10:]
    if clock and clock[0] not in "Tt ":
        raise ValueError(value)
    return datetime.combine(_date(day), _time(clock[1:]) if clock else time())


def _timedelta(value: Any) -> timedelta:
    if not isinstance(value, str) or _NUMBER.fullmatch(value.strip()):
        return timedelta(seconds=_float(value))
    parts = _match(_DURATION, value).groupdict()
    sign = -1 if parts.pop("sign") == "-" else 1
    return sign * timedelta(**{unit: float(n.replace(",", ".")) for unit, n in parts.items() if n})


def _uuid(value: Any) -> UUID:
    return UUID(_match(_UUID, value)[0])


def _path(value: Any) -> Path:
    if not _text(value):
        raise ValueError
    return Path(value)


def _string_schema(kind: str) -> dict[str, Any]:
    return {"type": "string", "format": kind}


SCALARS: dict[Any, Kind] = {
    int: scalar(_integer, "an integer", "a whole number such as 100", {"type": "integer"}),
    float: scalar(_float, "a number", "a number such as 2.5", {"type": "number"}),
    bool: scalar(_boolean, "a boolean", "true or false", {"type": "boolean"}),
    date: scalar(_date, "a date", "YYYY-MM-DD", _string_schema("date")),
    datetime: scalar(
        _datetime,
        "a date and time",
        "YYYY-MM-DDTHH:MM:SS, with or without an offset such as Z or +02:00",
        _string_schema("date-time"),
    ),
    time: scalar(_time, "a time", "HH:MM or HH:MM:SS", _string_schema("time")),
    timedelta: scalar(
        _timedelta,
        "a duration",
        "seconds such as 90, or ISO 8601 such as PT1H30M",
        _string_schema("duration"),
    ),
    Decimal: scalar(
        lambda value: Decimal(_number(value)),
        "a decimal number",
        "a number such as 12.50",
        {"type": ["number", "string"], "format": "decimal"},
    ),
    UUID: scalar(
        _uuid, "a UUID", "a UUID such as 6f1c2ad0-5a5e-4a6e-9d3c-0d9c0b7f6f11", _string_schema("uuid")
    ),
    Path: scalar(_path, "a path", "a path such as /srv/in", _string_schema("path")),
}

_any_text = scalar(_text, "a text", "a text", {"type": "string"})
SCALARS[str] = Kind(_any_text.read, _any_text.syntax, _any_text.schema, is_text=True)

#: a parameter without annotation: text as it is, JSON values as they are
ANYTHING = Kind(lambda value, path, errors: value, "a value", {}, is_text=True)
