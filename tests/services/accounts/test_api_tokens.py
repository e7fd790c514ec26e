"""API tokens: created, found, limited to what the owner may do now, refused, revoked."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.api_tokens import Grant
from app.domain.access.permissions import ALL_RIGHTS, Actor, Right, system_actor
from app.domain.enums import Role
from app.errors import ForeignValue, InvalidInput, NotFound, PermissionDenied, TooManyAttempts, Unauthorized
from app.models.api_token import ApiToken
from app.models.audit import AuditEntry
from app.models.user import User
from app.services.accounts import api_tokens, login_throttle, users
from app.services.accounts.actors import actor_of
from app.services.accounts.api_tokens import ApiCaller, CreatedToken, TokenDraft
from app.services.executors import groups
from tests.support.factories import make_group
from tests.support.plan import every_database

pytestmark = [pytest.mark.usefixtures("database"), every_database]

NOW: Millis = 1_714_530_000_000
ADDRESS = "10.0.0.9"
VIEW = Grant(frozenset({Right.VIEW}))
ALL = Grant(ALL_RIGHTS)


def add_user(username: str = "norman", *, permission: str = "", role: Role = Role.NORMAL) -> Actor:
    with session_scope() as session:
        user = User(username=username, password="unused", role=role, permission=permission)
        session.add(user)
        session.flush()
        return actor_of(session, user, address=ADDRESS)


def create(actor: Actor, grant: Grant = ALL, **fields: Any) -> CreatedToken:
    draft = replace(TokenDraft("deploy", grant), **fields)
    with session_scope() as session:
        return api_tokens.create_token(session, draft, actor=actor, now_ms=NOW)


def caller(token: str, *, now_ms: Millis = NOW, address: str = ADDRESS) -> ApiCaller:
    return api_tokens.authenticate(token, address=address, now_ms=now_ms)


def change_user(user_id: int, **values: Any) -> None:
    with session_scope() as session:
        user = session.get_one(User, user_id)
        for name, value in values.items():
            setattr(user, name, value)


def entries(action: str) -> list[AuditEntry]:
    with read_scope() as session:
        return list(
            session.scalars(select(AuditEntry).where(AuditEntry.action == action).order_by(AuditEntry.id))
        )


def new_group() -> int:
    return make_group().id


def test_a_token_acts_as_its_user_and_is_stored_hashed_only() -> None:
    group_id = new_group()
    actor = add_user(permission=str(group_id))
    made = create(actor, replace(ALL, rights=frozenset({Right.VIEW, Right.EDIT})))
    found = caller(made.token)
    assert (found.token_id, found.name, found.is_service) == (made.id, "deploy", False)
    assert found.actor == replace(
        actor, rights={group_id: frozenset({Right.VIEW, Right.EDIT})}, via="token deploy"
    )
    with read_scope() as session:
        row = session.get_one(ApiToken, made.id)
    assert made.token not in str(vars(row))
    assert row.hint == made.token[:8]
    assert made.token not in str([vars(entry) for entry in entries("token.add")])


def test_a_token_follows_the_rights_of_its_user() -> None:
    first, second = new_group(), new_group()
    actor = add_user(role=Role.ADMIN)
    token = create(actor, Grant(frozenset(), admin=True)).token
    assert caller(token).actor.is_admin
    change_user(actor.user_id, role=Role.NORMAL, permission=f"{first},{second}")
    assert caller(token).actor.rights == {first: ALL_RIGHTS, second: ALL_RIGHTS}
    change_user(actor.user_id, permission="")
    assert caller(token).actor.rights == {}


def test_an_administrators_token_has_only_the_listed_rights() -> None:
    first, second = new_group(), new_group()
    admin = add_user(role=Role.ADMIN)
    everywhere = caller(create(admin, VIEW).token).actor
    assert not everywhere.is_admin
    assert everywhere.rights.keys() >= {first, second}
    limited = caller(create(admin, replace(ALL, group_ids=frozenset({second})), name="one").token).actor
    assert not limited.is_admin
    assert limited.rights == {second: ALL_RIGHTS}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"disabled": 1}, "disabled"),
        ({"password": "first:unused"}, "change the password"),
        ({"weak_password": 2}, "change the password"),
    ],
)
def test_a_token_of_a_user_who_may_not_log_in_is_refused(change: dict[str, Any], reason: str) -> None:
    actor = add_user()
    token = create(actor).token
    change_user(actor.user_id, **change)
    with pytest.raises(Unauthorized, match=reason):
        caller(token)


def test_the_tokens_of_a_deleted_user_are_deleted() -> None:
    actor = add_user()
    token = create(actor).token
    with session_scope() as session:
        users.remove_user(session, actor.user_id, actor=system_actor("test"), now_ms=NOW)
    with pytest.raises(Unauthorized, match="unknown"):
        caller(token)


def test_a_later_group_with_the_id_of_a_deleted_one_is_not_the_tokens() -> None:
    kept, removed = new_group(), new_group()
    admin = add_user(role=Role.ADMIN)
    both = create(admin, replace(ALL, group_ids=frozenset({kept, removed})), name="both")
    one = create(admin, replace(ALL, group_ids=frozenset({removed})), name="one")
    with session_scope() as session:
        groups.remove_group(session, removed, actor=admin, now_ms=NOW)
    with read_scope() as session:
        stored = [session.get_one(ApiToken, made.id).group_ids for made in (both, one)]
    assert stored == [str(kept), "0"]
    assert caller(one.token).actor.rights == {}


def test_a_token_expires_and_is_revoked() -> None:
    actor = add_user()
    made = create(actor, expires_ms=NOW + DAY_MS)
    assert caller(made.token, now_ms=NOW + DAY_MS - 1).expires_ms == NOW + DAY_MS
    with pytest.raises(Unauthorized, match="expired"):
        caller(made.token, now_ms=NOW + DAY_MS)
    with session_scope() as session:
        api_tokens.revoke_token(session, made.id, actor=actor, now_ms=NOW)
    with pytest.raises(Unauthorized, match="revoked"):
        caller(made.token)
    with session_scope() as session, pytest.raises(NotFound):
        api_tokens.revoke_token(session, made.id, actor=actor, now_ms=NOW)
    assert [entry.object_id for entry in entries("token.revoke")] == [made.id]


def test_a_service_token_belongs_to_no_user_and_is_made_by_administrators() -> None:
    group_id = new_group()
    admin = system_actor("test")
    found = caller(create(admin, VIEW, service=True).token)
    assert found.is_service
    expected = Actor(0, "deploy", False, {group_id: VIEW.rights}, ADDRESS, "token deploy")
    assert found.actor == expected
    all_rights = create(admin, Grant(frozenset(), admin=True), service=True, name="all")
    assert caller(all_rights.token).actor.is_admin
    with pytest.raises(PermissionDenied):
        create(add_user(), service=True)


def test_tokens_of_others_are_seen_and_revoked_by_administrators_only() -> None:
    norman, admin = add_user(), add_user("ada", role=Role.ADMIN)
    nina = add_user("nina")
    made, service = create(norman), create(admin, service=True)
    with session_scope() as session:
        for token_id in (made.id, service.id):
            with pytest.raises(NotFound):
                api_tokens.revoke_token(session, token_id, actor=nina, now_ms=NOW)
        assert [row.id for row in api_tokens.list_own(session, actor=norman)] == [made.id]
        assert {row.id for row in api_tokens.list_all(session, actor=admin).rows} == {made.id, service.id}
        with pytest.raises(PermissionDenied):
            api_tokens.list_all(session, actor=norman)
        api_tokens.revoke_token(session, made.id, actor=admin, now_ms=NOW)
        assert api_tokens.list_own(session, actor=norman) == []


@pytest.mark.parametrize(
    ("fields", "error", "field"),
    [
        ({"name": " "}, InvalidInput, "name"),
        ({"name": "x" * 65}, InvalidInput, "name"),
        ({"name": "ci\n2026-11-27 ERROR forged"}, InvalidInput, "name"),
        ({"name": "c\u202ei"}, InvalidInput, "name"),
        ({"grant": Grant(frozenset())}, InvalidInput, "rights"),
        ({"grant": Grant(frozenset(), admin=True)}, ForeignValue, "rights"),
        ({"grant": replace(VIEW, group_ids=frozenset())}, InvalidInput, "groups"),
        ({"grant": replace(VIEW, group_ids=frozenset({10_000}))}, ForeignValue, "groups"),
        ({"expires_ms": NOW}, InvalidInput, "expires"),
    ],
)
def test_a_draft_that_is_refused(fields: dict[str, Any], error: type[InvalidInput], field: str) -> None:
    with pytest.raises(error) as caught:
        create(add_user(), **fields)
    assert caught.value.field == field


def test_a_name_is_taken_until_its_token_is_revoked() -> None:
    actor = add_user()
    made = create(actor)
    with pytest.raises(InvalidInput, match="already"):
        create(actor)
    create(system_actor("test"), service=True)
    with session_scope() as session:
        api_tokens.revoke_token(session, made.id, actor=actor, now_ms=NOW)
    create(actor)


def test_a_group_that_the_user_may_not_see_cannot_be_chosen() -> None:
    foreign = new_group()
    with pytest.raises(ForeignValue, match="no executor group"):
        create(add_user(), replace(VIEW, group_ids=frozenset({foreign})))


def test_a_token_creates_no_personal_tokens() -> None:
    found = caller(create(add_user()).token)
    with pytest.raises(PermissionDenied):
        create(found.actor, name="next")


def test_the_last_use_is_written_at_most_once_a_minute() -> None:
    made = create(add_user())
    for at_ms, address, expected in (
        (NOW, ADDRESS, (NOW, ADDRESS)),
        (NOW + MINUTE_MS, "10.0.0.10", (NOW, ADDRESS)),
        (NOW + MINUTE_MS + 1, "10.0.0.10", (NOW + MINUTE_MS + 1, "10.0.0.10")),
    ):
        caller(made.token, now_ms=at_ms, address=address)
        with read_scope() as session:
            row = session.get_one(ApiToken, made.id)
        assert (row.last_used_ms, row.last_address) == expected


def test_wrong_tokens_of_an_address_are_throttled_and_recorded(caplog: pytest.LogCaptureFixture) -> None:
    token = create(add_user()).token
    wrong = "xxl_" + "a" * 43
    for _ in range(login_throttle.ADDRESS_FAILURES):
        with pytest.raises(Unauthorized):
            caller(wrong)
    with pytest.raises(TooManyAttempts) as caught:
        caller(wrong)
    assert caught.value.retry_after_s == login_throttle.ADDRESS_WINDOW_MS // 1000
    with pytest.raises(Unauthorized):
        caller(wrong, address="10.0.0.11")
    assert caller(token).name == "deploy"
    with pytest.raises(Unauthorized):
        caller(wrong, now_ms=NOW + login_throttle.ADDRESS_WINDOW_MS)
    assert [entry.address for entry in entries("refused.api_token")] == [ADDRESS, "10.0.0.11"]
    line = f'API token refused address={ADDRESS} reason="the API token is unknown"'
    assert [record.getMessage() for record in caplog.records].count(
        line
    ) == login_throttle.ADDRESS_FAILURES + 1
    assert wrong not in str([vars(entry) for entry in entries("refused.api_token")])
