"""User pages: users, their rights and logins, and the change history. Administrators only."""

import re
from dataclasses import replace
from functools import partial

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from wtforms import BooleanField, HiddenField, PasswordField, RadioField, StringField

from app.clock import now_ms
from app.console.account import sessions
from app.console.ui.audit.entries import entry_rows
from app.console.ui.audit.words import OBJECTS
from app.console.ui.filters import reader_zone
from app.console.ui.forms import stale
from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.labels import RANGES, RIGHTS, choices
from app.console.ui.lists.days import day_heads
from app.console.ui.lists.listing import address_with, chips, fetch_requested, whole_number
from app.console.ui.lists.sorting import AUDIT, USERS, Sorting, requested_order
from app.console.ui.notices import Subject, done, way_back
from app.console.users.audit_filter import requested_entries
from app.console.users.list_search import read_entry_search, read_user_search
from app.console.web.access import Access
from app.console.web.current import current_actor, current_user, settings
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.database.flask_db import read_scope, session_scope
from app.domain.access.permissions import Right, parse_rights
from app.domain.enums import Role
from app.domain.text.fingerprints import fingerprint
from app.errors import ChangedMeanwhile, InvalidInput
from app.models.user import User
from app.services.accounts import login_list, users, weak_passwords
from app.services.accounts.users import UserDraft
from app.services.auditing import audit as trail
from app.services.executors import groups
from app.settings.home import forget_first_password
from app.store.accounts.audit import COUNT_MAX, SEARCHED_MAX
from app.store.accounts.users import UserFilter


class UserForm(ConsoleForm):
    """Add or edit a user; rights are check boxes ``right=<group>:<right>``."""

    loaded = HiddenField()
    username = StringField(_l("User name"))
    password = PasswordField(_l("Password"))
    role = RadioField(_l("Role"), validate_choice=False, default="0")
    disabled = BooleanField(_l("Disabled"))
    #: checked rights
    rights: frozenset[str] = frozenset()

    def offer(self) -> None:
        """Fill the choices."""
        self.role.choices = [
            (str(int(Role.NORMAL)), str(_l("Normal user"))),
            (str(int(Role.ADMIN)), str(_l("Administrator"))),
        ]


blueprint = Blueprint("users", __name__)
POLICY = {
    "index": Access.ADMIN,
    "add": Access.ADMIN,
    "edit": Access.ADMIN,
    "remove": Access.ADMIN,
    "list_logins": Access.ADMIN,
    "end_login": Access.ADMIN,
    "end_logins": Access.ADMIN,
    "audit": Access.ADMIN,
}


@blueprint.get("/user")
def index() -> ResponseReturnValue:
    """List the users; a search text becomes parameters."""
    search = read_user_search(request.args.get("q", ""))
    if search.parameters and not search.hints:
        return redirect(address_with(page=None, q=None, **search.parameters))
    user_filter = UserFilter(
        username=request.args.get("username", "").strip(),
        role=whole_number("role", -1),
        order=requested_order(USERS),
        weak_only=request.args.get("weak") == "1",
    )
    actor = current_actor()
    with read_scope() as session:
        page, paging = fetch_requested(partial(users.list_users, session, user_filter, actor=actor))
        titles = {group.id: group.title for group in groups.visible_groups(session, actor)}
        with_grace = weak_passwords.users_with_grace(session, actor=actor)
    role = {0: _("Normal user"), 1: _("Administrator")}.get(user_filter.role, "")
    weak = _("Weak") if user_filter.weak_only else ""
    active = chips(
        [
            ("role", _("Role"), role),
            ("username", _("User name"), user_filter.username),
            ("weak", _("Password"), weak),
        ]
    )
    return render_template(
        "users/index.html",
        rows=page.rows,
        filter=user_filter,
        with_grace=len(with_grace),
        active=active,
        search=search,
        paging=paging,
        sorting=Sorting(USERS, user_filter.order),
        titles=lambda user: [titles[group_id] for group_id in user.group_ids if group_id in titles],
    )


