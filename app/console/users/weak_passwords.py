"""End of the grace in which scripts still log in with a common password; for one user or all."""

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.ui.filters import comma_list
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.notices import done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _, ngettext
from app.database.flask_db import read_scope, session_scope
from app.models.user import User
from app.services.accounts import users, weak_passwords

blueprint = Blueprint("weak_passwords", __name__, url_prefix="/user")
POLICY = {
    "end": Access.ADMIN,
    "end_all": Access.ADMIN,
}
#: users named in the confirmation
NAMED_MAX = 10


@blueprint.route("/<int(max=2147483647):user_id>/weak-password/end", methods=["GET", "POST"])
def end(user_id: int) -> ResponseReturnValue:
    """Refuse the common password of one user to scripts."""
    with read_scope() as session:
        user = users.get_user(session, user_id, actor=current_actor())
    return _end([user])


@blueprint.route("/weak-passwords/end", methods=["GET", "POST"])
def end_all() -> ResponseReturnValue:
    """Refuse the common passwords of all users to scripts."""
    with read_scope() as session:
        user_list = weak_passwords.users_with_grace(session, actor=current_actor())
    return _end(user_list)


def _end(user_list: list[User]) -> ResponseReturnValue:
    if request.method == "POST":
        with session_scope() as session:
            weak_passwords.end_grace(
                session, [user.id for user in user_list], actor=current_actor(), now_ms=now_ms()
            )
        return done("grace_ended", url_for("users.index"))
    names = comma_list(user.username for user in user_list[:NAMED_MAX])
    subject = ngettext("%(num)d user: %(names)s", "%(num)d users: %(names)s", len(user_list), names=names)
    consequences = [
        _("Scripts can no longer log in with the common password, and their present logins are refused."),
        _("In a browser the user still logs in, only to choose another password."),
    ]
    question = Question(
        _("Reject the common password from scripts?"),
        subject + (" …" if len(user_list) > NAMED_MAX else ""),
        consequences,
        _("Refuse"),
        kind="warning",
        glyph="key-fill",
    )
    return confirm_page(question, back=way_back("users.index"))
