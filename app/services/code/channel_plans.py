"""Plans of alarm channels and their routes. Only administrators see and change them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.access.permissions import Actor
from app.domain.alarms.channel_kinds import ChannelKind
from app.domain.code.document import ALARM_CHANNELS, CHANNELS, JOBS, Members, at_place, place
from app.domain.code.plan import BLANKED, Action, FieldChange, ObjectPlan, change_of, changed_fields
from app.domain.text.texts import N_, fold
from app.errors import InvalidInput, PermissionDenied
from app.services.alarms.channel_setup import ChannelDraft, check_channel
from app.services.alarms.targets import settings_of
from app.services.code.state import State, channel_values, is_secret, own_settings, setting_value
from app.store.alarms.channels import ScopedChannel
from app.store.jobs.managed_objects import CHANNEL

_SETTING = "settings."
#: field of a channel -> member; the key is the name, and other fields are settings
_PLACE_OF = {"name": "", "groups": "groups", "jobs": "jobs"}


@dataclass(frozen=True, slots=True)
class ChannelPlan:
    """Plan of a channel, and what it takes to write it; ids of new jobs are provisional."""

    name: str
    #: 0: new
    channel_id: int
    object_plan: ObjectPlan | None = None
    #: None: nothing but its owner changes
    draft: ChannelDraft | None = None
    members: Members = field(default_factory=dict)
    before: Members = field(default_factory=dict)


class ChannelPlanner:
    """Plans channels one by one; then the routes that jobs name."""

    def __init__(
        self,
        state: State,
        *,
        actor: Actor,
        group_id_of: Callable[[str], int],
        job_id_of: Callable[[str], int],
        names: Mapping[str, Callable[[int], str]],
    ) -> None:
        self.state, self._actor, self._names = state, actor, names
        self._id_of = {"groups": group_id_of, "jobs": job_id_of}
        #: folded names of channels that are deleted, and lose their routes with it
        self.deleted: Collection[str] = ()
        self._by_name = {fold(channel.channel.name): channel for channel in state.channels.values()}
        #: folded names of the channels that were to be planned
        self._document_names: set[str] = set()

    def plan(self, name: str, members: Members) -> ChannelPlan:
        """Return the plan of a channel; raises InvalidInput with its members, or PermissionDenied."""
        if not self._actor.is_admin:
            raise PermissionDenied(f"{place(CHANNELS, name)}: only administrators change alarm channels")
        self._document_names.add(fold(name))
        row = self._by_name.get(fold(name))
        new_members = self._target_members(members, row)
        if row is None:
            return self._create(name, members, new_members)
        current = channel_values(row)
        if new_members.get("kind", current["kind"]) != current["kind"]:
            raise InvalidInput(
                "kind", N_("The kind of a channel cannot be changed: it is %(kind)s", kind=current["kind"])
            )
        owner = self.state.managed_object(CHANNEL, name)
        former = owner.fields if owner is not None and owner.object_id == row.channel.id else {}
        # a channel for all jobs loses its scopes
        effective = {**new_members, "groups": [], "jobs": []} if new_members.get("for_all") else new_members
        changes = {member: values for member, *values in changed_fields(effective, current, former)}
        fields = [
            self._field(member, old, new, kind=current["kind"], is_edit=is_edit)
            for member, (old, new, is_edit) in changes.items()
        ]
        target = (CHANNEL, name, row.channel.id)
        object_plan = change_of(target, fields, new_members, former, is_adopted=owner is None)
        draft = self._draft(row.channel.name, members, effective, row) if fields else None
        before = {member: old for member, (old, _new, _edit) in changes.items()}
        return ChannelPlan(name, row.channel.id, object_plan, draft, new_members, before)

    def route(self, plans: Collection[ChannelPlan], wishes: Mapping[int, Members]) -> list[ChannelPlan]:
        """Return the plans with the routes that jobs name; ``wishes`` is job id -> members."""
        names = {fold(plan.name): plan for plan in plans}
        # a channel without a plan has its own error: none follow from it
        faulty = self._document_names.difference(names)
        existing_names = {*names, *self._by_name}
        routes_of = {
            job_id: {fold(name): name for name in members[ALARM_CHANNELS]}
            for job_id, members in wishes.items()
            if ALARM_CHANNELS in members
        }
        for job_id, routes in routes_of.items():
            for unknown in routes.keys() - existing_names - faulty:
                problem = N_("There is no alarm channel %(name)s", name=routes[unknown])
                raise InvalidInput(place(JOBS, self._names["jobs"](job_id), ALARM_CHANNELS), problem)
        return [
            plan
            for name in sorted(existing_names.difference(self.deleted, faulty))
            if (plan := self._with_routes(name, names.get(name), routes_of)) is not None
        ]

    def check(self, plan: ChannelPlan) -> None:
        """Raise InvalidInput at its place for a routed channel that could not be stored."""
        if plan.draft is None:
            return
        current = self.state.channels.get(plan.channel_id)
        names = [item.channel.name for item in self.state.channels.values() if item is not current]
        try:
            check_channel(plan.draft, names, settings_of(current.channel) if current is not None else {})
        except InvalidInput as exc:
            for error in exc.errors:
                error.field = _PLACE_OF.get(error.field, _SETTING + error.field)
            raise at_place(exc, CHANNELS, plan.name) from exc

    def _with_routes(
        self, name: str, plan: ChannelPlan | None, routes_of: Mapping[int, Mapping[str, str]]
    ) -> ChannelPlan | None:
        row = self._by_name.get(name)
        draft = plan.draft if plan is not None else None
        if draft is not None:
            job_ids = set(draft.job_ids)
        else:
            job_ids = set(row.job_ids) if row is not None else set()
        routes = {job_id for job_id, names in routes_of.items() if name in names}
        new_job_ids = (job_ids - routes_of.keys()) | routes
        if new_job_ids == job_ids:
            return plan
        if draft is None and row is not None:
            draft = self._draft(row.channel.name, {}, {}, row)
        if draft is not None and plan is not None and not plan.channel_id and "for_all" not in plan.members:
            draft = replace(draft, for_all=False)
        if draft is None or draft.for_all:
            job_id = min(routes)
            problem = N_("The alarm channel %(name)s is for all jobs already", name=routes_of[job_id][name])
            raise InvalidInput(place(JOBS, self._names["jobs"](job_id), ALARM_CHANNELS), problem)
        draft = replace(draft, job_ids=sorted(new_job_ids))
        if plan is not None:
            return replace(plan, draft=draft)
        draft = replace(draft, may_be_empty=True)  # the files cannot give it others
        return ChannelPlan(draft.name, row.channel.id if row is not None else 0, draft=draft)

    def _create(self, name: str, members: Members, target: Mapping[str, Any]) -> ChannelPlan:
        kind = members.get("kind")
        if kind is None:
            options = ", ".join(ChannelKind)
            raise InvalidInput("kind", N_("Name the kind of the new channel: %(options)s", options=options))
        draft = self._draft(name, members, target, None)
        fields = tuple(
            self._field(member, None, value, kind=kind, is_edit=False) for member, value in target.items()
        )
        notes = self.state.notes_on_new(CHANNEL, name)
        object_plan = ObjectPlan(CHANNEL, name, Action.CREATE, fields=fields, notes=notes)
        return ChannelPlan(name, 0, object_plan, draft, target)

    def _target_members(self, members: Members, row: ScopedChannel | None) -> dict[str, Any]:
        """Return the members with ids in place of keys, and each setting as it is compared."""
        kind = members.get("kind") or (row.channel.kind if row is not None else "")
        target = {name: value for name, value in members.items() if name != "settings"}
        for name in ("groups", "jobs"):
            if name in members:
                target[name] = sorted(self._id_of[name](key) for key in members[name])
        if (members.get("groups") or members.get("jobs")) and "for_all" not in members:
            target["for_all"] = False
        for name, value in members.get("settings", {}).items():
            target[_SETTING + name] = setting_value(kind, name, value.strip())
        return target

    def _draft(
        self, name: str, members: Members, target: Mapping[str, Any], row: ScopedChannel | None
    ) -> ChannelDraft:
        present = channel_values(row) if row is not None else {"kind": members.get("kind")}
        values = {"groups": [], "jobs": [], **present, **target}
        settings = {
            **(own_settings(row.channel) if row is not None else {}),
            **members.get("settings", {}),
        }
        has_scopes = bool(values["groups"] or values["jobs"])
        return ChannelDraft(
            name=name,
            kind=ChannelKind(values["kind"]),
            settings=settings,
            for_all=values.get("for_all", not has_scopes),
            group_ids=values["groups"],
            job_ids=values["jobs"],
            daily=values.get("daily", False),
        )

    def _field(self, name: str, old: Any, new: Any, *, kind: str, is_edit: bool) -> FieldChange:
        if name in self._names:
            old, new = ([self._names[name](object_id) for object_id in ids or ()] for ids in (old, new))
        if name.startswith(_SETTING) and is_secret(kind, name.removeprefix(_SETTING)):
            return FieldChange(
                name, BLANKED if old else None, BLANKED if new else None, is_edit, mark=str(new)
            )
        return FieldChange(name, old, new, is_edit)