@blueprint.route("/user/new", methods=["GET", "POST"])
def add() -> ResponseReturnValue:
    """Add a user."""
    form = UserForm(request.form)
    form.rights = frozenset(request.form.getlist("right"))
    if request.method == "POST":
        try:
            with session_scope() as session:
                user_id = users.add_user(
                    session, _draft(form, form.username.data or ""), actor=current_actor(), now_ms=now_ms()
                )
            return done(
                "added", url_for("users.index"), of=Subject("user", user_id, form.username.data or "")
            )
        except InvalidInput as exc:
            form.refuse(exc)
            form.ask_again()
    return _edit_page(form, None)


@blueprint.route("/user/<int(max=2147483647):user_id>/edit", methods=["GET", "POST"])
def edit(user_id: int) -> ResponseReturnValue:
    """Change a user."""
    user = _user(user_id)
    form = UserForm(request.form, username=user.username, role=str(user.role), disabled=bool(user.disabled))
    form.rights = frozenset(request.form.getlist("right")) if request.method == "POST" else _rights_of(user)
    if request.method == "POST":
        try:
            with session_scope() as session:
                draft = replace(_draft(form, user.username), loaded=stale.form_fingerprint())
                users.update_user(session, user_id, draft, actor=current_actor(), now_ms=now_ms())
            if draft.password:
                forget_first_password(settings(), user.username)
            return done("saved", url_for("users.index"), of=Subject("user", user_id, user.username))
        except InvalidInput as exc:
            form.refuse(exc)
            form.ask_again()
        except ChangedMeanwhile as exc:
            stale.refuse(form, exc, None, url_for("users.edit", user_id=user_id))
    else:
        with read_scope() as session:
            form.loaded.data = fingerprint(users.state_of(session, user))
    return _edit_page(form, user)


@blueprint.route("/user/<int(max=2147483647):user_id>/delete", methods=["GET", "POST"])
def remove(user_id: int) -> ResponseReturnValue:
    """Delete a user."""
    user = _user(user_id)
    if request.method == "POST":
        with session_scope() as session:
            users.remove_user(session, user_id, actor=current_actor(), now_ms=now_ms())
        return done("removed", url_for("users.index"), of=Subject("user", user_id, user.username))
    consequences = [_("The logins of the user end at once. Jobs stay as they are.")]
    question = Question(
        _("Delete the user?"), user.username, consequences, _("Delete"), kind="danger", glyph="trash"
    )
    return confirm_page(question, back=way_back("users.index"))


@blueprint.get("/user/<int(max=2147483647):user_id>/logins")
def list_logins(user_id: int) -> ResponseReturnValue:
    """List the logins of a user."""
    user, own_id = _user(user_id), _own_login(user_id)
    with read_scope() as session:
        page = login_list.list_logins(session, user_id, actor=current_actor(), now_ms=now_ms())
    return render_template("users/logins.html", user=user, page=page, own_id=own_id, is_own=bool(own_id))


@blueprint.route(
    "/user/<int(max=2147483647):user_id>/logins/<int(max=9223372036854775807):login_id>/end",
    methods=["GET", "POST"],
)
def end_login(user_id: int, login_id: int) -> ResponseReturnValue:
    """End one login of a user."""
    back = url_for("users.list_logins", user_id=user_id)
    if request.method == "POST":
        with session_scope() as session:
            login_list.end_login(session, user_id, login_id, actor=current_actor(), now_ms=now_ms())
        return done("ended", back)
    with read_scope() as session:
        row = login_list.get_login(session, user_id, login_id, actor=current_actor(), now_ms=now_ms())
    return confirm_page(sessions.confirm_end_one(row), back=back)


