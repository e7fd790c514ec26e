"""Every operation of API v1, each kind of token, own, foreign and missing objects: the expected answer.

As in ``test_matrix.py`` for the console: a foreign object answers like a missing one, a missing right is
reported, and a refused request changes nothing. A user's token has every right; the user has those of its
role on the own group and every right on another, so that only the object's own group decides.
"""

import itertools
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import select
from werkzeug.test import TestResponse

from app.api.v1.endpoint import PUBLIC
from app.api.v1.resources import RESOURCES
from app.clock import DAY_MS, now_ms
from app.database.engine import read_scope, session_scope
from app.domain.access.api_tokens import Grant
from app.domain.access.permissions import ALL_RIGHTS, Right
from app.domain.code.document import read_document
from app.models.api_token import ApiToken
from app.models.audit import AuditEntry
from app.models.drain import Drain
from app.models.mute import Mute
from app.services.accounts import api_tokens
from app.services.accounts.actors import actor_of
from app.services.accounts.api_tokens import TokenDraft
from app.services.auditing import refusals
from app.services.code.apply import apply_document, prepare_apply
from app.services.code.request import CodeRequest
from app.settings.config import Config
from app.store.accounts import users
from tests.console.conftest import app, console, settings
from tests.security.api_endpoints import OPERATIONS, ApiCall
from tests.security.endpoints import INSTANCE, Needs
from tests.security.places import MISSING, NOWHERE, Meaning, make_place, snapshot
from tests.support.api_v1 import Api, app_of, make_token
from tests.support.console import ACTOR, CONTEXT, Console, add_group, add_user
from tests.support.factories import save

__all__ = ["app", "console", "settings"]  # fixtures

#: rights do not depend on the database
pytestmark = [pytest.mark.databases("sqlite"), pytest.mark.usefixtures("database")]

#: tokens of users: role -> rights of the user on the own group
RIGHTS: dict[str, frozenset[Right]] = {
    "viewer": frozenset({Right.VIEW}),
    "operator": frozenset({Right.VIEW, Right.OPERATE}),
    "editor": frozenset({Right.VIEW, Right.EDIT}),
    "coder": frozenset({Right.VIEW, Right.GLUE}),
}
#: service tokens limited to the own group: their rights come from the token
LIMITED = {f"limited {role}": rights for role, rights in RIGHTS.items()}
WITHOUT_ACCESS = ("no token", "login cookie", "unknown", "malformed", "expired", "revoked", "disabled user")
CALLS = [(key.split()[0], each) for key, calls in OPERATIONS.items() for each in calls]
Ids = Mapping[str, Any]
_numbers = itertools.count(1)
_NOWHERE: Ids = {**NOWHERE._asdict(), "mute": MISSING, "drain": MISSING, "service": MISSING, "apply": MISSING}


@dataclass(frozen=True)
class Met:
    """A caller and the ids of its own place."""

    api: Api
    ids: Ids
    cookie: str = ""

    def send(self, method: str, wanted: ApiCall, ids: Ids, *, dry_run: bool = False) -> TestResponse:
        path = filled(wanted.path, ids)
        if dry_run and method != "GET":
            path += "&dry_run=true" if "?" in path else "?dry_run=true"
        headers = {"Cookie": self.cookie} if self.cookie else {}
        high, low = divmod(next(_numbers), 256)
        address = {"REMOTE_ADDR": f"10.{high}.{low}.1"}  # each its own, because wrong tokens are throttled
        body = filled(wanted.body, ids)
        return self.api(method, path, body, headers=headers, environ_overrides=address, buffered=True)


def filled(value: Any, ids: Ids) -> Any:
    """Replace ``{job}``, ``{group}``, … in a path or body; a text of nothing else becomes the number."""
    if isinstance(value, dict):
        return {filled(name, ids): filled(each, ids) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, ids) for each in value]
    if not isinstance(value, str):
        return value
    if value[1:-1] in ids and value == f"{{{value[1:-1]}}}":
        return ids[value[1:-1]]
    for name, each in ids.items():
        value = value.replace(f"{{{name}}}", str(each))
    return value


def ids_of(title: str) -> Ids:
    """Store a group with its objects; return their ids."""
    place = make_place(title)
    mute = save(Mute(job_id=place.code, group_id=0, since_ms=now_ms(), until_ms=now_ms() + DAY_MS))
    drain = save(Drain(group_id=place.group, address=INSTANCE, since_ms=now_ms()))
    service = save(ApiToken(name=f"{title} service", token_hash=f"of {place.app_name}", rights="view"))
    made = {
        "mute": mute.id,
        "drain": drain.id,
        "service": service.id,
        "apply": apply_of(title, place.app_name),
    }
    return {**place._asdict(), **made}


def apply_of(title: str, app_name: str) -> int:
    """Apply a document with a job of the group; return the id of the apply."""
    job = {"description": f"{app_name} made", "owner": f"{title} owner", "handler": "x"}
    request = CodeRequest(read_document({}, {f"{app_name}/made": job}, {}), ACTOR)
    with session_scope() as session:
        prepared = prepare_apply(session, request, plan_hash=None, now_ms=now_ms())
        return apply_document(session, prepared, source=f"{title} commit", clock=now_ms).apply_id


