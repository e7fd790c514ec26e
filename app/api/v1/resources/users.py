"""API: users and their rights."""

from collections.abc import Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.api.v1.cursors import ID, cut, read_cursor
from app.api.v1.endpoint import ADMIN, Call, Made, Resource
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.tokens import RightName, RoleName, UserIn, UserOut, UserPatch, UserQuery, UserRights
from app.database.engine import call_at_commit
from app.domain.access.permissions import Right
from app.domain.enums import Role, WeakPassword
from app.errors import InvalidInput
from app.models.user import User
from app.services.accounts import users
from app.services.accounts.users import UserDraft
from app.settings.home import forget_first_password
from app.store.accounts import users as user_store
from app.store.accounts.users import UserFilter

ROLES: dict[RoleName, Role] = {"normal": Role.NORMAL, "admin": Role.ADMIN}
RIGHTS: dict[Right, RightName] = {
    Right.VIEW: "view",
    Right.OPERATE: "operate",
    Right.EDIT: "edit",
    Right.GLUE: "glue",
}
resource = Resource("users", "Users of the console and their rights.", {"permission": "rights"})


@resource.get("/users", answer=Listed[UserOut], query=UserQuery, right=ADMIN)
def list_users(call: Call) -> Listed[UserOut]:
    """List the users by name."""
    query: UserQuery = call.query
    name, user_id = read_cursor(query.cursor, str, ID) or ("", 0)
    role = -1 if query.role is None else int(ROLES[query.role])
    rows = users.list_after(
        call.session,
        UserFilter(username=query.username, role=role),
        (str(name), int(user_id)),
        actor=call.actor,
        limit=query.limit + 1,
    )
    page, next_cursor = cut(rows, query.limit, lambda user: (user.username, user.id))
    return Listed[UserOut](items=_answers(call.session, page), next_cursor=next_cursor)


@resource.get("/users/<int:user_id>", answer=UserOut, right=ADMIN, etag=True)
def get_user(call: Call, user_id: int) -> UserOut:
    """Return a user."""
    return _answers(call.session, [users.get_user(call.session, user_id, actor=call.actor)])[0]


@resource.post("/users", body=UserIn, answer=UserOut, status=201, right=ADMIN)
def add_user(call: Call, body: UserIn) -> Made:
    """Add a user."""
    rights = _rights_by_group(body.rights)
    draft = UserDraft(
        username=body.username,
        password=body.password,
        role=ROLES[body.role],
        disabled=body.disabled,
        must_change=body.must_change_password,
        group_ids=tuple(rights),
        rights=rights,
    )
    user_id = users.add_user(call.session, draft, actor=call.actor, now_ms=call.now_ms)
    return Made(get_user(call, user_id), f"/users/{user_id}")


@resource.patch(
    "/users/<int:user_id>",
    body=UserPatch,
    answer=UserOut,
    right=ADMIN,
    etag=True,
    lock=lambda session, user_id: user_store.lock_user(session, user_id),
)
def change_user(call: Call, user_id: int, body: UserPatch) -> UserOut:
    """Change a user other than that of the API token."""
    user, fields_set = users.get_user(call.session, user_id, actor=call.actor), body.model_fields_set
    _check_password(body)
    rights = _rights_by_group(body.rights)
    draft = UserDraft(
        username=user.username,
        password=body.password,
        role=ROLES[body.role],
        keeps_role="role" not in fields_set,
        disabled=body.disabled if "disabled" in fields_set else None,
        must_change=body.must_change_password,
        group_ids=tuple(rights),
        keeps_groups="rights" not in fields_set,
        rights=rights,
    )
    users.update_user(call.session, user_id, draft, actor=call.actor, now_ms=call.now_ms)
    if draft.password:
        call_at_commit(call.session, partial(forget_first_password, call.config, user.username))
    return get_user(call, user_id)


@resource.delete("/users/<int:user_id>", right=ADMIN)
def delete_user(call: Call, user_id: int) -> None:
    """Delete a user with rights, logins and API tokens."""
    users.remove_user(call.session, user_id, actor=call.actor, now_ms=call.now_ms)


def _check_password(body: UserPatch) -> None:
    """Raise InvalidInput for what would change no password, although it is given."""
    fields_set = body.model_fields_set
    if "password" in fields_set and not body.password.strip():
        raise InvalidInput("password", "is blank; leave it out to keep the present one")
    if "must_change_password" in fields_set and "password" not in fields_set:
        raise InvalidInput("must_change_password", "needs a new password beside it")


def _rights_by_group(rights: list[UserRights]) -> dict[int, frozenset[Right]]:
    rights_by_group = {
        group_rights.group_id: frozenset(map(Right, group_rights.rights)) for group_rights in rights
    }
    if len(rights_by_group) < len(rights):
        raise InvalidInput("rights", "an executor group is named more than once")
    return rights_by_group


def _answers(session: Session, rows: Sequence[User]) -> list[UserOut]:
    rights_by_user = users.granted_rights(session, rows)
    return [
        UserOut(
            id=user.id,
            username=user.username,
            role="admin" if user.is_admin else "normal",
            disabled=bool(user.disabled),
            rights=[
                UserRights(group_id=group_id, rights=[RIGHTS[right] for right in Right if right in rights])
                for group_id, rights in sorted(rights_by_user[user.id].items())
            ],
            by_provider=bool(user.identity),
            weak_password=user.weak_password != WeakPassword.NO,
        )
        for user in rows
    ]
