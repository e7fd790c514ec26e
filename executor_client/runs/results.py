"""Results: the message of a run from the value that its handler returned."""

import dataclasses
import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from enum import Enum
from math import isfinite
from typing import Any

from executor_client.runs.context import MESSAGE_MAX

#: objects and lists below this depth are written as the name of their type
DEPTH_MAX = 50
#: likewise those after so many values, which fill a message that will be cut
VALUES_MAX = MESSAGE_MAX


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


def plain(value: object) -> Any:
    """Return a value as JSON knows it: dates as ISO 8601, enums as their value, what JSON has not as text.

    An object or list that contains itself, or cannot be read, becomes the name of its type there: ``<Node>``.
    """
    return _Conversion().plain(value)


class _Conversion:
    """Conversion of one value, whose parts may refer to each other in any way."""

    def __init__(self) -> None:
        #: ids of the objects that contain the current one
        self._around: set[int] = set()
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
        if id(value) in self._around or len(self._around) >= DEPTH_MAX or self._count > VALUES_MAX:
            return _type_name(value)
        self._around.add(id(value))
        try:
            if _is_dataclass(value):
                names = [each.name for each in dataclasses.fields(value)]
                return {name: self.plain(getattr(value, name, None)) for name in names}
            if isinstance(value, Mapping):
                return {str(self.plain(key)): self.plain(each) for key, each in value.items()}
            return [self.plain(each) for each in value]
        except Exception:
            return _type_name(value)
        finally:
            self._around.discard(id(value))


def _is_dataclass(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _text(value: object) -> Any:
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    try:
        text = str(value)  # of a number with thousands of digits Python makes none
    except Exception:
        return _type_name(value)
    return int(value) if isinstance(value, int) else text


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"
