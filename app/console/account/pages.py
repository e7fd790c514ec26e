"""Account page: the user's password, language, time zone, logins and display preferences."""

from flask import Blueprint, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.account import sessions
from app.console.account.forms import PasswordForm, SettingsForm
from app.console.account.sign_on import provider_logout_url
from app.console.account.start_page import start_address, start_choices
from app.console.ui.forms.confirm import confirm_page
from app.console.ui.notices import done, way_back
from app.console.ui.preferences import (
    GROUP_COOKIE,
    GROUPINGS,
    LANGUAGES,
    ROWS,
    ROWS_COOKIE,
    SIDEBAR_COOKIE,
    SIDEBARS,
    SYSTEM_THEME,
    THEME_COOKIE,
    THEMES,
    WEEK_S,
    YEAR_S,
    keep,
    keep_columns,
    zone_names,
)
from app.console.ui.saved_views import TITLES, view_href
from app.console.web.access import Access
from app.console.web.current import (
    LoggedIn,
    context_path,
    current_actor,
    current_user,
    delete_cookie,
    set_cookie,
    settings,
)
from app.console.web.language import _
from app.console.web.languages import LANGUAGE_COOKIE
from app.database.flask_db import read_scope, session_scope
from app.domain.lists.filters import ListName
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.accounts import login, login_list, own_password, saved_views, users
from app.settings.home import forget_first_password

blueprint = Blueprint("account", __name__)
POLICY = {
    "show": Access.FIRST,
    "change_password": Access.FIRST,
    "preferences": Access.PUBLIC,
    "log_out": Access.FIRST,
    "change_settings": Access.LOGIN,
    "end_login": Access.LOGIN,
    "end_other_logins": Access.LOGIN,
}

#: preferences kept in a cookie: parameter -> (cookie, allowed values, seconds)
PREFERENCES = {
    "theme": (THEME_COOKIE, (*THEMES, SYSTEM_THEME), YEAR_S),
    "sidebar": (SIDEBAR_COOKIE, SIDEBARS, WEEK_S),
    "rows": (ROWS_COOKIE, ROWS, YEAR_S),
    "group": (GROUP_COOKIE, GROUPINGS, YEAR_S),
    "language": (LANGUAGE_COOKIE, tuple(LANGUAGES), YEAR_S),
}


@blueprint.get("/account")
def show() -> ResponseReturnValue:
    """Show the account; with an initial password only the form to change it."""
    return _page()


@blueprint.post("/account/password")
def change_password() -> ResponseReturnValue:
    """Change the user's own password; ends every login of the account but this one."""
    form = PasswordForm(request.form)
    user = _user()
    old, new = form.old_password.data or "", form.new_password.data or ""
    try:
        cookie = own_password.change_in_login(
            old, new, second_entry=form.repeated.data or "", visitor=user.visitor, now_ms=now_ms()
        )
    except InvalidInput as exc:
        form.refuse(exc)
        return _page(password_form=form), 400
    forget_first_password(settings(), user.actor.username)
    response = done(
        "password", start_address(user.actor) if user.must_change_password else url_for("account.show")
    )
    set_cookie(response, cookie.token, max_age_s=cookie.max_age_s)
    return response


@blueprint.post("/account/settings")
def change_settings() -> ResponseReturnValue:
    """Save the user's language and time zone."""
    form = SettingsForm(request.form)
    language, zone = form.language.data or "", form.time_zone.data or ""
    try:
        if language not in {"", *LANGUAGES} or zone not in {"", *zone_names()}:
            raise InvalidInput("time_zone", N_("Choose one of the listed values"))
        with session_scope() as session:
            users.change_preferences(session, language=language, time_zone=zone, actor=current_actor())
    except InvalidInput as exc:
        form.refuse(exc)
        return _page(settings_form=form), 400
    return done("saved", url_for("account.show"))


