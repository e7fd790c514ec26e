"""Readers of declared terms: each function returns the final form of a value, or raises ValueError.

The error continues the name of the term: ``retry`` *must be a whole number from 0 to 9999, not 'x'*.
"""

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from typing import Any, get_args
from uuid import UUID

#: name of a job in code
_KEY = re.compile(r"\w[\w.-]*")
KEY_MAX = 120
NUMBER_MAX = 2**31 - 1
#: fields of a cron expression
CRON_FIELDS = (5, 6, 7)
#: zone that every copy of the zone data has
_SOME_ZONE = "Europe/Berlin"
UTC = timezone(timedelta(0))


def is_key(name: str) -> bool:
    """Whether a name can be the key of a job in code."""
    return _KEY.fullmatch(name) is not None and len(name) <= KEY_MAX


def text(value: Any) -> str:
    """Return a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"must be a non-blank string, not {value!r}")
    return value.strip()


def texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts."""
    if isinstance(value, str) or not isinstance(value, list | tuple | set | frozenset):
        raise ValueError(f"must be a list of strings such as ['a', 'b'], not {value!r}")
    items = [text(item) for item in value]
    return tuple(sorted(items) if isinstance(value, set | frozenset) else items)


def mapping(value: Any) -> dict[str, Any]:
    """Return a mapping of names to JSON values; only its shape is checked, its members by the console."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"must be a mapping of names to values, not {value!r}")
    try:
        members: dict[str, Any] = json.loads(json.dumps(dict(value), default=_json_value, allow_nan=False))
    except (TypeError, ValueError) as exc:
        raise ValueError(f"cannot be sent as JSON: {exc}") from exc
    return members


def mappings(value: Any) -> tuple[dict[str, Any], ...]:
    """Return a list of mappings."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list of mappings, not {value!r}")
    return tuple(mapping(item) for item in value)


def shares(value: Any) -> tuple[dict[str, Any], ...]:
    """Return named limits with weights; a text is a limit of which a run takes one slot."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list of names such as ['reporting database'], not {value!r}")
    return tuple({"limit": text(item)} if isinstance(item, str) else mapping(item) for item in value)


def predecessors(value: Any) -> dict[str, Any]:
    """Return what a job runs after; a list names the jobs, by the rule that the console has by default."""
    if isinstance(value, Mapping):
        return mapping(value)
    return {"jobs": list(texts(value))}


def calendar(value: Any) -> dict[str, Any]:
    """Return on which days a job runs; a text is a calendar on whose workdays it does."""
    return {"name": text(value)} if isinstance(value, str) else mapping(value)


def addresses(value: Any) -> str:
    """Return mail addresses, separated by commas; a list or a text."""
    return ",".join(texts(value)) if not isinstance(value, str) else text(value)


def switch(value: Any) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise ValueError(f"must be True or False, not {value!r}")
    return value


def cron(value: Any) -> str:
    """Return a cron expression; only its shape is checked, its fields by the console."""
    expression = text(value)
    count = len(expression.split())
    if count not in CRON_FIELDS:
        raise ValueError(
            f"must be a cron expression of 5 (Unix) or 6 to 7 fields (Quartz) such as '0 0/5 * * * ?',"
            f" not {value!r} of {count}"
        )
    return expression


def number(low: int, high: int = NUMBER_MAX) -> Callable[[Any], int]:
    """Return a reader of whole numbers in a range."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low} to {high}, not {value!r}")
        return value

    return read


def seconds(low: int) -> Callable[[Any], int]:
    """Return a reader of numbers of seconds, or timedeltas of whole seconds."""

    def read(value: Any) -> int:
        count = value
        if isinstance(value, timedelta):
            count = value // timedelta(seconds=1) if not value % timedelta(seconds=1) else None
        if isinstance(count, bool) or not isinstance(count, int) or not low <= count <= NUMBER_MAX:
            least = f"at least {low}" if low else "0 or more"
            value_text = value if isinstance(value, timedelta) else repr(value)
            raise ValueError(
                f"must be a number of seconds or a timedelta, whole and {least}, not {value_text}"
            )
        return count

    return read


def factor(value: Any) -> float:
    """Return a backoff factor."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 1 <= value <= 10:
        raise ValueError(f"must be a number from 1 to 10, such as 2 to double the delay, not {value!r}")
    return float(value)


def choice(literal: Any) -> Callable[[Any], Any]:
    """Return a reader of the values of a Literal."""
    options: tuple[str, ...] = get_args(literal)

    def read(value: Any) -> str:
        if value in options and isinstance(value, str):
            return value
        spellings = (str(value), str(value).upper(), str(value).lower())
        matches = [match for word in spellings for match in get_close_matches(word, options, 1)]
        hint = f"did you mean {matches[0]!r}?" if matches else f"one of {', '.join(options)}"
        raise ValueError(f"cannot be {value!r}: {hint}")

    return read


def zone(value: Any) -> str:
    """Return the name of an IANA zone; it is not checked where Python has no zone data."""
    name = text(value)
    if zone_of(name) is None and zone_of(_SOME_ZONE) is not None:
        import zoneinfo

        matches = get_close_matches(name, zoneinfo.available_timezones(), 1)
        hint = f"did you mean {matches[0]}?" if matches else "expected one such as Europe/Berlin"
        raise ValueError(f"cannot be {value!r}, which is not an IANA time zone: {hint}")
    return name


def zone_of(name: str) -> tzinfo | None:
    """Return the zone of a name; None if Python has no data for it."""
    import zoneinfo  # imported here, because only declared zones need it

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def moment(value: Any) -> datetime:
    """Return a point in time, with or without a zone."""
    if not isinstance(value, datetime):
        raise ValueError(f"must be a datetime, not {value!r}")
    return value


def param_text(value: Any) -> str:
    """Return a parameter as text: a text as it is, anything else as compact JSON, dates in ISO form."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(
            value, default=_json_value, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
    except (TypeError, ValueError) as exc:
        raise ValueError(f"cannot be sent as JSON: {exc}") from exc


def _json_value(value: Any) -> Any:
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID | Decimal):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")