def personal(name: str, group_ids: list[int], rights: Mapping[int, frozenset[Right]]) -> str:
    """Store a user and a token of theirs with every right."""
    add_user(name, group_ids, dict(rights))
    with session_scope() as session:
        user = users.find_by_name(session, name)
        assert user is not None
        owner = actor_of(session, user, address="")
        draft = TokenDraft(name, Grant(ALL_RIGHTS))
        return api_tokens.create_token(session, draft, actor=owner, now_ms=now_ms()).token


def change(token: str, **values: Any) -> None:
    with session_scope() as session:
        row = session.scalars(
            select(ApiToken).where(ApiToken.token_hash == api_tokens.rules.token_hash(token))
        )
        found = row.one()
        for name, value in values.items():
            setattr(found, name, value)


def without_access(role: str, console: Console) -> tuple[str, str]:
    """Return token and cookie of a request that has no access."""
    if role in ("no token", "login cookie"):
        cookie = console.log_in().client.get_cookie("XXL_JOB_LOGIN_IDENTITY")
        assert cookie is not None
        return "", f"XXL_JOB_LOGIN_IDENTITY={cookie.value}" if role == "login cookie" else ""
    if role in ("unknown", "malformed"):
        return "xxl_" + "a" * (43 if role == "unknown" else 44), ""
    if role == "disabled user":
        token = personal("gone", [add_group("gone-app")], {})
        with session_scope() as session:
            users.all_users(session)[-1].disabled = 1
        return token, ""
    token = make_token(*ALL_RIGHTS, admin=True, name=role)
    change(token, **({"expires_ms": now_ms() - 1} if role == "expired" else {"revoked_ms": now_ms()}))
    return token, ""


@pytest.fixture
def meet(settings: Config, console: Console) -> Callable[[str], Met]:
    """Return a function that returns a caller of a role and its place."""
    application = app_of(settings)

    def make(role: str) -> Met:
        ids = ids_of("own")
        if role in WITHOUT_ACCESS:
            token, cookie = without_access(role, console)
            return Met(Api(application, token), ids, cookie)
        if role in RIGHTS:
            other = add_group(f"granted-{role}")
            token = personal(role, [ids["group"], other], {ids["group"]: RIGHTS[role]})
        elif role in LIMITED:
            token = make_token(*LIMITED[role], group_ids=[ids["group"]], name=role)
        elif role == "foreign":
            token = make_token(*ALL_RIGHTS, group_ids=[add_group("foreign-app")], name=role)
        else:
            token = make_token(*ALL_RIGHTS, admin=role == "admin", name=role)
        return Met(Api(application, token), ids)

    return make


def expected(wanted: ApiCall, role: str) -> Meaning:
    """Return the answer to a role for its own object; a list needs its right on any group."""
    needs = wanted.needs
    if needs is Needs.ANYONE:
        return Meaning.DONE
    if role in WITHOUT_ACCESS:
        return Meaning.LOG_IN
    if needs is Needs.LOGIN or role == "admin":
        return Meaning.DONE
    if needs is Needs.ADMIN:
        return Meaning.DENIED
    if role == "all groups" or (wanted.is_list and role in RIGHTS):
        return Meaning.DONE
    return Meaning.DONE if Right(needs.value) in (RIGHTS | LIMITED)[role] else Meaning.DENIED


def outcome_of(answer: TestResponse) -> tuple[int, str]:
    """Return status and detail of an answer; of a batch those of its only entry."""
    body = answer.json or {}
    if answer.status_code == 202 and "items" in body:
        (item,) = body["items"]
        return item.get("status", 202), item.get("detail", "")
    return answer.status_code, body.get("detail", "")


def meaning_of(answer: TestResponse) -> Meaning:
    """Return what an answer says about the caller's access."""
    known = {
        401: Meaning.LOG_IN,
        403: Meaning.DENIED,
        404: Meaning.MISSING,
        502: Meaning.DONE,
        503: Meaning.DONE,
    }
    status, _detail = outcome_of(answer)
    if status in known:
        return known[status]
    return Meaning.ERROR if status >= 500 else Meaning.REFUSED if status >= 400 else Meaning.DONE


def stored() -> list[Any]:
    """Return all rows that a refused request leaves as they are; of tokens not their last use."""
    with read_scope() as session:
        tokens = session.execute(select(ApiToken.id, ApiToken.revoked_ms, ApiToken.group_ids)).all()
    return [snapshot(without=ApiToken), [tuple(row) for row in tokens]]


def test_every_operation_has_its_expected_answers(config: Config) -> None:
    operations = [operation for resource in RESOURCES for operation in resource.operations]
    declared = {f"{operation.method} {operation.path}" for operation in operations}
    assert declared - OPERATIONS.keys() == set(), "operations without an entry"
    assert OPERATIONS.keys() - declared == set(), "entries without an operation"
    public = {f"{each.method} {each.path}" for each in operations if each.right == PUBLIC}
    assert public == {key for key, calls in OPERATIONS.items() if calls[0].needs is Needs.ANYONE}
    urls = app_of(config).url_map.bind("localhost")
    for key, calls in OPERATIONS.items():
        method, path = key.split()
        for each in calls:
            rule, _arguments = urls.match(
                filled(each.path, _NOWHERE).partition("?")[0], method, return_rule=True
            )
            assert rule.rule == path, each


