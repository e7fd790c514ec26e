"""Results: the message of a run from the value that its handler returned."""

import dataclasses
import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from enum import Enum
from math import isfinite
from typing import Any

#: deeper values are written as text
DEPTH_MAX = 50


def message_of(value: object) -> str | None:
    """Return the message of a run: None for None and booleans, text as it is, JSON for objects and lists.

    A boolean says nothing, because ``context.success()`` returns one. Never raises.
    """
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str) and not isinstance(value, Enum):
        return value
    found = plain(value)
    if isinstance(found, dict | list):
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    return str(found)


def plain(value: object, depth: int = 0) -> Any:
    """Return a value as JSON knows it: dates as ISO 8601, enums as their value, what JSON has not as text."""
    if value is None or isinstance(value, bool) or type(value) in (int, str):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Enum):
        return plain(value.value, depth)
    if depth < DEPTH_MAX:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            return {each.name: plain(getattr(value, each.name, None), depth + 1) for each in fields}
        if isinstance(value, Mapping):
            return {str(plain(key)): plain(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [plain(each, depth + 1) for each in value]
    return _text(value)


def _text(value: object) -> Any:
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int):
        return int(value)
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"
