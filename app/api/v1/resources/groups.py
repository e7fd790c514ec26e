"""API: executor groups."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from app.api.v1.cursors import ID, cut, read_cursor
from app.api.v1.endpoint import ADMIN, Call, Made, Resource
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.executors import GroupIn, GroupOut, GroupPatch, GroupQuery, InstanceCounts
from app.domain.archive.kinds import KEEPING, keeping_of
from app.domain.enums import AddressType
from app.domain.jobs.fields import FIELD_OF
from app.domain.jobs.structures import GROUP_STRUCTURES, read_structure
from app.errors import InvalidInput
from app.models.group import Group
from app.services.executors import groups
from app.services.executors.groups import GroupDraft
from app.services.executors.instances import Instances, Presence, find_of_groups
from app.store.executors import listing as group_lists
from app.store.executors.listing import GroupFilter
from app.store.jobs import listing as job_lists

#: names of fields in errors -> members
MEMBERS = {
    "appname": "app_name",
    "addressList": "addresses",
    "accessToken": "access_token",
    "alarmUrls": "alarm_urls",
    "maxRunning": "max_running",
    **{FIELD_OF[name].error_name: name for name in KEEPING},
}
TYPES = {"auto": AddressType.AUTOMATIC, "manual": AddressType.MANUAL}
resource = Resource("groups", "Executor groups: executors that share an AppName.", MEMBERS)


@resource.get("/groups", answer=Listed[GroupOut], query=GroupQuery)
def list_groups(call: Call) -> Listed[GroupOut]:
    """List executor groups by AppName."""
    query: GroupQuery = call.query
    position = read_cursor(query.cursor, str, ID)
    rows = groups.list_after(
        call.session,
        GroupFilter(query.app_name, query.q),
        actor=call.actor,
        after=None if position is None else (str(position[0]), int(position[1])),
        limit=query.limit + 1,
    )
    page, next_cursor = cut(rows, query.limit, lambda group: (group.app_name, group.id))
    return Listed[GroupOut](items=_groups_out(call, page), next_cursor=next_cursor)


@resource.post("/groups", body=GroupIn, answer=GroupOut, status=201, right=ADMIN, etag=True)
def add_group(call: Call, body: GroupIn) -> Made:
    """Add an executor group."""
    draft = _draft(call, body.model_dump())
    group_id = groups.add_group(call.session, draft, actor=call.actor, now_ms=call.now_ms)
    call.reread()
    return Made(get_group(call, group_id), f"/groups/{group_id}")


@resource.get("/groups/<int:group_id>", answer=GroupOut, etag=True)
def get_group(call: Call, group_id: int) -> GroupOut:
    """Return an executor group."""
    group = groups.get_group(call.session, group_id, actor=call.actor)
    return _groups_out(call, [group])[0]


@resource.patch(
    "/groups/<int:group_id>",
    body=GroupPatch,
    answer=GroupOut,
    right=ADMIN,
    etag=True,
    lock=group_lists.lock_group,
)
def change_group(call: Call, group_id: int, body: GroupPatch) -> GroupOut:
    """Change the given members of an executor group.

    A replaced access token stays valid beside the new one until the changeover is ended.
    """
    group_lists.lock_group(call.session, group_id)
    group = groups.get_group(call.session, group_id, actor=call.actor)
    present = {
        "app_name": group.app_name,
        "title": group.title,
        "address_type": _type_name(group),
        "addresses": group.addresses,
    }
    changes = body.model_dump(exclude_unset=True)
    if changes.get("address_type") == "auto":  # the body may be an older answer: other instances may register
        changes.pop("addresses", None)
    draft = _draft(call, present | changes, present=group.addresses)
    groups.update_group(call.session, group_id, draft, actor=call.actor, now_ms=call.now_ms)
    call.reread()
    return get_group(call, group_id)


@resource.delete("/groups/<int:group_id>", right=ADMIN, lock=group_lists.lock_group)
def remove_group(call: Call, group_id: int) -> None:
    """Delete an executor group without jobs, with the rights on it. One group always remains."""
    groups.remove_group(call.session, group_id, actor=call.actor, now_ms=call.now_ms)


@resource.post("/groups/<int:group_id>/end-token-changeover", answer=GroupOut, right=ADMIN)
def end_token_changeover(call: Call, group_id: int) -> GroupOut:
    """End the replacement of a group's access token: the former one is no longer valid."""
    groups.end_changeover(call.session, group_id, actor=call.actor, now_ms=call.now_ms)
    call.reread()
    return get_group(call, group_id)


def _draft(call: Call, members: dict[str, Any], *, present: Sequence[str] = ()) -> GroupDraft:
    """Return the draft of a group; without a token in ``members`` a group keeps its own.

    Raises InvalidInput for addresses of an automatic group, unless they are its current ones.
    """
    if members["address_type"] == "auto" and members["addresses"] not in ([], present):
        raise InvalidInput("addresses", "only a group with address_type manual has addresses of its own")
    token, urls = "access_token", "alarm_urls"
    return GroupDraft(
        app_name=members["app_name"],
        title=members["title"],
        address_type=int(TYPES[members["address_type"]]),
        address_list=",".join(members["addresses"]),
        access_token=(members[token] or "").strip() if token in members else None,
        alarm_urls="\n".join(members[urls]) if urls in members else None,
        networks=call.config.executor_networks,
        promises=json.dumps(members["promises"]) if "promises" in members else None,
        escalation=json.dumps(members["escalation"]) if "escalation" in members else None,
        max_running=members.get("max_running"),
        **keeping_of(members),
        readable_by_java=call.config.shared_with_java,
    )


def _groups_out(call: Call, rows: Sequence[Group]) -> list[GroupOut]:
    instances = find_of_groups(call.session, rows, now_ms=call.now_ms)
    jobs = job_lists.count_by_group(call.session, [group.id for group in rows])
    return [_group_out(group, instances[group.id], jobs.get(group.id, 0)) for group in rows]


def _group_out(group: Group, instances: Instances, jobs: int) -> GroupOut:
    return GroupOut(
        id=group.id,
        app_name=group.app_name,
        title=group.title,
        address_type=_type_name(group),
        addresses=group.addresses,
        jobs=jobs,
        instances=InstanceCounts(
            listed=len(group.addresses),
            online=sum(instance.presence is Presence.ONLINE for instance in instances.rows),
            drained=len(instances.drained),
        ),
        last_heartbeat_at=max((instance.last_seen_ms or 0 for instance in instances.rows), default=0) or None,
        has_own_token=bool(group.access_token),
        token_changeover_since=group.changeover_ms or None,
        max_running=group.max_running,
        **{name: getattr(group, name) for name in KEEPING},
        **{name: read_structure(FIELD_OF[name], getattr(group, name)) for name in GROUP_STRUCTURES},
        updated_at=group.update_time,
    )


def _type_name(group: Group) -> Literal["auto", "manual"]:
    return "auto" if group.address_type == AddressType.AUTOMATIC else "manual"
