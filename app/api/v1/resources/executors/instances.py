"""API: instances of executor groups."""

from collections.abc import Sequence

from app.api.v1.cursors import ID, cut, read_cursor
from app.api.v1.endpoint import Call, Resource
from app.api.v1.schemas.base import Listed, ListQuery
from app.api.v1.schemas.executors import InstanceLoad, InstanceOut, OfGroupQuery
from app.models.group import Group
from app.services.executors import groups
from app.services.executors.instances import Instance, find_of_groups

resource = Resource("instances", "Instances: the addresses of executor groups, their state and load.")


@resource.get("/instances", answer=Listed[InstanceOut], query=OfGroupQuery)
def list_instances(call: Call) -> Listed[InstanceOut]:
    """List the instances of all executor groups by AppName and address."""
    query: OfGroupQuery = call.query
    visible = groups.visible_groups(call.session, call.actor)
    requested_groups = [group for group in visible if query.group_id in (None, group.id)]
    return _part(call, requested_groups)


@resource.get("/groups/<int:group_id>/instances", answer=Listed[InstanceOut], query=ListQuery)
def list_instances_of_group(call: Call, group_id: int) -> Listed[InstanceOut]:
    """List the instances of an executor group by address."""
    return _part(call, [groups.get_group(call.session, group_id, actor=call.actor)])


def _part(call: Call, group_rows: Sequence[Group]) -> Listed[InstanceOut]:
    after, limit = read_cursor(call.query.cursor, str, ID, str), call.query.limit
    instances_by_group = find_of_groups(call.session, group_rows, now_ms=call.now_ms)
    rows = [(group, instance) for group in group_rows for instance in instances_by_group[group.id].rows]
    rows.sort(key=lambda row: _position(*row))
    later_rows = [row for row in rows if after is None or _position(*row) > after]
    page, next_cursor = cut(later_rows, limit, lambda row: _position(*row))
    return Listed[InstanceOut](items=[_instance_out(*row) for row in page], next_cursor=next_cursor)


def _position(group: Group, instance: Instance) -> tuple[str, int, str]:
    return group.app_name, group.id, instance.address


def _instance_out(group: Group, instance: Instance) -> InstanceOut:
    return InstanceOut(
        group_id=group.id,
        app_name=group.app_name,
        address=instance.address,
        state=instance.presence.value,
        is_registered=instance.is_registered,
        is_listed=instance.is_listed,
        is_drained=instance.drain is not None,
        last_heartbeat_at=instance.last_seen_ms,
        boot_id=instance.boot_id or None,
        capabilities=[word.strip() for word in instance.client.split(",") if word.strip()],
        load=InstanceLoad(running=instance.load.running, waiting=instance.load.waiting),
    )
