"""Drift: fields owned by code whose current values differ from the applied ones."""

from collections.abc import Mapping
from typing import Any

from app.domain.rounds.runs_after import RUNS_AFTER, named_jobs, with_named

#: fields whose values are sets: their order has no meaning
_SETS = frozenset({"children", "tags"})
#: objects that are owned whole: the days of a calendar and their names
_WHOLE = frozenset({"days", "names"})


def drift_of(fields: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the owned ``fields`` that differ from the ``current`` ones, as name -> (in code, now).

    Both have the member names and JSON values of the API. An empty text or list equals a missing one. Of an
    object only what the owned value names counts: code without a source owns its language; days of calendars
    are owned all.
    """
    return {
        name: (value, current.get(name))
        for name, value in fields.items()
        if _comparable(name, value) != _comparable(name, _named_members(name, value, current.get(name)))
    }


def _named_members(name: str, own_value: Any, now: Any) -> Any:
    if name not in _WHOLE and isinstance(own_value, Mapping) and isinstance(now, Mapping):
        return {member: now.get(member) for member in own_value}
    return now


def _comparable(name: str, value: Any) -> Any:
    if value is None or value == "" or value == [] or value == ():
        return None
    if name == RUNS_AFTER and isinstance(value, dict):
        return with_named(value, sorted(named_jobs(value), key=str))
    if isinstance(value, list | tuple):
        return sorted(value, key=str) if name in _SETS else list(value)
    return value