@pytest.mark.parametrize("role", [*WITHOUT_ACCESS, *RIGHTS, *LIMITED, "all groups", "admin"])
def test_own_objects(meet: Callable[[str], Met], role: str) -> None:
    met = meet(role)
    before = stored()
    for method, wanted in CALLS:
        meaning = expected(wanted, role)
        allowed = meaning is Meaning.DONE
        answer = met.send(method, wanted, met.ids, dry_run=allowed)
        found = meaning_of(answer)
        if allowed and answer.status_code in wanted.also:
            continue
        assert found is meaning, (method, wanted.path, wanted.body, answer.status_code, answer.text[:400])
        assert (answer.status_code == 401) == ("WWW-Authenticate" in answer.headers)
        assert "Set-Cookie" not in answer.headers
    assert stored() == before, "a refused request or a dry run has changed something"


@pytest.mark.parametrize("role", ["viewer", "foreign"])
def test_foreign_objects_answer_like_missing_ones(meet: Callable[[str], Met], role: str) -> None:
    met, foreign = meet(role), ids_of("secret")
    before = stored()
    for method, wanted in CALLS:
        if wanted.is_list or wanted.needs is Needs.ADMIN or "{" not in f"{wanted.path}{wanted.body}":
            continue
        answer, none = met.send(method, wanted, foreign), met.send(method, wanted, _NOWHERE)
        assert shape_of(answer, foreign) == shape_of(none, _NOWHERE), (method, wanted)
        is_empty = (answer.json or {}).get("items") == []
        assert is_empty or outcome_of(answer)[0] in (403, 404, 422), (method, wanted, answer.text)
        assert "secret" not in answer.text.replace(foreign["app_name"], ""), (method, wanted)
    assert stored() == before, "a refused request has changed something"


def shape_of(answer: TestResponse, ids: Ids) -> tuple[int, str]:
    """Return status and detail of an answer without ids, and without the name that was requested."""
    status, detail = outcome_of(answer)
    return status, re.sub(r"[0-9]+", "#", detail.replace(ids["app_name"], "…"))


@pytest.mark.parametrize("role", ["viewer", "limited coder", "foreign"])
def test_lists_contain_nothing_foreign(meet: Callable[[str], Met], role: str) -> None:
    met = meet(role)
    foreign = ids_of("secret")
    for method, wanted in CALLS:
        if wanted.is_list and wanted.needs is not Needs.ADMIN:
            answer = met.send(method, wanted, foreign)
            assert answer.status_code == 200, (wanted, answer.text)
            is_public = wanted.needs is Needs.ANYONE
            assert is_public or "secret" not in answer.text, wanted


def test_no_token_is_logged_kept_or_answered(
    meet: Callable[[str], Met], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    met = meet("admin")
    wrong = "xxl_" + "b" * 43
    answers = [met.send(method, wanted, met.ids, dry_run=method != "GET") for method, wanted in CALLS]
    answers += [Met(met.api.with_token(wrong), met.ids).send("GET", CALLS[0][1], met.ids)]
    answers += [met.api.get(f"/{met.api.token}"), met.api.get(f"/jobs?token={met.api.token}")]
    refusals.recorder.flush(last=True)
    with read_scope() as session:
        entries = [vars(entry) for entry in session.scalars(select(AuditEntry))]
        rows = [vars(row) for row in session.scalars(select(ApiToken))]
    assert any(entry["action"] == "refused.api_token" for entry in entries)
    for secret in (met.api.token, wrong):
        assert secret not in str([entries, rows])
        assert secret not in caplog.text
        assert not any(secret in answer.text for answer in answers)


def test_a_login_of_the_console_gives_no_access(app: Flask, console: Console) -> None:
    """Through the mount, where the console's cookie is sent along."""
    client = console.log_in().client
    assert client.get(f"{CONTEXT}/account").status_code == 200
    for path in ("/me", "/jobs"):
        answer = client.get(f"{CONTEXT}/api/v1{path}")
        assert answer.status_code == 401
        assert "Set-Cookie" not in answer.headers


def test_refused_requests_are_audited_with_the_token(meet: Callable[[str], Met]) -> None:
    met, foreign = meet("limited viewer"), ids_of("secret")
    met.api.post(f"/jobs/{met.ids['job']}/stop")
    met.api.get(f"/groups/{foreign['group']}")
    refusals.recorder.flush(last=True)
    with read_scope() as session:
        entries = session.scalars(select(AuditEntry).where(AuditEntry.action.startswith("refused."))).all()
    found = [(entry.action, entry.username, entry.via, entry.object_id) for entry in entries]
    who = ("limited viewer", "token limited viewer")
    assert found == [("refused.right", *who, 0), ("refused.object", *who, foreign["group"])]
    assert f"/jobs/{met.ids['job']}/stop" in str(entries[0].changes)