@blueprint.route("/user/<int(max=2147483647):user_id>/logins/end", methods=["GET", "POST"])
def end_logins(user_id: int) -> ResponseReturnValue:
    """End all logins of a user; for the current user all but this one."""
    user, own_id, back = _user(user_id), _own_login(user_id), url_for("users.list_logins", user_id=user_id)
    if request.method == "POST":
        with session_scope() as session:
            login_list.end_logins(session, user_id, keep_id=own_id, actor=current_actor(), now_ms=now_ms())
        return done("ended", back)
    with read_scope() as session:
        count = login_list.list_logins(session, user_id, actor=current_actor(), now_ms=now_ms()).total
    question = (
        sessions.confirm_end_others(user.username, max(0, count - 1))
        if own_id
        else sessions.confirm_end_all(user.username, count)
    )
    return confirm_page(question, back=back)


@blueprint.get("/user/audit")
def audit() -> ResponseReturnValue:
    """Show the change history; a search text becomes parameters."""
    search = read_entry_search(request.args.get("q", ""))
    if search.parameters and not search.hints:
        return redirect(address_with(page=None, until=None, q=None, **search.parameters))
    entries_filter, actor = requested_entries(), current_actor()
    audit_filter = entries_filter.filter
    with read_scope() as session:
        page, paging = fetch_requested(partial(trail.list_entries, session, audit_filter, actor=actor))
        rows = entry_rows(session, page.rows, actor=actor)
    instants = [(entry.id, entry.at_ms) for entry in page.rows]
    values = {"paging": paging, "sorting": Sorting(AUDIT, audit_filter.order)}
    values |= {
        "objects": choices(OBJECTS),
        "ranges": choices(RANGES),
        "filter": audit_filter,
        "requested": entries_filter,
        "search": search,
        "day_heads": day_heads(instants, reader_zone(), now_ms=now_ms(), today_alone=True),
    }
    not_searched = SEARCHED_MAX if page.is_capped and page.total < COUNT_MAX else 0
    return render_template("users/audit.html", rows=rows, not_searched=not_searched, **values)


def _own_login(user_id: int) -> int:
    """Return the id of the current login if it belongs to this user, otherwise 0."""
    visitor = current_user()
    return visitor.visitor.session_id if visitor is not None and visitor.actor.user_id == user_id else 0


def _user(user_id: int) -> User:
    with read_scope() as session:
        return users.get_user(session, user_id, actor=current_actor())


def _draft(form: UserForm, username: str) -> UserDraft:
    """Return the draft in the form; any checked right makes the group visible."""
    names_by_group: dict[int, set[str]] = {}
    for box in form.rights:
        group, colon, right = box.partition(":")
        if colon and re.fullmatch(r"[0-9]{1,9}", group):
            names_by_group.setdefault(int(group), set()).add(right)
    rights = {group_id: parse_rights(",".join(names)) for group_id, names in names_by_group.items()}
    role = form.role.data or ""
    return UserDraft(
        username=username,
        password=form.password.data or "",
        role=int(role) if role.isdecimal() else -1,
        group_ids=tuple(sorted(rights)),
        rights=rights,
        disabled=bool(form.disabled.data),
    )


def _rights_of(user: User) -> frozenset[str]:
    """Return a user's rights as the form's check boxes; a group without detailed rights has all."""
    with read_scope() as session:
        rights_by_group = users.stored_rights(session, user.id, actor=current_actor())
    all_rights = ",".join(Right)
    return frozenset(
        f"{group_id}:{right}"
        for group_id in user.group_ids
        for right in parse_rights(rights_by_group.get(group_id, all_rights))
    )


def _edit_page(form: UserForm, user: User | None) -> ResponseReturnValue:
    form.offer()
    with read_scope() as session:
        visible = groups.visible_groups(session, current_actor())
    page = render_template(
        "users/edit.html",
        form=form,
        user=user,
        managed=bool(settings().oidc.admin_values or settings().oidc.rights),
        groups=visible,
        right_names=choices(RIGHTS),
        heading=_("Edit the user") if user is not None else _("Add a user"),
        action=url_for("users.edit", user_id=user.id) if user is not None else url_for("users.add"),
        cancel=url_for("users.index"),
    )
    return page, 400 if form.errors else 200
