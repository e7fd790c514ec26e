"""Plan of jobs as code: changes of an apply, object by object and field by field."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any

from app.clock import Millis
from app.domain.code.drift import drift_of
from app.domain.jobs.members import instant_text
from app.domain.text.line_diff import LineMatcher

#: stands for a secret
BLANKED = "***"
#: instants shown of a schedule before and after a change
INSTANTS = 3
#: lines shown of a change of code
DIFF_LINES = 200
#: equal lines shown around a change of code
DIFF_CONTEXT = 2


class Action(StrEnum):
    """What an apply does with an object."""

    CREATE = "create"
    UPDATE = "update"
    #: take over an object that exists, with the changes that the code makes
    ADOPT = "adopt"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """Field before and after, as shown: keys in place of ids, no secrets."""

    field: str
    old: Any
    new: Any
    #: the value was changed in the console since it was applied
    was_edited: bool = False
    #: of code: the lines that differ
    diff: tuple[str, ...] = ()
    #: fingerprint of a secret, so that another one makes another plan
    mark: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the object that the API answers."""
        answer = {"field": self.field, "old": self.old, "new": self.new, "was_edited": self.was_edited}
        return answer | ({"diff": list(self.diff)} if self.diff else {})


@dataclass(frozen=True, slots=True)
class ObjectPlan:
    """What happens to an object."""

    kind: str
    key: str
    action: Action
    #: 0: it has none yet
    object_id: int = 0
    fields: tuple[FieldChange, ...] = ()
    #: next instants before and after; None: unchanged
    next_before: tuple[Millis, ...] | None = None
    next_after: tuple[Millis, ...] | None = None
    #: planned instants that are withdrawn
    withdrawn: tuple[Millis, ...] = ()
    #: fields that the code owns from now on, and those it owns no longer
    owned_names: tuple[str, ...] = ()
    released_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the object that the API answers."""
        times = {
            "before": [instant_text(instant) for instant in self.next_before or ()],
            "after": [instant_text(instant) for instant in self.next_after or ()],
        }
        is_moved = self.next_before is not None or self.next_after is not None
        return {
            "kind": self.kind,
            "key": self.key,
            "action": self.action.value,
            "id": self.object_id or None,
            "fields": [change.as_json() for change in self.fields],
            "next_times": times if is_moved else None,
            "withdrawn": [instant_text(instant) for instant in self.withdrawn],
            "owned": list(self.owned_names),
            "released": list(self.released_names),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan: the objects that an apply changes."""

    objects: tuple[ObjectPlan, ...] = ()
    unchanged: int = 0
    #: managed objects of the groups in the document that it does not name; only ``prune`` deletes them
    unlisted_keys: tuple[str, ...] = field(default=())

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.objects

    @property
    def digest(self) -> str:
        """Hash of what would be changed; the times of runs do not count."""
        content = [
            [item.kind, item.key, item.action.value, item.object_id, item.owned_names, item.released_names]
            + [[change.field, change.old, change.new, change.mark] for change in item.fields]
            for item in self.objects
        ]
        return sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return the object that the API answers."""
        counts = Counter(item.action.value for item in self.objects)
        return {
            "plan_hash": self.digest,
            "summary": {
                **{action.value: counts[action.value] for action in Action},
                "unchanged": self.unchanged,
            },
            "objects": [item.as_json() for item in self.objects],
            "unlisted": list(self.unlisted_keys),
        }


def changed_fields(
    code_fields: Mapping[str, Any], current: Mapping[str, Any], applied_fields: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any, bool]]:
    """Yield the fields that differ: name, old and new value, whether they were edited since applied.

    ``code_fields`` are those of the code now, ``applied_fields`` those applied last.
    """
    differing = drift_of(code_fields, current)
    edited_fields = drift_of(applied_fields, current)
    for name, (new, old) in differing.items():
        yield name, old, new, name in edited_fields


def change_of(
    target: tuple[str, str, int],
    fields: Sequence[FieldChange],
    new_fields: Mapping[str, Any],
    past_fields: Mapping[str, Any],
    *,
    is_adopted: bool,
) -> ObjectPlan | None:
    """Return the plan of an existing object (kind, key, id); None if nothing changes.

    ``new_fields`` are the fields that the code owns from now on, ``past_fields`` those it owned before; an
    import leaves these as they are.
    """
    kind, key, object_id = target
    changed_names = {change.field for change in fields}
    new_names = [
        name
        for name in new_fields
        if name not in past_fields or drift_of({name: new_fields[name]}, past_fields)
    ]
    plan = ObjectPlan(
        kind,
        key,
        Action.ADOPT if is_adopted else Action.UPDATE,
        object_id,
        tuple(fields),
        owned_names=tuple(sorted(name for name in new_names if not is_adopted and name not in changed_names)),
        released_names=tuple(sorted(name for name in past_fields if name not in new_fields)),
    )
    return plan if fields or is_adopted or plan.owned_names or plan.released_names else None


def code_shown(source: str | None) -> dict[str, Any] | None:
    """Return length and hash of code, which stand for it in a plan."""
    if source is None:
        return None
    return {"lines": len(source.splitlines()), "sha256": sha256(source.encode()).hexdigest()}


def code_diff(old: str, new: str) -> tuple[str, ...]:
    """Return the differing lines of two sources with a few lines around them, at most DIFF_LINES."""
    lines = list(_unified_lines(old.splitlines(), new.splitlines()))
    if len(lines) > DIFF_LINES:
        return (*lines[:DIFF_LINES], f"… {len(lines) - DIFF_LINES} more lines")
    return tuple(lines)


def _unified_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """Yield what ``difflib.unified_diff`` does, without file names, in bounded time."""
    for group in LineMatcher(before, after).get_grouped_opcodes(DIFF_CONTEXT):
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        yield f"@@ -{_range(old_from, old_to)} +{_range(new_from, new_to)} @@"
        for kind, old_from, old_to, new_from, new_to in group:
            if kind == "equal":
                yield from (f" {line}" for line in before[old_from:old_to])
                continue
            yield from (f"-{line}" for line in before[old_from:old_to])
            yield from (f"+{line}" for line in after[new_from:new_to])


def _range(first: int, end: int) -> str:
    """Return a range of lines as in a unified diff: counted from 1, without a length of 1."""
    length = end - first
    return f"{first + 1}" if length == 1 else f"{first + (length > 0)},{length}"
