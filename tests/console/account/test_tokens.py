"""Pages of API tokens: created and shown once, listed, revoked; service tokens for administrators."""

import re
from collections.abc import Callable

from sqlalchemy import select
from werkzeug.test import TestResponse

from app.clock import DAY_MS, now_ms
from app.database.engine import read_scope
from app.models.api_token import ApiToken
from app.services.accounts import api_tokens
from tests.console.pages import submit, text_of, unnamed_path_after
from tests.support.console import ADMIN_PASSWORD, Console, add_group

FORM = {"name": "deploy", "rights": ["view", "operate"], "scope": "all", "expires": "30"}


def stored(name: str = "deploy") -> ApiToken:
    with read_scope() as session:
        return session.scalars(select(ApiToken).where(ApiToken.name == name)).one()


def focused_in(page: TestResponse) -> list[str]:
    """Return the ids of the fields that get the focus."""
    tags = re.findall(r"<[^>]* autofocus [^>]*>", page.text)
    return [found for tag in tags for found in re.findall(r' id="(\w+)"', tag)]


def test_a_token_is_shown_once_and_works(admin: Console) -> None:
    made = submit(admin, "/account/tokens/new", **FORM)
    assert made.status_code == 200
    shown = re.findall(r"xxl_[\w-]{43}", made.text)
    assert len(shown) == 1
    caller = api_tokens.authenticate(shown[0], address="10.0.0.1", now_ms=now_ms())
    assert caller.actor.username == "admin"
    assert "/xxl-job-admin/api/v1/me" in made.text
    row = stored()
    assert row.rights == "view,operate"
    assert abs(row.expires_ms - now_ms() - 30 * DAY_MS) < DAY_MS
    for path in ("/account/tokens", "/user/tokens", "/user/audit"):
        page = admin.get(path)
        assert shown[0] not in page.text
        assert "deploy" in page.text
    assert f"{shown[0][:8]}…" in admin.get("/account/tokens").text


def test_a_login_is_confirmed_once_before_a_token_is_created(console: Console) -> None:
    admin = console.log_in("admin", ADMIN_PASSWORD)
    refused = submit(admin, "/account/tokens/new", **FORM)
    assert refused.status_code == 400
    assert 'id="password-error"' in refused.text
    submit(admin, "/account/tokens/new", **FORM, password=ADMIN_PASSWORD)
    assert 'name="password"' not in admin.get("/account/tokens/new").text
    assert submit(admin, "/account/tokens/new", **{**FORM, "name": "second"}).status_code == 200


def test_errors_are_shown_at_their_fields(admin: Console) -> None:
    add_group()
    wrong = {"name": "", "rights": [], "scope": "chosen", "groups": "987", "expires": "30"}
    page = submit(admin, "/account/tokens/new", **wrong)
    assert page.status_code == 400
    for field in ("name", "rights", "groups"):
        assert f'id="{field}-error"' in page.text
    for changes, field in (({"groups": "x"}, "groups"), ({"scope": "all", "expires": "7"}, "expires")):
        page = submit(admin, "/account/tokens/new", **{**wrong, **changes})
        assert f'id="{field}-error"' in page.text


def test_a_missing_password_is_shown_with_the_other_errors(console: Console) -> None:
    admin = console.log_in("admin", ADMIN_PASSWORD)
    page = submit(admin, "/account/tokens/new", **{**FORM, "name": ""})
    assert page.status_code == 400
    assert "2 fields are wrong" in text_of(page)
    assert focused_in(page) == ["name"]


def test_a_missing_password_gets_the_focus(console: Console) -> None:
    admin = console.log_in("admin", ADMIN_PASSWORD)
    assert focused_in(submit(admin, "/account/tokens/new", **FORM)) == ["password"]


def test_a_normal_user_limits_a_token_to_own_groups(normal_user: Callable[..., Console]) -> None:
    own, foreign = add_group(), add_group("other-app", "Other")
    norman = normal_user(own)
    assert "Administration" not in norman.get("/account/tokens/new").text
    limited = {**FORM, "scope": "chosen", "groups": str(foreign)}
    assert submit(norman, "/account/tokens/new", **limited).status_code == 400
    assert submit(norman, "/account/tokens/new", **{**limited, "groups": str(own)}).status_code == 200
    assert stored().group_ids == str(own)
    assert (
        submit(norman, "/account/tokens/new", **{**FORM, "name": "all", "rights": "admin"}).status_code == 400
    )
    assert submit(norman, "/user/tokens/new", **FORM).status_code == 403


def test_a_token_is_revoked(admin: Console) -> None:
    submit(admin, "/account/tokens/new", **FORM)
    path = f"/account/tokens/{stored().id}/revoke"
    assert "deploy" in text_of(admin.get(path))
    assert unnamed_path_after(submit(admin, path)) == "/account/tokens?done=revoked"
    assert "deploy" not in admin.get("/account/tokens").text
    assert admin.get(path).status_code == 404
    history = text_of(admin.get("/user/audit?action=token."))
    assert "revoked API token deploy" in history
    assert "created API token deploy" in history


def test_an_administrator_creates_service_tokens_and_revokes_those_of_others(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    norman = normal_user(add_group())
    submit(norman, "/account/tokens/new", **FORM)
    submit(admin, "/user/tokens/new", **{**FORM, "name": "ci"})
    assert stored("ci").user_id == 0
    listed = text_of(admin.get("/user/tokens"))
    assert "norman" in listed
    assert "Service" in listed
    path = f"/user/tokens/{stored().id}/revoke"
    assert norman.get(path).status_code == 403
    assert norman.get(f"/account/tokens/{stored('ci').id}/revoke").status_code == 404
    assert unnamed_path_after(submit(admin, path)) == "/user/tokens?done=revoked"
    assert "deploy" not in norman.get("/account/tokens").text
