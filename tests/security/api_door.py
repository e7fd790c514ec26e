"""API v1 as a door of the matrix, with each kind of token.

A user's token has every right; the user has those of its role on the own group and every right on another, so
that only the object's own group decides. The rights of a service token are its own.
"""

import itertools
import re
from collections.abc import Mapping
from typing import Any

from flask import Flask
from sqlalchemy import select
from werkzeug.test import TestResponse

from app.clock import DAY_MS, now_ms
from app.database.engine import read_scope, session_scope
from app.domain.access.api_tokens import Grant
from app.domain.access.permissions import ALL_RIGHTS, Right
from app.domain.calendars.drafts import CalendarDraft
from app.domain.code.document import read_document
from app.models.api_token import ApiToken
from app.models.calendar import JobBlackout
from app.models.drain import Drain
from app.models.mute import Mute
from app.models.promise import Incident
from app.services.accounts import api_tokens
from app.services.accounts.actors import actor_of
from app.services.accounts.api_tokens import TokenDraft
from app.services.calendars.calendars import put_calendar
from app.services.code.apply import apply_document, prepare_apply
from app.services.code.request import CodeRequest
from app.store.accounts import users
from app.store.calendars.calendars import find_calendar
from tests.security import places
from tests.security.api_endpoints import OPERATIONS, ApiCall
from tests.security.endpoints import INSTANCE, Needs
from tests.security.places import MISSING, NOWHERE, Meaning
from tests.support.api_v1 import Api, app_of, make_token
from tests.support.console import ACTOR, Console, add_group, add_user
from tests.support.factories import save
from tests.support.security import COOKIE

Ids = Mapping[str, Any]
_numbers = itertools.count(1)
_RIGHTS: dict[str, frozenset[Right]] = {
    "viewer": frozenset({Right.VIEW}),
    "operator": frozenset({Right.VIEW, Right.OPERATE}),
    "editor": frozenset({Right.VIEW, Right.EDIT}),
    "coder": frozenset({Right.VIEW, Right.GLUE}),
}


