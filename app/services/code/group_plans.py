"""Plans of executor groups. Only administrators change them; anyone may refer to those they can see."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.access.permissions import Actor
from app.domain.archive.kinds import KEEPING, keeping_of
from app.domain.code.document import AUTOMATIC, GROUPS, MANUAL, Members, place
from app.domain.code.plan import Action, FieldChange, ObjectPlan, change_of, changed_fields
from app.domain.enums import AddressType
from app.domain.jobs.fields import FIELD_OF
from app.domain.jobs.members import MEMBER_OF
from app.domain.jobs.structures import GROUP_STRUCTURES
from app.domain.promises.rules import check_escalation
from app.domain.text.texts import N_
from app.errors import InvalidInput, PermissionDenied
from app.models.group import Group
from app.services.code.state import State, group_values
from app.services.executors.groups import GroupDraft, check_group
from app.settings.config import Network
from app.store.jobs.managed_objects import GROUP

#: field of a group -> member; the key is the AppName
_MEMBER_OF = {"appname": "", "addressList": "addresses", "maxRunning": "max_running"} | {
    FIELD_OF[name].error_name: name for name in KEEPING
}


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Plan of a group, and what it takes to write it."""

    app_name: str
    #: negative: provisional id of a new group
    group_id: int
    object_plan: ObjectPlan | None = None
    #: None: no column changes
    draft: GroupDraft | None = None
    members: Members = field(default_factory=dict)
    before: Members = field(default_factory=dict)


class GroupPlanner:
    """Plans groups one by one, and maps each AppName to an id."""

    def __init__(self, state: State, *, actor: Actor, networks: tuple[Network, ...]) -> None:
        self.state, self.actor, self.networks = state, actor, networks
        self._groups_by_app: dict[str, list[Group]] = {}
        for group in state.groups.values():
            self._groups_by_app.setdefault(group.app_name, []).append(group)
        #: code owns what it owned before
        self.is_import = False
        #: limits are refused, as a Java admin ignores them
        self.readable_by_java = False
        #: whether a channel exists or is made as well; what is restored is not refused
        self.has_channel: Callable[[str], bool] = lambda _name: True
        #: AppName -> provisional id
        self.new: dict[str, int] = {}

    def id_of(self, app_name: str) -> int:
        """Return the id of the group with an AppName; raises InvalidInput if there is none or more."""
        if app_name in self.new:
            return self.new[app_name]
        groups = self._groups_by_app.get(app_name, [])
        if not groups:
            raise InvalidInput(
                "",
                N_(
                    "There is no executor group with the AppName %(name)s; correct it or add it to groups",
                    name=app_name,
                ),
            )
        if len(groups) > 1:
            ids = ", ".join(str(group.id) for group in groups)
            problem = N_("Several executor groups have the AppName %(name)s: %(ids)s", name=app_name, ids=ids)
            raise InvalidInput("", problem)
        return groups[0].id

    def plan(self, app_name: str, members: Members, *, group_id: int = 0) -> GroupPlan:
        """Return the plan of a group; raises InvalidInput or PermissionDenied.

        ``group_id`` is 0 if the AppName alone identifies the group.
        """
        if app_name not in self._groups_by_app:
            return self._create(app_name, members)
        group = self.state.groups[group_id or self.id_of(app_name)]
        current = group_values(group)
        owner = self.state.managed_object(GROUP, app_name)
        former = owner.fields if owner is not None and owner.object_id == group.id else {}
        # an automatic group loses the addresses that were entered
        target = {**members, "addresses": []} if members.get("address_type") == AUTOMATIC else members
        changes = {name: values for name, *values in changed_fields(target, current, former)}
        fields = [FieldChange(name, old, new, is_edit) for name, (old, new, is_edit) in changes.items()]
        key = (GROUP, app_name, group.id)
        is_adopted = owner is None and bool(members) and not self.is_import
        own_members = former if self.is_import else members
        object_plan = change_of(key, fields, own_members, former, is_adopted=is_adopted)
        if object_plan is None:
            return GroupPlan(app_name, group.id, members=members)
        self._require_admin(app_name)
        draft = self._draft(app_name, {**current, **members}, members) if fields else None
        before = {name: old for name, (old, _new, _edit) in changes.items()}
        return GroupPlan(app_name, group.id, object_plan, draft, members, before)

    def _create(self, app_name: str, members: Members) -> GroupPlan:
        self._require_admin(app_name)
        self.new[app_name] = -1 - len(self.new)
        fields = tuple(FieldChange(name, None, value) for name, value in members.items())
        notes = self.state.notes_on_new(GROUP, app_name)
        object_plan = ObjectPlan(GROUP, app_name, Action.CREATE, fields=fields, notes=notes)
        values = {"title": app_name, "address_type": AUTOMATIC, "addresses": [], **members}
        draft = self._draft(app_name, values, members)
        return GroupPlan(app_name, self.new[app_name], object_plan, draft, members)

    def _draft(self, app_name: str, values: Mapping[str, Any], members: Members) -> GroupDraft:
        is_manual = values["address_type"] == MANUAL
        addresses = ",".join(values["addresses"]) if is_manual else ""
        address_type = AddressType.MANUAL if is_manual else AddressType.AUTOMATIC
        structures = {
            name: MEMBER_OF[name].write(members[name]) for name in GROUP_STRUCTURES if name in members
        }
        draft = GroupDraft(
            app_name,
            values["title"],
            int(address_type),
            addresses,
            networks=self.networks,
            max_running=members.get("max_running"),
            **keeping_of(members),
            readable_by_java=self.readable_by_java,
            is_channel_checked=True,  # its channel may be made by the same document
            **structures,
        )
        try:
            check_group(draft)
            check_escalation(draft.escalation or "", self.has_channel)
        except InvalidInput as exc:
            for error in exc.errors:
                error.field = _MEMBER_OF.get(error.field, error.field)
            raise
        return draft

    def _require_admin(self, app_name: str) -> None:
        if not self.actor.is_admin:
            raise PermissionDenied(f"{place(GROUPS, app_name)}: only administrators change executor groups")