@blueprint.post("/preferences")
def preferences() -> ResponseReturnValue:
    """Save display preferences, with or without a login.

    These are language, dark mode, width of the sidebar, and rows and columns of lists.
    """
    response = make_response(
        redirect(way_back("auth.login_page" if current_user() is None else "dashboard.index"), 303)
    )
    for parameter, (cookie, values, seconds) in PREFERENCES.items():
        if (value := request.form.get(parameter)) in values:
            keep(response, cookie, value, max_age_s=seconds)
    keep_columns(response, request.form.get("table", ""), request.form.getlist("column"))
    user = current_user()
    language = request.form.get("language", "")
    if user is not None and language in LANGUAGES:
        with session_scope() as session:
            users.change_preferences(session, language=language, time_zone=user.time_zone, actor=user.actor)
    return response


@blueprint.post("/account/logout")
def log_out() -> ResponseReturnValue:
    """End this login; one by the OpenID provider leads on to the end of the provider's session."""
    visitor = _user().visitor
    with session_scope() as session:
        login.close_session(session, visitor, now_ms=now_ms())
    onward = provider_logout_url() if visitor.sign_on else ""
    # A page, because the policy form-action 'self' applies to redirects after a form, too.
    response = (
        make_response(render_template("account/logged_out.html", onward=onward))
        if onward
        else done("out", url_for("auth.login_page"))
    )
    delete_cookie(response)
    return response


@blueprint.route("/account/logins/<int(max=9223372036854775807):login_id>/end", methods=["GET", "POST"])
def end_login(login_id: int) -> ResponseReturnValue:
    """End another login of the user."""
    user, at_ms = _user(), now_ms()
    if request.method == "POST":
        with session_scope() as session:
            login_list.end_login(session, user.actor.user_id, login_id, actor=user.actor, now_ms=at_ms)
        return done("ended", url_for("account.show"))
    with read_scope() as session:
        row = login_list.get_login(session, user.actor.user_id, login_id, actor=user.actor, now_ms=at_ms)
    return confirm_page(sessions.confirm_end_one(row), back=url_for("account.show"))


@blueprint.route("/account/logins/end", methods=["GET", "POST"])
def end_other_logins() -> ResponseReturnValue:
    """End all logins of the user except this one."""
    user, at_ms = _user(), now_ms()
    if request.method == "POST":
        with session_scope() as session:
            login_list.end_logins(
                session, user.actor.user_id, keep_id=user.visitor.session_id, actor=user.actor, now_ms=at_ms
            )
        return done("ended", url_for("account.show"))
    with read_scope() as session:
        live = login_list.list_logins(session, user.actor.user_id, actor=user.actor, now_ms=at_ms)
    return confirm_page(
        sessions.confirm_end_others(user.username, max(0, live.total - 1)), back=url_for("account.show")
    )


def _user() -> LoggedIn:
    user = current_user()
    assert user is not None, "the gate requires a login"
    return user


def _page(*, password_form: PasswordForm | None = None, settings_form: SettingsForm | None = None) -> str:
    user = _user()
    form = settings_form or SettingsForm(language=user.language, time_zone=user.time_zone)
    form.language.choices = [
        ("", _("As in the browser")),
        *((code, name) for code, (name, _tag) in LANGUAGES.items()),
    ]
    default_text = _("As configured (%(zone)s)", zone=settings().time_zone)
    form.time_zone.choices = [("", default_text), *((name, name) for name in zone_names())]
    with read_scope() as session:
        live = login_list.list_logins(session, user.actor.user_id, actor=user.actor, now_ms=now_ms())
        views, start = (
            saved_views.list_views(session, user.actor),
            saved_views.start_page(session, user.actor.user_id),
        )
    return render_template(
        "account/show.html",
        logins=live,
        own_id=user.visitor.session_id,
        password_form=password_form or PasswordForm(),
        settings_form=form,
        views=[(view, TITLES[ListName(view.list_name)], view_href(view)) for view in views],
        start_choices=start_choices(views),
        start=start,
        must_change=user.must_change_password,
        is_initial=user.visitor.must_change,
        needs_old=own_password.needs_old_password(user.visitor, now_ms=now_ms()),
        by_provider=user.visitor.sign_on,
        home=context_path(),
    )
