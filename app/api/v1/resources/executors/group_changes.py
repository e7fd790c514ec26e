"""API: operations that add, change and remove executor groups."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.api.v1.endpoint import ADMIN, Call, Made
from app.api.v1.resources.executors import groups as group_reads
from app.api.v1.resources.executors.groups import get_group
from app.api.v1.schemas.executors import GroupIn, GroupOut, GroupPatch
from app.domain.archive.kinds import keeping_of
from app.domain.enums import AddressType
from app.errors import InvalidInput
from app.services.executors import groups
from app.services.executors.groups import GroupDraft
from app.store.executors import listing as group_lists

TYPES = {"auto": AddressType.AUTOMATIC, "manual": AddressType.MANUAL}
resource = replace(group_reads.resource, operations=[])


@resource.post("/groups", body=GroupIn, answer=GroupOut, status=201, right=ADMIN, etag=True)
def add_group(call: Call, body: GroupIn) -> Made:
    """Add an executor group."""
    draft = _draft(call, body.model_dump())
    group_id = groups.add_group(call.session, draft, actor=call.actor, now_ms=call.now_ms)
    call.reread()
    return Made(get_group(call, group_id), f"/groups/{group_id}")


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
        "address_type": group_reads.type_name(group),
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
