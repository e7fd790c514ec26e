"""Plans of calendars as code; a plan shows the days that differ, not all."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.calendars.calendar import Calendar
from app.domain.calendars.drafts import CalendarDraft, draft_of, read_draft
from app.domain.code.plan import Action, FieldChange, ObjectPlan, change_of, changed_fields

#: kind of a managed object
CALENDAR = "calendar"
#: members that name days
OF_DAYS = ("days", "names")

Members = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CalendarPlan:
    """Plan of a calendar, and what it takes to write it."""

    name: str
    #: 0: new
    calendar_id: int
    object_plan: ObjectPlan | None = None
    #: None: nothing but its owner changes
    draft: CalendarDraft | None = None
    members: Members = field(default_factory=dict)
    before: Members = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PresentCalendar:
    """A calendar that exists, and how code manages it."""

    id: int
    calendar: Calendar
    is_managed: bool
    #: fields that the code owned
    former: Members


def stored_members(name: str, members: Members) -> dict[str, Any]:
    """Return members of a calendar as they are compared; raises InvalidInput with all their errors."""
    values = calendar_values(read_draft(name, _draft({}, members)))
    return {member: values[member] for member in members}


def calendar_values(calendar: Calendar) -> dict[str, Any]:
    """Return member -> present value of a calendar."""
    draft = draft_of(calendar)
    return {
        "weekend": list(draft.weekend),
        "days": dict(draft.days),
        "names": dict(draft.names),
        "valid_until": draft.valid_until or None,
        "unknown": draft.unknown,
    }


def plan_calendar(
    name: str, members: Members, present: PresentCalendar | None, *, is_import: bool, notes: tuple[str, ...]
) -> CalendarPlan:
    """Return the plan of a calendar; raises InvalidInput if its names and days do not go together."""
    if present is None:
        fields = tuple(_field(member, None, value, is_edit=False) for member, value in members.items())
        plan = ObjectPlan(CALENDAR, name, Action.CREATE, fields=fields, notes=notes)
        return CalendarPlan(name, 0, plan, _check(name, {}, members), members)
    current = calendar_values(present.calendar)
    changes = {member: values for member, *values in changed_fields(members, current, present.former)}
    field_changes = [
        _field(member, old, new, is_edit=is_edit) for member, (old, new, is_edit) in changes.items()
    ]
    own_members = present.former if is_import else members
    is_adopted = not present.is_managed and bool(members) and not is_import
    target = (CALENDAR, name, present.id)
    object_plan = change_of(target, field_changes, own_members, present.former, is_adopted=is_adopted)
    draft = _check(name, current, members) if changes else None
    before = {member: old for member, (old, _new, _edit) in changes.items()}
    return CalendarPlan(name, present.id, object_plan, draft, members, before)


def _check(name: str, current: Members, members: Members) -> CalendarDraft:
    return draft_of(read_draft(name, _draft(current, members)))


def _draft(current: Members, members: Members) -> CalendarDraft:
    values = {**current, **members}
    values["valid_until"] = values.get("valid_until") or ""
    return CalendarDraft(**values)


def _field(name: str, old: Any, new: Any, *, is_edit: bool) -> FieldChange:
    if name not in OF_DAYS:
        return FieldChange(name, old, new, is_edit)
    mark = json.dumps(new, sort_keys=True)
    if old is None:
        return FieldChange(name, None, len(new), is_edit, mark=mark)
    differing = sorted(day for day in old.keys() | new.keys() if old.get(day) != new.get(day))
    before, after = ({day: values[day] for day in differing if day in values} for values in (old, new))
    return FieldChange(name, before, after, is_edit, mark=mark)