class ApiDoor:
    """Every operation of the API; what a role may do is sent with ``dry_run``."""

    without_access = (
        "no token",
        "login cookie",
        "unknown",
        "malformed",
        "expired",
        "revoked",
        "disabled user",
    )
    #: of users; "limited": of service tokens for the own group only
    rights = (
        _RIGHTS | {f"limited {role}": rights for role, rights in _RIGHTS.items()} | {"all groups": ALL_RIGHTS}
    )
    of_several_groups = tuple(_RIGHTS)
    calls = [(operation, call) for operation, calls in OPERATIONS.items() for call in calls]
    by_content: frozenset[str] = frozenset()
    also: frozenset[Meaning] = frozenset()
    nowhere: Ids = NOWHERE._asdict() | dict.fromkeys(
        ("mute", "drain", "service", "apply", "incident", "blackout"), MISSING
    )

    def __init__(self, app: Flask) -> None:
        self.app = app
        self.api = app_of(app.config["XXL_JOB"])

    def meet(self, role: str) -> "ApiClient":
        place = self.make_place("own")
        if role in self.without_access:
            token, cookie = without_access(role, self.app)
            return ApiClient(Api(self.api, token), place, cookie)
        if role in _RIGHTS:
            other = add_group(f"granted-{role}")
            token = personal(role, [place["group"], other], {place["group"]: _RIGHTS[role]})
        elif role.startswith("limited "):
            token = make_token(*self.rights[role], group_ids=[place["group"]], name=role)
        elif role == "foreign":
            token = make_token(*ALL_RIGHTS, group_ids=[add_group("foreign-app")], name=role)
        else:
            token = make_token(*ALL_RIGHTS, admin=role == "admin", name=role)
        return ApiClient(Api(self.api, token), place)

    def make_place(self, title: str) -> Ids:
        """Store a group with its objects, and a calendar; return their ids."""
        place = places.make_place(title)
        with session_scope() as session:
            if find_calendar(session, "cn") is None:
                put_calendar(session, "cn", CalendarDraft(), actor=ACTOR, clock=now_ms)
        mute = save(Mute(job_id=place.code, group_id=0, since_ms=now_ms(), until_ms=now_ms() + DAY_MS))
        drain = save(Drain(group_id=place.group, address=INSTANCE, since_ms=now_ms()))
        incident = save(
            Incident(
                incident_key=f"i:{place.code}:1",
                job_id=place.code,
                group_id=place.group,
                state="open",
                logical_ms=1,
                opened_ms=now_ms(),
                kinds='{"1": {"kind": "starts_within", "s": 60}}',
            )
        )
        tomorrow = {"from_ms": now_ms() + DAY_MS, "created_ms": now_ms(), "reason": f"{title} reason"}
        blackout = save(JobBlackout(group_id=place.group, **tomorrow))
        service = save(ApiToken(name=f"{title} service", token_hash=f"of {place.app_name}", rights="view"))
        made = {
            "mute": mute.id,
            "incident": incident.id,
            "drain": drain.id,
            "blackout": blackout.id,
            "service": service.id,
            "apply": apply_of(title, place.app_name),
        }
        return {**place._asdict(), **made}

    def snapshot(self) -> list[Any]:
        """Of tokens without their last use."""
        with read_scope() as session:
            tokens = session.execute(select(ApiToken.id, ApiToken.revoked_ms, ApiToken.group_ids)).all()
        return [places.snapshot(without=ApiToken), sorted((tuple(row) for row in tokens), key=repr)]

    def meaning_of(self, answer: TestResponse) -> Meaning:
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

    def shape_of(self, answer: TestResponse, place: Ids) -> object:
        status, detail = outcome_of(answer)
        return status, re.sub(r"[0-9]+", "#", detail.replace(place["app_name"], "…"))

    def names_object(self, call: ApiCall) -> bool:
        return "{" in f"{call.path}{call.body}"

    def hides_foreign(self, name: str, answer: TestResponse) -> bool:
        is_empty = (answer.json or {}).get("items") == []
        return is_empty or outcome_of(answer)[0] in (403, 404, 422)

    def own_text(self, call: ApiCall, answer: TestResponse, place: Ids) -> str:
        if call.is_list:
            assert answer.status_code == 200, (call, answer.text)
            return answer.text if call.needs is not Needs.ANYONE else ""
        return answer.text.replace(place["app_name"], "")

    def check(self, answer: TestResponse) -> None:
        assert (answer.status_code == 401) == ("WWW-Authenticate" in answer.headers)
        assert "Set-Cookie" not in answer.headers


class ApiClient:
    """Program with a token, or with the cookie of a browser."""

    def __init__(self, api: Api, place: Ids, cookie: str = "") -> None:
        self.api, self.place, self._cookie = api, place, cookie

    def send(self, name: str, call: ApiCall, place: Ids, *, dry_run: bool = False) -> TestResponse:
        method, path = name.split()[0], filled(call.path, place)
        if dry_run and method != "GET":
            path += "&dry_run=true" if "?" in path else "?dry_run=true"
        headers = {"Cookie": self._cookie} if self._cookie else {}
        high, low = divmod(next(_numbers), 256)
        address = {"REMOTE_ADDR": f"10.{high}.{low}.1"}  # each its own, because wrong tokens are throttled
        body = filled(call.body, place)
        return self.api(method, path, body, headers=headers, environ_overrides=address, buffered=True)

    def try_out(self, name: str, call: ApiCall) -> TestResponse:
        return self.send(name, call, self.place, dry_run=True)


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


def without_access(role: str, app: Flask) -> tuple[str, str]:
    """Return token and cookie of a request that has no access."""
    if role in ("no token", "login cookie"):
        cookie = Console(app, app.test_client()).log_in().client.get_cookie(COOKIE)
        assert cookie is not None
        return "", f"{COOKIE}={cookie.value}" if role == "login cookie" else ""
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


def outcome_of(answer: TestResponse) -> tuple[int, str]:
    """Return status and detail of an answer; of a batch those of its only entry."""
    body = answer.json or {}
    if answer.status_code == 202 and "items" in body:
        (item,) = body["items"]
        return item.get("status", 202), item.get("detail", "")
    return answer.status_code, body.get("detail", "")
