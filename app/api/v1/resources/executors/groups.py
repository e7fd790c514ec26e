"""API: executor groups; what changes them is in ``group_changes``."""

from collections.abc import Sequence
from typing import Literal

from app.api.v1.cursors import ID, cut, read_cursor
from app.api.v1.endpoint import Call, Resource
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.executors import GroupOut, GroupQuery, InstanceCounts
from app.domain.archive.kinds import KEEPING
from app.domain.enums import AddressType
from app.domain.jobs.fields import FIELD_OF
from app.domain.jobs.structures import GROUP_STRUCTURES, read_structure
from app.models.group import Group
from app.services.executors import group_list
from app.services.executors.instances import Instances, Presence, find_of_groups
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
resource = Resource("groups", "Executor groups: executors that share an AppName.", MEMBERS)


@resource.get("/groups", answer=Listed[GroupOut], query=GroupQuery)
def list_groups(call: Call) -> Listed[GroupOut]:
    """List executor groups by AppName."""
    query: GroupQuery = call.query
    position = read_cursor(query.cursor, str, ID)
    rows = group_list.list_after(
        call.session,
        GroupFilter(query.app_name, query.q),
        actor=call.actor,
        after=None if position is None else (str(position[0]), int(position[1])),
        limit=query.limit + 1,
    )
    page, next_cursor = cut(rows, query.limit, lambda group: (group.app_name, group.id))
    return Listed[GroupOut](items=_groups_out(call, page), next_cursor=next_cursor)


@resource.get("/groups/<int:group_id>", answer=GroupOut, etag=True)
def get_group(call: Call, group_id: int) -> GroupOut:
    """Return an executor group."""
    group = group_list.get_group(call.session, group_id, actor=call.actor)
    return _groups_out(call, [group])[0]


def _groups_out(call: Call, rows: Sequence[Group]) -> list[GroupOut]:
    instances = find_of_groups(call.session, rows, now_ms=call.now_ms)
    jobs = job_lists.count_by_group(call.session, [group.id for group in rows])
    return [_group_out(group, instances[group.id], jobs.get(group.id, 0)) for group in rows]


def _group_out(group: Group, instances: Instances, jobs: int) -> GroupOut:
    return GroupOut(
        id=group.id,
        app_name=group.app_name,
        title=group.title,
        address_type=type_name(group),
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


def type_name(group: Group) -> Literal["auto", "manual"]:
    """Return how a group gets its addresses."""
    return "auto" if group.address_type == AddressType.AUTOMATIC else "manual"
