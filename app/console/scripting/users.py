"""The original's JSON endpoints of users. docs/reference/console.md, section 13."""

from dataclasses import replace

from flask import Blueprint, Response

from app.clock import now_ms
from app.console.scripting.rows import user_row
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.console.web.envelope import bean_int, envelope, int_parameter, page_range, table, text_or_empty
from app.database.flask_db import read_scope, session_scope
from app.domain.text.texts import N_
from app.errors import InvalidInput, NotFound
from app.services.accounts import own_password, users
from app.services.accounts.users import UserDraft
from app.settings.home import forget_first_password
from app.store.accounts.users import UserFilter

blueprint = Blueprint("scripting_users", __name__)
POLICY = {
    "update_password": Access.FIRST,
    "page_list": Access.ADMIN,
    "add": Access.ADMIN,
    "update": Access.ADMIN,
    "remove": Access.ADMIN,
}


@blueprint.route("/user/pageList", methods=["GET", "POST"])
def page_list() -> Response:
    """List users."""
    username, role = text_or_empty("username"), int_parameter("role")
    start, length = page_range()
    with read_scope() as session:
        page = users.list_users(
            session, UserFilter(username, role), actor=current_actor(), start=start, length=length
        )
        return table(page, [user_row(user) for user in page.rows])


@blueprint.post("/user/add")
def add() -> Response:
    """Add a user."""
    draft = _draft()
    with session_scope() as session:
        users.add_user(session, draft, actor=current_actor(), now_ms=now_ms())
    return envelope()


@blueprint.post("/user/update")
def update() -> Response:
    """Update a user; fields unknown to the original stay unchanged. An unknown id is accepted."""
    user_id, draft, actor = bean_int("id"), _draft(), current_actor()
    try:
        with read_scope() as session:
            draft = replace(
                draft, disabled=None, username=users.get_user(session, user_id, actor=actor).username
            )
        with session_scope() as session:
            users.update_user(session, user_id, draft, actor=actor, now_ms=now_ms())
        if draft.password:
            forget_first_password(settings(), draft.username)
    except NotFound:
        pass
    return envelope()


@blueprint.post("/user/remove")
def remove() -> Response:
    """Delete a user. An unknown id is accepted."""
    user_id = int_parameter("id")
    try:
        with session_scope() as session:
            users.remove_user(session, user_id, actor=current_actor(), now_ms=now_ms())
    except NotFound:
        pass
    return envelope()


@blueprint.post("/user/updatePwd")
def update_password() -> Response:
    """Change the user's own password; the old one is required, as since 2.4.2."""
    actor = current_actor()
    own_password.change_password(
        text_or_empty("oldPassword"), text_or_empty("password"), actor=actor, now_ms=now_ms()
    )
    forget_first_password(settings(), actor.username)
    return envelope()


def _draft() -> UserDraft:
    return UserDraft(
        username=text_or_empty("username"),
        password=text_or_empty("password"),
        role=bean_int("role"),
        group_ids=_group_ids(text_or_empty("permission")),
    )


def _group_ids(text: str) -> tuple[int, ...]:
    pieces = [piece.strip() for piece in text.split(",") if piece.strip()]
    if not all(piece.isascii() and piece.isdigit() and len(piece) < 10 for piece in pieces):
        raise InvalidInput("permission", N_("Executor groups must be ids separated by commas"))
    return tuple(int(piece) for piece in pieces)
