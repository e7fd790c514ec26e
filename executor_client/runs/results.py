"""Results: the message of a run from the value that its handler returned."""

import dataclasses
import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from enum import Enum
from math import isfinite
from typing import Any

from executor_client.runs.context import MESSAGE_MAX

#: objects and lists below this depth are replaced by the name of their type
DEPTH_MAX = 50
#: so are those after this number of values, because the message will be truncated anyway
VALUES_MAX = MESSAGE_MAX


def message_of(value: object) -> str | None:
    """Return the message of a run: None for None and booleans, text as it is, JSON for objects and lists.

    A boolean is no message, because ``context.success()`` returns one. Never raises.
    """
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str) and not isinstance(value, Enum):
        return value
    json_value = plain(value)
    if isinstance(json_value, dict | list):
        return json.dumps(json_value, ensure_ascii=False, separators=(",", ":"))
    return str(json_value)


def plain(value: object) -> Any:
    """Return a value as plain JSON: dates as ISO 8601, enums as their value, other types as text.

    An object or list that contains itself, or cannot be read, becomes the name of its type: ``<Node>``.
    """
    return _Conversion().plain(value)


class _Conversion:
    """Conversion of one value, whose parts may refer to each other."""

    def __init__(self) -> None:
        #: object ids of the containers of the current value, to detect cycles
        self._ancestors: set[int] = set()
        self._count = 0

    def plain(self, value: object) -> Any:
        self._count += 1
        if value is None or isinstance(value, bool) or type(value) is str:
            return value
        if isinstance(value, float):
            return value if isfinite(value) else None
        if isinstance(value, Enum):
            return self.plain(value.value)
        if _is_dataclass(value) or isinstance(value, Mapping | list | tuple | set | frozenset):
            return self._parts(value)
        return _text(value)

    def _parts(self, value: Any) -> Any:
        if id(value) in self._ancestors or len(self._ancestors) >= DEPTH_MAX or self._count > VALUES_MAX:
            return _type_name(value)
        self._ancestors.add(id(value))
        try:
            if _is_dataclass(value):
                names = [field.name for field in dataclasses.fields(value)]
                return {name: self.plain(getattr(value, name, None)) for name in names}
            if isinstance(value, Mapping):
                return {str(self.plain(key)): self.plain(member) for key, member in value.items()}
            return [self.plain(item) for item in value]
        except Exception:
            return _type_name(value)
        finally:
            self._ancestors.discard(id(value))


def _is_dataclass(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _text(value: object) -> Any:
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    try:
        text = str(value)  # Python refuses this for a number with thousands of digits
    except Exception:
        return _type_name(value)
    return int(value) if isinstance(value, int) else text


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"
