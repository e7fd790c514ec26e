"""API: service tokens, which belong to no user. Users create their own tokens in the console."""

from typing import Any

from app.api.v1.cursors import read_id_cursor, write_cursor
from app.api.v1.endpoint import ADMIN, Call, Made, Resource
from app.api.v1.schemas.base import Listed, ListQuery
from app.api.v1.schemas.tokens import CreatedTokenOut, TokenIn, TokenOut
from app.domain.access import api_tokens as rules
from app.domain.access.api_tokens import Grant
from app.domain.access.permissions import parse_rights
from app.errors import NotFound
from app.models.api_token import ApiToken
from app.services.accounts import api_tokens
from app.services.accounts.api_tokens import TokenDraft

resource = Resource(
    "tokens", "Service tokens, which belong to no user.", {"groups": "group_ids", "expires": "expires_at"}
)


@resource.get("/tokens", answer=Listed[TokenOut], query=ListQuery, right=ADMIN)
def list_tokens(call: Call) -> Listed[TokenOut]:
    """List the service tokens, newest first."""
    query: ListQuery = call.query
    page = api_tokens.list_service(
        call.session, actor=call.actor, before_id=read_id_cursor(query.cursor), limit=query.limit
    )
    cursor = None if page.before_id is None else write_cursor(page.before_id)
    return Listed[TokenOut](items=[TokenOut(**_members(row)) for row in page.rows], next_cursor=cursor)


@resource.get("/tokens/<int:token_id>", answer=TokenOut, right=ADMIN)
def get_token(call: Call, token_id: int) -> TokenOut:
    """Return a service token."""
    return TokenOut(**_members(_service_token(call, token_id)))


@resource.post("/tokens", body=TokenIn, answer=CreatedTokenOut, status=201, right=ADMIN, has_secret=True)
def add_token(call: Call, body: TokenIn) -> Made:
    """Create a service token. The answer of a dry run has a token that gives no access."""
    grant = Grant(
        rights=parse_rights(",".join(body.rights)),
        admin=rules.ADMIN in body.rights,
        group_ids=None if body.group_ids is None else frozenset(body.group_ids),
    )
    draft = TokenDraft(body.name, grant, body.expires_at or 0, service=True)
    new_token = api_tokens.create_token(call.session, draft, actor=call.actor, now_ms=call.now_ms)
    answer = CreatedTokenOut(**_members(_service_token(call, new_token.id)), token=new_token.token)
    return Made(answer, f"/tokens/{new_token.id}")


@resource.delete("/tokens/<int:token_id>", right=ADMIN)
def revoke_token(call: Call, token_id: int) -> None:
    """Revoke a service token."""
    _service_token(call, token_id)
    api_tokens.revoke_token(call.session, token_id, actor=call.actor, now_ms=call.now_ms)


def _service_token(call: Call, token_id: int) -> ApiToken:
    row = api_tokens.get_token(call.session, token_id, actor=call.actor)
    if row.user_id:
        raise NotFound(api_tokens.MISSING)
    return row


def _members(row: ApiToken) -> dict[str, Any]:
    grant = rules.parse_grant(row.rights, row.group_ids)
    return {
        "id": row.id,
        "name": row.name,
        "hint": row.hint,
        "rights": rules.stored_rights(grant).split(","),
        "group_ids": None if grant.group_ids is None else sorted(grant.group_ids),
        "created_at": row.created_ms,
        "created_by": row.created_by,
        "expires_at": row.expires_ms or None,
        "last_used_at": row.last_used_ms or None,
        "last_address": row.last_address,
    }
