"""Connect an executor: a program to copy with the reader's own values, and whether it has registered.

For every user. Administrators also see the access token, on request, and refused attempts to register.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.executors.forms import AppNameForm, TokenForm
from app.console.executors.snippets import HANDLER, LANGUAGES, Target
from app.console.web.access import Access
from app.console.web.confirmation import confirmation_kind, refusal_status
from app.console.web.current import console_url, current_actor, settings
from app.database.flask_db import read_scope, session_scope
from app.domain.access.permissions import Right
from app.errors import InvalidInput
from app.models.group import Group
from app.models.registry import Registration
from app.services.executors import connecting, groups
from app.services.executors.connecting import Attempt
from app.services.executors.groups import APP_NAME_MAX, GroupDraft
from app.settings.home import TOKEN_FILE, access_tokens
from app.store.executors.registry import alive_since
from app.store.pickers import overview

blueprint = Blueprint("connect", __name__, url_prefix="/connect")
POLICY = {
    "show": Access.LOGIN,
    "show_token": Access.ADMIN,
    "add_group": Access.ADMIN,
}

#: AppName suggested for a first executor
FIRST_APP_NAME = "my-app"
#: groups in the select box
OFFERED_MAX = 100
CLIENT_FOLDER = Path(__file__).resolve().parents[3] / "executor_client"


class Selection(NamedTuple):
    """AppName and language in the URL."""

    app_name: str
    language: str


@dataclass(frozen=True, slots=True)
class AppState:
    """Groups, registrations and refused attempts of the selected AppName."""

    groups: list[Group]
    group: Group | None
    registrations: list[Registration]
    attempts: list[Attempt]


@blueprint.get("")
def show() -> ResponseReturnValue:
    """Show the program for ``?appname=`` in ``?language=``, and whether it is connected."""
    return _page()


@blueprint.post("")
def show_token() -> ResponseReturnValue:
    """Show the same page with the access token, once the login is confirmed."""
    form = TokenForm(request.form)
    if status := refusal_status(form.password):
        return _page(token_form=form), status
    with read_scope() as session:
        group = _group_of(groups.visible_groups(session, current_actor()), _selection().app_name)
    with session_scope() as session:
        token = connecting.reveal_token(
            session, group, global_token=access_tokens(settings())[0], actor=current_actor(), now_ms=now_ms()
        )
    return _page(token=token)


@blueprint.post("/group")
def add_group() -> ResponseReturnValue:
    """Add a group by its AppName and return to the page."""
    form = AppNameForm(request.form)
    name = (form.app_name.data or "").strip()
    try:
        with session_scope() as session:
            groups.add_group(
                session, GroupDraft(app_name=name, title=name), actor=current_actor(), now_ms=now_ms()
            )
    except InvalidInput as exc:
        form.refuse(exc)
        return _page(name_form=form), 400
    return redirect(url_for("connect.show", appname=name, language=_selection().language), 303)


def _selection() -> Selection:
    app_name = request.args.get("appname", "").strip()
    is_usable = 0 < len(app_name) <= APP_NAME_MAX and app_name.isprintable()
    language = request.args.get("language", "")
    return Selection(
        app_name if is_usable else FIRST_APP_NAME, language if language in LANGUAGES else "python"
    )


def _page(
    *, token: str = "", token_form: TokenForm | None = None, name_form: AppNameForm | None = None
) -> str:
    selection, actor = _selection(), current_actor()
    app_state = _app_state(selection.app_name)
    target = replace(_target(selection.app_name, app_state.group), token=token)
    return render_template(
        "executors/connect.html",
        selection=selection,
        app_state=app_state,
        target=target,
        languages={key: title for key, (title, _make) in LANGUAGES.items()},
        blocks=LANGUAGES[selection.language][1](target),
        handler=HANDLER,
        confirmation=confirmation_kind(),
        token_form=token_form or TokenForm(),
        name_form=name_form or AppNameForm(data={"app_name": selection.app_name}),
        may_edit=app_state.group is not None and actor.may(app_state.group.id, Right.EDIT),
    )


def _app_state(app_name: str) -> AppState:
    actor, at_ms = current_actor(), now_ms()
    with read_scope() as session:
        visible = groups.visible_groups(session, actor)
        group = _group_of(visible, app_name)
        registrations, attempts = [], []
        if group is not None or actor.is_admin:
            since_ms = alive_since(at_ms)
            rows = overview.find_registrations(session, [app_name])
            registrations = [row for row in rows if (row.update_time or 0) >= since_ms]
        if actor.is_admin:
            attempts = list(connecting.find_refused(session, app_name, actor=actor, now_ms=at_ms))
    hosts = {urlsplit(row.registry_value).hostname for row in registrations}
    return AppState(
        groups=visible[:OFFERED_MAX],
        group=group,
        registrations=registrations,
        attempts=[row for row in attempts if row.is_of_connected or row.address not in hosts],
    )


def _group_of(visible: list[Group], app_name: str) -> Group | None:
    return next((group for group in visible if group.app_name == app_name), None)


def _target(app_name: str, group: Group | None) -> Target:
    """Return the settings of an executor; with paths for administrators of a console on loopback.

    All that reach such a console are on its host.
    """
    target, config = Target(console_url(), app_name), settings()
    if not (config.on_loopback and not config.public_url and current_actor().is_admin):
        return target
    has_file = not config.access_tokens and not (group is not None and group.access_token)
    if (CLIENT_FOLDER / "pyproject.toml").is_file():  # not of a wheel
        target = replace(target, client=str(CLIENT_FOLDER))
    return replace(
        target,
        token_file=str((config.home / TOKEN_FILE).resolve()) if has_file else "",
    )
