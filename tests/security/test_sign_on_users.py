# ruff: noqa: F401, F811 - fixtures
"""Users of the sign-on: names are never taken over, rights follow the claims, local users stay local."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select, update

from app.clock import now_ms
from app.commands.flask_app import create_command_app
from app.console.account import sign_on as view
from app.console.web.current import COOKIE as LOGIN_COOKIE
from app.database.engine import read_scope, session_scope
from app.domain.access import stored_passwords
from app.domain.access.permissions import system_actor
from app.domain.enums import Role, WeakPassword
from app.errors import Conflict, InvalidInput, SignOnRefused
from app.models.audit import AuditEntry
from app.models.session import LoginSession
from app.models.user import User
from app.services.accounts import passwords, sign_on, users
from app.services.accounts.users import UserDraft
from app.settings.config import Config
from app.settings.oidc import Grant, OidcConfig
from app.store.accounts import rights
from app.store.accounts import users as user_store
from tests.security.fake_provider import CLIENT_ID, FakeProvider
from tests.security.signing_on import (
    assert_refused,
    configure,
    oidc,
    provider,
    settings,
    sign_in,
    user_named,
)
from tests.support.console import CONTEXT, PASSWORD, Console, add_group, add_row, add_user
from tests.support.plan import every_database

ACTOR = system_actor("test")


def test_a_new_user_logs_in_without_rights(console: Console, provider: FakeProvider) -> None:
    response = sign_in(console, provider)
    assert (response.status_code, response.headers["Location"]) == (303, f"{CONTEXT}/")
    login_cookie, start_cookie = sorted(response.headers.getlist("Set-Cookie"))
    assert re.fullmatch(rf"{LOGIN_COOKIE}=[0-9a-f]{{64}}; HttpOnly; Path=/; SameSite=Lax", login_cookie)
    assert start_cookie.startswith(f"{view.COOKIE}=; ")
    assert "Max-Age=0" in start_cookie
    user = user_named("ann")
    assert user is not None
    assert (user.role, user.permission, user.identity) == (Role.NORMAL, "", f"{provider.issuer} subject-1")
    account = console.get("/account")
    assert account.status_code == 200
    assert 'name="old_password"' not in account.text
    with read_scope() as session:
        assert [row.sign_on for row in session.scalars(select(LoginSession))] == [1]
        actions = [entry.action for entry in session.scalars(select(AuditEntry).order_by(AuditEntry.id))]
    assert actions[-2:] == ["user.add", "login"]
    assert sign_in(console.another(), provider).status_code == 303  # the same user again
    with read_scope() as session:
        assert len(session.scalars(select(User)).all()) == 2


def test_a_name_that_is_taken_is_never_taken_over(console: Console, provider: FakeProvider) -> None:
    provider.claims = {"preferred_username": "Admin"}
    response = sign_in(console, provider)
    assert_refused(console, response, f"name taken, identity {provider.issuer} subject-1")
    assert "An administrator can link it" in response.text


def test_an_unusable_user_name_is_refused(console: Console, provider: FakeProvider) -> None:
    names: list[Any] = [None, "", "a b", "<b>", 'x"', "x" * 51, 7, ["ann"], "a\x00b", "a\ud800"]
    for count, name in enumerate(names, 1):
        provider.claims = {"preferred_username": name}
        assert_refused(console, sign_in(console, provider), "user name", count=count)


def test_a_renamed_user_stays_the_same_user(console: Console, provider: FakeProvider) -> None:
    assert sign_in(console, provider).status_code == 303
    provider.claims = {"preferred_username": "admin"}
    assert sign_in(console.another(), provider).status_code == 303
    assert user_named("ann") is not None


def test_a_disabled_user_is_refused(console: Console, provider: FakeProvider) -> None:
    assert sign_in(console, provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    with session_scope() as session:
        users.update_user(session, user.id, UserDraft(disabled=True), actor=ACTOR, now_ms=now_ms())
    assert_refused(console, sign_in(console.another(), provider), "disabled")


def test_rights_follow_the_claim_at_every_login(
    console: Console,
    provider: FakeProvider,
    configure: Callable[..., None],
) -> None:
    payments, orders = add_group("payments"), add_group("orders")
    configure(
        rights=(
            Grant("ops", "payments", frozenset({"operate", "edit"})),
            Grant("viewers", "*", frozenset({"view"})),
            Grant("ops", "no-such-app", frozenset({"glue"})),
        )
    )

    def granted(groups: Any) -> tuple[str | None, dict[int, str]]:
        provider.claims = {"groups": groups}
        assert sign_in(console.another(), provider).status_code == 303
        user = user_named("ann")
        assert user is not None
        assert user.role == Role.NORMAL
        with read_scope() as session:
            return user.permission, rights.rights_of(session, user.id)

    assert granted(["ops"]) == (f"{payments}", {payments: "view,operate,edit"})
    assert granted(["ops", "viewers"]) == (
        f"{payments},{orders}",
        {payments: "view,operate,edit", orders: "view"},
    )
    assert granted("viewers") == (f"{payments},{orders}", {payments: "view", orders: "view"})
    for nothing in (["OPS", "op", "ops "], [], None, 7, {"ops": True}, [["ops"]]):
        assert granted(nothing) == ("", {})


def test_rights_that_cannot_be_stored_are_refused(
    console: Console,
    provider: FakeProvider,
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("payments", "orders"):
        add_group(name)
    configure(rights=(Grant("ops", "*", frozenset({"view"})),))
    monkeypatch.setattr(users, "PERMISSION_MAX", 2)
    provider.claims = {"groups": ["ops"]}
    assert_refused(console, sign_in(console, provider), "rights: Too many executor groups")
    assert user_named("ann") is None


def test_an_administrator_by_claim_is_one_until_the_claim_ends(
    console: Console,
    provider: FakeProvider,
    configure: Callable[..., None],
) -> None:
    configure(admin_values=("job-admins",), groups_claim="realm_access.roles")
    provider.claims = {"realm_access": {"roles": ["job-admins", "x"]}}
    assert sign_in(console, provider).status_code == 303
    assert console.get("/user").status_code == 200
    provider.claims = {"realm_access": {"roles": ["x"]}}
    assert sign_in(console.another(), provider).status_code == 303
    assert console.get("/user").status_code == 302  # the administrator's login ended
    user = user_named("ann")
    assert user is not None
    assert user.role == Role.NORMAL


@pytest.mark.parametrize("first_admin", ["subject-1", "ann"])
def test_the_first_administrator_is_one_at_the_first_login_only(
    console: Console,
    provider: FakeProvider,
    configure: Callable[..., None],
    first_admin: str,
) -> None:
    configure(first_admin=first_admin)
    assert sign_in(console, provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    assert user.is_admin
    with session_scope() as session:
        users.update_user(session, user.id, UserDraft(role=0), actor=ACTOR, now_ms=now_ms())
    assert sign_in(console.another(), provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    assert not user.is_admin


def test_the_first_administrator_is_none_beside_another_of_the_provider(
    console: Console,
    provider: FakeProvider,
    configure: Callable[..., None],
    oidc: OidcConfig,
) -> None:
    """The named user was deleted, perhaps to withdraw its rights, and the name is free again."""
    configure(first_admin="ann")
    add_row("root", PASSWORD, Role.ADMIN)
    with session_scope() as session:
        sign_on.link(session, oidc, "root", "subject-2", actor=ACTOR, now_ms=now_ms())
    assert sign_in(console, provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    assert not user.is_admin


def test_userinfo_fills_in_claims_of_the_same_subject_only(
    console: Console,
    provider: FakeProvider,
    configure: Callable[..., None],
) -> None:
    configure(admin_values=("job-admins",))
    provider.claims = {"preferred_username": None, "groups": None}
    provider.userinfo = {"sub": "subject-2", "preferred_username": "eve", "groups": ["job-admins"]}
    assert_refused(console, sign_in(console, provider), "userinfo of another subject")
    provider.userinfo["sub"] = "subject-1"
    assert sign_in(console, provider).status_code == 303
    user = user_named("eve")
    assert user is not None
    assert user.is_admin


@pytest.mark.parametrize(
    "token", [{"realm_access": {"verify_caller": True}}, {"realm_access": {"roles": None}}]
)
def test_userinfo_fills_in_a_claim_inside_an_object(
    console: Console,
    provider: FakeProvider,
    configure: Callable[..., None],
    token: dict[str, Any],
) -> None:
    configure(admin_values=("job-admins",), groups_claim="realm_access.roles")
    provider.claims = token
    provider.userinfo = {"sub": "subject-1", "realm_access": {"roles": ["job-admins"]}}
    assert sign_in(console, provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    assert user.is_admin


def test_userinfo_is_not_read_for_a_claim_without_a_use(console: Console, provider: FakeProvider) -> None:
    provider.claims = {"groups": None}
    provider.userinfo = {"sub": "subject-1"}
    provider.broken = {"/userinfo": (500, {}, b"")}
    assert sign_in(console, provider).status_code == 303


def test_a_user_of_the_provider_has_no_password(console: Console, provider: FakeProvider) -> None:
    assert sign_in(console, provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    for guess in (stored_passwords.UNUSABLE, user.identity):
        answer = console.another().call("/login", userName="ann", password=guess)
        assert (answer["code"], answer["msg"]) == (500, "Wrong user name or password")
    with pytest.raises(InvalidInput, match="identity provider"), session_scope() as session:
        users.update_user(session, user.id, UserDraft(password=PASSWORD), actor=ACTOR, now_ms=now_ms())
    draft = UserDraft(username="ann", password=PASSWORD)
    with pytest.raises(Conflict, match="identity provider"), session_scope() as session:
        users.set_password(session, draft, actor=ACTOR, now_ms=now_ms())
    page = console.another().log_in().get(f"/user/{user.id}/edit").text
    assert 'name="password"' not in page
    assert f"{provider.issuer} subject-1" in page


def test_linking_gives_a_local_user_to_the_provider(
    console: Console,
    provider: FakeProvider,
    oidc: OidcConfig,
) -> None:
    user_id = add_user("ann")

    def link(username: str, subject: str) -> None:
        with session_scope() as session:
            sign_on.link(session, oidc, username, subject, actor=ACTOR, now_ms=now_ms())

    local = console.another().log_in("ann")
    mark_weak("ann")
    link("ann", "subject-1")
    assert local.get("/account").status_code == 302
    assert console.call("/login", userName="ann", password=PASSWORD)["code"] == 500
    assert sign_in(console, provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    assert (user.id, user.weak_password) == (user_id, WeakPassword.NO)
    with pytest.raises(Conflict, match="last administrator with a password"):
        link("admin", "subject-2")
    add_user("bert")
    with pytest.raises(Conflict, match="belongs to the user ann"):
        link("bert", "subject-1")
    with pytest.raises(Conflict, match="not linked"):
        link("bert", "")
    with pytest.raises(SignOnRefused):
        link("bert", " x")
    link("ann", "")
    assert sign_in(console.another(), provider).status_code == 403


def test_an_administrator_without_a_password_is_no_substitute(console: Console, oidc: OidcConfig) -> None:
    add_row("root", PASSWORD, Role.ADMIN)
    for username, subject in (("root", "subject-2"), ("root", "")):  # undone, but the password is gone
        with session_scope() as session:
            sign_on.link(session, oidc, username, subject, actor=ACTOR, now_ms=now_ms())
    with pytest.raises(Conflict, match="last administrator with a password"), session_scope() as session:
        sign_on.link(session, oidc, "admin", "subject-1", actor=ACTOR, now_ms=now_ms())


def test_a_role_that_xxl_job_allows_keeps_its_groups(
    console: Console, provider: FakeProvider, oidc: OidcConfig
) -> None:
    """Of XXL-JOB any role but 1 is a normal user."""
    group_id = add_group()
    user_id = add_user("ann", [group_id])
    with session_scope() as session:
        session.execute(update(User).where(User.id == user_id).values(role=2))
        sign_on.link(session, oidc, "ann", "subject-1", actor=ACTOR, now_ms=now_ms())
    assert sign_in(console, provider).status_code == 303
    user = user_named("ann")
    assert user is not None
    assert (user.role, user.group_ids) == (2, [group_id])


def mark_weak(username: str) -> None:
    with session_scope() as session:
        user = user_store.lock_by_name(session, username)
        assert user is not None
        user.weak_password = WeakPassword.REFUSED


def test_logout_ends_the_sessions_here_and_at_the_provider(console: Console, provider: FakeProvider) -> None:
    assert sign_in(console, provider).status_code == 303
    token = re.search(r'name="csrf_token" value="(\w+)"', console.get("/account").text)
    assert token is not None
    response = console.post("/account/logout", {"csrf_token": token[1]})
    onward = (
        f"{provider.issuer}/logout?client_id={CLIENT_ID}&amp;post_logout_redirect_uri=http%3A%2F%2Flocalhost"
    )
    assert f'content="0; url={onward}' in response.text
    assert LOGIN_COOKIE in response.headers["Set-Cookie"]
    assert console.get("/account").headers["Location"] == f"{CONTEXT}/toLogin"


def test_the_command_links_and_unlinks(console: Console, provider: FakeProvider) -> None:
    add_user("ann")
    runner = create_command_app(console.app.config["XXL_JOB"]).test_cli_runner()
    assert "expected a SUBJECT" in runner.invoke(args=["link-identity", "ann"]).output
    assert runner.invoke(args=["link-identity", "ann", "subject-1"]).output == "user ann: linked\n"
    assert sign_in(console, provider).status_code == 303
    assert runner.invoke(args=["link-identity", "ann", "--remove"]).output == "user ann: unlinked\n"
    assert runner.invoke(args=["link-identity", "eve", "x"]).output == "Error: There is no user eve\n"


@every_database
def test_an_identity_is_compared_exactly(app: Flask, oidc: OidcConfig) -> None:
    with session_scope() as session:
        for number, subject in enumerate(("abc", "ABC", "äbc")):
            user = User(username=f"user{number}", password=stored_passwords.UNUSABLE, role=0, permission="")
            user.identity = sign_on.identity_of(oidc, subject)
            session.add(user)
    with session_scope() as session:
        for subject, name in (("abc", "user0"), ("ABC", "user1"), ("äbc", "user2")):
            found = user_store.lock_by_identity(session, sign_on.identity_of(oidc, subject))
            assert found is not None
            assert found.username == name
        for subject in ("abc ", "Abc", "âbc"):
            assert user_store.lock_by_identity(session, f"{oidc.issuer} {subject}") is None


def test_without_a_provider_there_is_no_sign_on(settings: Config, database: str) -> None:
    from app.factory import create_app

    client = create_app(replace(settings, oidc=OidcConfig())).test_client()
    assert "/sign-on" not in client.get(f"{CONTEXT}/toLogin").text
    for path in ("/sign-on", "/sign-on/callback"):
        assert client.get(CONTEXT + path).headers["Location"] == f"{CONTEXT}/toLogin"
