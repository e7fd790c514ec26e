"""API: rights of the API token of the request."""

from app.api.v1.endpoint import ANY_TOKEN, Call, Resource
from app.api.v1.schemas.tokens import GroupRights, OwnToken
from app.domain.access.permissions import Right
from app.store.executors import groups

resource = Resource("me", "The API token of the request.")


@resource.get("/me", answer=OwnToken, right=ANY_TOKEN)
def own_token(call: Call) -> OwnToken:
    """Return what this API token may do."""
    actor, caller = call.actor, call.caller
    group_by_id = groups.find_groups(call.session, actor.rights)
    return OwnToken(
        name=caller.name,
        username=actor.username,
        is_service=caller.is_service,
        is_admin=actor.is_admin,
        expires_at=caller.expires_ms or None,
        groups=[
            GroupRights(
                group_id=group_id,
                app_name=group_by_id[group_id].app_name,
                rights=[right.value for right in Right if right in rights],
            )
            for group_id, rights in sorted(actor.rights.items())
            if group_id in group_by_id
        ],
    )
