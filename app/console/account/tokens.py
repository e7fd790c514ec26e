"""API tokens of the user: list, create, revoke; and the parts of the pages for the tokens of all users."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import Millis, now_ms
from app.console.account.forms import ApiTokenForm
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.forms.picked_ids import picked_ids
from app.console.ui.labels import RIGHTS
from app.console.ui.notices import done
from app.console.web.access import Access
from app.console.web.confirmation import confirmation_kind, refusal_status
from app.console.web.current import console_url, current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope, session_scope
from app.domain.access.api_tokens import parse_grant
from app.domain.access.permissions import Actor, Right
from app.errors import InvalidInput
from app.models.api_token import ApiToken
from app.services.accounts import api_tokens
from app.services.executors import groups
from app.services.jobs.choices import Choice

blueprint = Blueprint("api_tokens", __name__, url_prefix="/account/tokens")
POLICY = {
    "index": Access.LOGIN,
    "add": Access.LOGIN,
    "revoke": Access.LOGIN,
}


@dataclass(frozen=True, slots=True)
class TokenRow:
    """Row of a list of tokens; empty ``groups``: all."""

    token: ApiToken
    rights: list[str]
    groups: list[str]
    is_expired: bool


@blueprint.get("")
def index() -> ResponseReturnValue:
    """List the user's tokens."""
    actor, at_ms = current_actor(), now_ms()
    with read_scope() as session:
        rows = token_rows(session, api_tokens.list_own(session, actor=actor), actor=actor, now_ms=at_ms)
    return render_template("account/tokens.html", rows=rows)


@blueprint.route("/new", methods=["GET", "POST"])
def add() -> ResponseReturnValue:
    """Create a token of the user and show it once."""
    return creation_page(service=False, back=url_for("api_tokens.index"))


@blueprint.route("/<int(max=2147483647):token_id>/revoke", methods=["GET", "POST"])
def revoke(token_id: int) -> ResponseReturnValue:
    """Revoke a token of the user."""
    return revocation_page(token_id, back=url_for("api_tokens.index"))


def token_rows(
    session: Session, tokens: Sequence[ApiToken], *, actor: Actor, now_ms: Millis
) -> list[TokenRow]:
    """Return tokens as the lists show them."""
    titles = {group.id: group.title for group in groups.visible_groups(session, actor)}
    rows = []
    for token in tokens:
        grant = parse_grant(token.rights, token.group_ids)
        rights = (
            [_("Administration")]
            if grant.admin
            else [str(RIGHTS[right]) for right in Right if right in grant.rights]
        )
        ids = sorted(grant.group_ids) if grant.group_ids is not None else None
        names = [] if ids is None else [titles.get(own_id, str(own_id)) for own_id in ids] or [_("none")]
        rows.append(TokenRow(token, rights, names, 0 < token.expires_ms <= now_ms))
    return rows


def creation_page(*, service: bool, back: str) -> ResponseReturnValue:
    """Answer the form of a new token; ``back`` is the list it belongs to."""
    form, status, at_ms = ApiTokenForm(request.form), 200, now_ms()
    if request.method == "POST":
        status, token = _create(form, service=service, now_ms=at_ms)
        if token:
            return render_template(
                "account/token_created.html",
                name=form.name.data,
                token=token,
                url=console_url(),
                back=back,
            )
    elif not form.rights.data:
        form.rights.data = [Right.VIEW]
    form.offer(is_admin=current_actor().is_admin, now_ms=at_ms)
    page = render_template(
        "account/token.html",
        form=form,
        service=service,
        picked=_group_choices(form),
        confirmation=confirmation_kind(),
        back=back,
    )
    return page, status


def revocation_page(token_id: int, *, back: str) -> ResponseReturnValue:
    """Confirm and revoke a token; ``back`` is the list it belongs to."""
    if request.method == "POST":
        with session_scope() as session:
            api_tokens.revoke_token(session, token_id, actor=current_actor(), now_ms=now_ms())
        return done("revoked", back)
    with read_scope() as session:
        row = api_tokens.get_token(session, token_id, actor=current_actor())
    consequences = [_("Programs that use this token are refused from now on. This cannot be undone.")]
    question = Question(
        _("Revoke the API token?"),
        f"{row.name} · {row.hint}…",
        consequences,
        _("Revoke"),
        kind="danger",
        glyph="x-octagon",
    )
    return confirm_page(question, back=back)


def _create(form: ApiTokenForm, *, service: bool, now_ms: Millis) -> tuple[int, str]:
    """Create the token, or show all errors in the form; return the status of the page and the token."""
    status, actor = refusal_status(form.password), current_actor()
    try:
        draft = form.draft(service=service, now_ms=now_ms)
        with session_scope() as session:
            if status:
                api_tokens.check_draft(session, draft, actor=actor, now_ms=now_ms)
                return status, ""
            return 200, api_tokens.create_token(session, draft, actor=actor, now_ms=now_ms).token
    except InvalidInput as exc:
        form.refuse(exc)
        return status or 400, ""


def _group_choices(form: ApiTokenForm) -> list[Choice]:
    ids = picked_ids(form.groups.data)
    if not ids:
        return []
    with read_scope() as session:
        titles = {group.id: group.title for group in groups.visible_groups(session, current_actor())}
    return [Choice(str(group_id), titles.get(group_id, str(group_id))) for group_id in ids]
