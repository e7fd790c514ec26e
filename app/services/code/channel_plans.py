"""Plans of alarm channels and their routes. Only administrators see and change them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.access.permissions import Actor
from app.domain.alarms.channel_kinds import ChannelKind
from app.domain.code.document import ALARM_CHANNELS, CHANNELS, JOBS, Members, at_place, place
from app.domain.code.plan import BLANKED, Action, FieldChange, ObjectPlan, change_of, changed_fields
from app.domain.text.texts import N_, folded
from app.errors import InvalidInput, PermissionDenied
from app.services.alarms.channel_setup import ChannelDraft, check_channel
from app.services.alarms.targets import settings_of
from app.services.code.stored import Stored, channel_values, is_secret, own_settings, setting_value
from app.store.alarms.channels import ScopedChannel
from app.store.jobs.managed import CHANNEL

_SETTING = "settings."
#: field of a channel -> member; the key is the name, and other fields are settings
_PLACE_OF = {"name": "", "groups": "groups", "jobs": "jobs"}


@dataclass(frozen=True, slots=True)
class ChannelPlan:
    """Plan of a channel, and what it takes to write it; ids of new jobs are provisional."""

    name: str
    #: 0: new
    channel_id: int
    shown: ObjectPlan | None = None
    #: None: nothing but its owner changes
    draft: ChannelDraft | None = None
    applied: Members = field(default_factory=dict)
    before: Members = field(default_factory=dict)


class ChannelPlanner:
    """Plans channels one by one; then the routes that jobs name."""

    def __init__(
        self,
        stored: Stored,
        *,
        actor: Actor,
        group_id_of: Callable[[str], int],
        job_id_of: Callable[[str], int],
        names: Mapping[str, Callable[[int], str]],
    ) -> None:
        self.stored, self._actor, self._names = stored, actor, names
        self._id_of = {"groups": group_id_of, "jobs": job_id_of}
        #: folded names of channels that are deleted, and lose their routes with it
        self.deleted: Collection[str] = ()
        self._by_name = {folded(each.channel.name): each for each in stored.channels.values()}
        #: folded names of the channels that were to be planned
        self._named: set[str] = set()

    def plan(self, name: str, members: Members) -> ChannelPlan:
        """Return the plan of a channel; raises InvalidInput with its members, or PermissionDenied."""
        if not self._actor.is_admin:
            raise PermissionDenied(f"{place(CHANNELS, name)}: only administrators change alarm channels")
        self._named.add(folded(name))
        scoped = self._by_name.get(folded(name))
        wanted = self._wanted(members, scoped)
        if scoped is None:
            return self._create(name, members, wanted)
        current = channel_values(scoped)
        if wanted.get("kind", current["kind"]) != current["kind"]:
            raise InvalidInput(
                "kind", N_("The kind of a channel cannot be changed: it is %(kind)s", kind=current["kind"])
            )
        owner = self.stored.managed_object(CHANNEL, name)
        owned = owner.fields if owner is not None and owner.object_id == scoped.channel.id else {}
        # a channel for all jobs loses its scopes
        compared = {**wanted, "groups": [], "jobs": []} if wanted.get("for_all") else wanted
        changes = {member: rest for member, *rest in changed_fields(compared, current, owned)}
        fields = [
            self._field(member, old, new, kind=current["kind"], edited=edited)
            for member, (old, new, edited) in changes.items()
        ]
        target = (CHANNEL, name, scoped.channel.id)
        shown = change_of(target, fields, wanted, owned, is_adopted=owner is None)
        draft = self._draft(scoped.channel.name, members, compared, scoped) if fields else None
        before = {member: old for member, (old, _new, _edited) in changes.items()}
        return ChannelPlan(name, scoped.channel.id, shown, draft, wanted, before)

    def route(self, plans: Collection[ChannelPlan], wishes: Mapping[int, Members]) -> list[ChannelPlan]:
        """Return the plans with the routes that jobs name; ``wishes`` is job id -> members."""
        names = {folded(plan.name): plan for plan in plans}
        # a channel without a plan has its own error: none follow from it
        faulty = self._named.difference(names)
        known = {*names, *self._by_name}
        routed = {
            job_id: {folded(name): name for name in members[ALARM_CHANNELS]}
            for job_id, members in wishes.items()
            if ALARM_CHANNELS in members
        }
        for job_id, wanted in routed.items():
            for missing in wanted.keys() - known - faulty:
                problem = N_("There is no alarm channel %(name)s", name=wanted[missing])
                raise InvalidInput(place(JOBS, self._names["jobs"](job_id), ALARM_CHANNELS), problem)
        return [
            plan
            for name in sorted(known.difference(self.deleted, faulty))
            if (plan := self._routed(name, names.get(name), routed)) is not None
        ]

    def check(self, plan: ChannelPlan) -> None:
        """Raise InvalidInput at its place for a routed channel that could not be stored."""
        if plan.draft is None:
            return
        own = self.stored.channels.get(plan.channel_id)
        others = [each.channel.name for each in self.stored.channels.values() if each is not own]
        try:
            check_channel(plan.draft, others, settings_of(own.channel) if own is not None else {})
        except InvalidInput as exc:
            for each in exc.each:
                each.field = _PLACE_OF.get(each.field, _SETTING + each.field)
            raise at_place(exc, CHANNELS, plan.name) from exc

    def _routed(
        self, name: str, plan: ChannelPlan | None, routed: Mapping[int, Mapping[str, str]]
    ) -> ChannelPlan | None:
        scoped = self._by_name.get(name)
        draft = plan.draft if plan is not None else None
        if draft is not None:
            job_ids = set(draft.job_ids)
        else:
            job_ids = set(scoped.job_ids) if scoped is not None else set()
        routes = {job_id for job_id, names in routed.items() if name in names}
        wanted = (job_ids - routed.keys()) | routes
        if wanted == job_ids:
            return plan
        if draft is None and scoped is not None:
            draft = self._draft(scoped.channel.name, {}, {}, scoped)
        if draft is not None and plan is not None and not plan.channel_id and "for_all" not in plan.applied:
            draft = replace(draft, for_all=False)
        if draft is None or draft.for_all:
            problem = N_("The alarm channel %(name)s is for all jobs already", name=routed[min(routes)][name])
            raise InvalidInput(place(JOBS, self._names["jobs"](min(routes)), ALARM_CHANNELS), problem)
        draft = replace(draft, job_ids=sorted(wanted))
        if plan is not None:
            return replace(plan, draft=draft)
        draft = replace(draft, may_be_empty=True)  # the files cannot give it others
        return ChannelPlan(draft.name, scoped.channel.id if scoped is not None else 0, draft=draft)

    def _create(self, name: str, members: Members, wanted: Mapping[str, Any]) -> ChannelPlan:
        kind = members.get("kind")
        if kind is None:
            options = ", ".join(ChannelKind)
            raise InvalidInput("kind", N_("Name the kind of the new channel: %(options)s", options=options))
        draft = self._draft(name, members, wanted, None)
        fields = tuple(
            self._field(member, None, value, kind=kind, edited=False) for member, value in wanted.items()
        )
        notes = self.stored.notes_on_new(CHANNEL, name)
        shown = ObjectPlan(CHANNEL, name, Action.CREATE, fields=fields, notes=notes)
        return ChannelPlan(name, 0, shown, draft, wanted)

    def _wanted(self, members: Members, scoped: ScopedChannel | None) -> dict[str, Any]:
        """Return the members with ids in place of keys, and each setting as it is compared."""
        kind = members.get("kind") or (scoped.channel.kind if scoped is not None else "")
        wanted = {name: value for name, value in members.items() if name != "settings"}
        for name in ("groups", "jobs"):
            if name in members:
                wanted[name] = sorted(self._id_of[name](key) for key in members[name])
        if (members.get("groups") or members.get("jobs")) and "for_all" not in members:
            wanted["for_all"] = False
        for name, value in members.get("settings", {}).items():
            wanted[_SETTING + name] = setting_value(kind, name, value.strip())
        return wanted

    def _draft(
        self, name: str, members: Members, wanted: Mapping[str, Any], scoped: ScopedChannel | None
    ) -> ChannelDraft:
        present = channel_values(scoped) if scoped is not None else {"kind": members.get("kind")}
        values = {"groups": [], "jobs": [], **present, **wanted}
        named = {
            **(own_settings(scoped.channel) if scoped is not None else {}),
            **members.get("settings", {}),
        }
        has_scopes = bool(values["groups"] or values["jobs"])
        return ChannelDraft(
            name=name,
            kind=ChannelKind(values["kind"]),
            settings=named,
            for_all=values.get("for_all", not has_scopes),
            group_ids=values["groups"],
            job_ids=values["jobs"],
        )

    def _field(self, name: str, old: Any, new: Any, *, kind: str, edited: bool) -> FieldChange:
        if name in self._names:
            old, new = ([self._names[name](each) for each in ids or ()] for ids in (old, new))
        if name.startswith(_SETTING) and is_secret(kind, name.removeprefix(_SETTING)):
            return FieldChange(
                name, BLANKED if old else None, BLANKED if new else None, edited, mark=str(new)
            )
        return FieldChange(name, old, new, edited)
