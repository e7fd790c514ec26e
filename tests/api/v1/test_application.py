"""The application of API v1: what every operation gets, shown on a small resource of executor groups."""

import itertools
import threading
from typing import Any

import pytest
from pydantic import Field
from sqlalchemy import func, select, update

from app.api.v1.endpoint import ADMIN, ANY_TOKEN, PUBLIC, Call, Made, Resource
from app.api.v1.schemas.base import Instant, Listed, ListQuery, Schema
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, NotFound
from app.models.api_token import IdempotentRequest
from app.models.group import Group
from app.settings.config import Config
from tests.support.api_v1 import ALL, Api, app_of, make_token
from tests.support.factories import make_group
from tests.support.plan import every_database


class PartIn(Schema):
    """An object in a body."""

    size: int = 0


class ThingIn(Schema):
    """A body."""

    title: str = Field(min_length=1, max_length=12)
    size: int = Field(0, ge=0, le=9)
    since: Instant | None = None
    parts: dict[str, PartIn] = Field(default_factory=dict)
    more: list[PartIn] = Field(default_factory=list)


class Thing(Schema):
    """An answer."""

    id: int
    title: str
    since: Instant | None = None


things = Resource("things", "Things", {"wireTitle": "title"})


@things.get("/things/<int:thing_id>", answer=Thing, etag=True)
def get_thing(call: Call, thing_id: int) -> Thing:
    """Return a thing."""
    found = call.session.get(Group, thing_id)
    if found is None:
        raise NotFound("there is no such thing")
    return Thing(id=found.id, title=found.title)


@things.get("/things", answer=Listed[Thing], query=ListQuery)
def list_things(call: Call) -> Listed[Thing]:
    """List things."""
    return Listed[Thing](items=[], next_cursor=call.query.cursor or None)


@things.post("/things", body=ThingIn, answer=Thing, status=201, right=Right.EDIT)
def add_thing(call: Call, body: ThingIn) -> Made:
    """Add a thing."""
    if body.title == "wrong":
        error = InvalidInput("wireTitle", N_("%(field)s is wrong", field="wireTitle"))
        error.further_errors = (InvalidInput("size", "too"),)
        raise error
    if body.title == "broken":
        raise RuntimeError("secret")
    group = Group(title=body.title, app_name=f"app-{body.title}", address_type=0)
    call.session.add(group)
    call.session.flush()
    return Made(Thing(id=group.id, title=group.title, since=body.since), f"/things/{group.id}")


def _prepare_thing(_call: Call, body: ThingIn) -> str:
    """Return the AppName of a thing; refuses one that is there."""
    app_name = f"app-{body.title}"
    with read_scope() as session:
        if session.scalar(select(Group.id).where(Group.app_name == app_name)):
            raise Conflict("it is there")
    return app_name


@things.post("/prepared", body=ThingIn, answer=Thing, status=201, right=Right.EDIT, prepare=_prepare_thing)
def add_prepared(call: Call, body: ThingIn, preparation: str) -> Made:
    """Add a thing whose AppName is chosen outside the transaction."""
    group = Group(title=body.title, app_name=preparation, address_type=0)
    call.session.add(group)
    call.session.flush()
    return Made(Thing(id=group.id, title=group.title), f"/things/{group.id}")


@things.patch("/things/<int:thing_id>", body=ThingIn, answer=Thing, right=Right.EDIT, etag=True)
def change_thing(call: Call, thing_id: int, body: ThingIn) -> Thing:
    """Change a thing."""
    group = call.session.get_one(Group, thing_id)
    group.title = body.title
    return Thing(id=group.id, title=group.title)


class Watched(Schema):
    """An answer with a member that changes by itself."""

    VOLATILE = frozenset({"reads"})

    title: str
    reads: int


reads = itertools.count(1)


@things.get("/watched/<int:thing_id>", answer=Watched, etag=True)
def get_watched(call: Call, thing_id: int) -> Watched:
    """Return a thing and how often it was read."""
    return Watched(title=call.session.get_one(Group, thing_id).title, reads=next(reads))


@things.delete("/watched/<int:thing_id>", right=ADMIN, transaction=False)
def delete_watched(_call: Call, thing_id: int) -> None:
    """Delete a thing outside the transaction of the request."""
    with session_scope() as session:
        session.delete(session.get_one(Group, thing_id))


@things.delete("/things/<int:thing_id>", right=ADMIN)
def delete_thing(call: Call, thing_id: int) -> None:
    """Delete a thing."""
    call.session.delete(call.session.get_one(Group, thing_id))


@things.post(
    "/things/<int:thing_id>/call", right=ANY_TOKEN, transaction=False, calls_executors=True, status=204
)
def call_thing(call: Call, thing_id: int) -> None:
    """Make a group outside the transaction of the request."""
    if thing_id == 1:
        raise Conflict("not this one")
    if not call.dry_run:
        make_group(title=f"t{thing_id}", app_name=f"app-{thing_id}")


@things.get("/public", right=PUBLIC, answer=Thing)
def public(_call: Call) -> Thing:
    """Return what all may read."""
    return Thing(id=1, title="open")


@pytest.fixture
def api(config: Config, database: str) -> Api:
    return Api(app_of(config, [things]), make_token(*ALL, admin=True))


def titles() -> list[str]:
    with read_scope() as session:
        return list(session.scalars(select(Group.title).order_by(Group.id)))


def test_an_added_object_is_answered_with_its_path(api: Api) -> None:
    answer = api.post("/things", {"title": "one", "since": "2030-01-31T08:00:00+08:00"})
    assert (answer.status_code, answer.headers["Location"]) == (201, "/things/1")
    assert answer.json == {"id": 1, "title": "one", "since": "2030-01-31T00:00:00.000Z"}
    assert titles() == ["one"]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"title"}),
        ({"title": "", "size": 10}, {"title", "size"}),
        ({"title": "x", "size": "1"}, {"size"}),
        ({"title": "x", "size": True}, {"size"}),
        ({"title": "x", "color": "red"}, {"color"}),
        ({"title": "x", "since": 5}, {"since"}),
        ({"title": "x", "since": "2030-01-31T08:00:00"}, {"since"}),
        ({"title": "x", "since": "2030-01-31T08:00:00 08:00"}, {"since"}),
        ({"title": "x", "since": "0001-01-01T00:00:00+14:00"}, {"since"}),
        ({"title": "wrong"}, {"title", "size"}),
        ([], {"body"}),
    ],
)
def test_every_invalid_value_is_named(api: Api, body: Any, fields: set[str]) -> None:
    answer = api.post("/things", body)
    assert (answer.status_code, answer.content_type) == (422, "application/problem+json")
    assert {each["field"] for each in answer.json["errors"]} == fields
    assert all(each["reason"] for each in answer.json["errors"])
    assert "wireTitle" not in answer.text
    assert titles() == []


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b'{"title": "x", "title": "y"}', {"title"}),
        (b'{"title": "x", "size": 1, "titl\\u0065": "x", "size": 1, "size": 1}', {"title", "size"}),
        (b'{"title": "x", "parts": {"a": {"size": 1}, "b": {"size": 1, "size": 2}}}', {"parts.b.size"}),
        (b'{"title": "x", "parts": {"a": {}, "a": {"size": 2}}}', {"parts.a"}),
        (b'{"title": "x", "more": [{}, {"size": 1, "size": 2}]}', {"more.1.size"}),
    ],
)
def test_a_member_that_is_given_twice_is_refused(api: Api, body: bytes, fields: set[str]) -> None:
    answer = api.post("/things", data=body, content_type="application/json")
    assert answer.status_code == 422
    assert {each["field"] for each in answer.json["errors"]} == fields
    assert {each["reason"] for each in answer.json["errors"]} == {"is given more than once"}
    assert titles() == []


def test_equal_members_of_different_objects_are_not_repeated(api: Api) -> None:
    body = b'{"title": "x", "more": [{"size": 1}, {"size": 1}], "parts": {"size": {"size": 7}}}'
    assert api.post("/things", data=body, content_type="application/json").status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "more", "status"),
    [
        ("POST", "/things", {"data": b"{", "content_type": "application/json"}, 400),
        ("POST", "/things", {"data": b"\xff", "content_type": "application/json"}, 400),
        ("POST", "/things", {"data": b'{"title": "\\ud800"}', "content_type": "application/json"}, 400),
        ("POST", "/things", {"data": b"title=x", "content_type": "text/plain"}, 415),
        ("POST", "/things", {"json": {"title": "broken"}}, 500),
        ("POST", "/things?dry_run=1", {"json": {"title": "x"}}, 422),
        ("POST", "/things?color=red", {"json": {"title": "x"}}, 422),
        ("GET", "/things?dry_run=true", {}, 422),
        ("GET", "/things?limit=201", {}, 422),
        ("GET", "/things?limit=1&limit=2", {}, 422),
        ("GET", "/things/7", {}, 404),
        ("GET", "/things/99999999999999999999", {}, 404),
        ("GET", "/elsewhere", {}, 404),
        ("PUT", "/things", {"json": {}}, 405),
        ("DELETE", "/things/7", {"data": b"x"}, 422),
    ],
)
def test_an_error_is_a_problem(api: Api, method: str, path: str, more: dict[str, Any], status: int) -> None:
    answer = api(method, path, **more)
    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    assert answer.json["status"] == status
    assert "secret" not in answer.text
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("header", "challenged"),
    [("", True), ("Basic YTpi", True), ("Bearer", True), ("Bearer xxl_unknown", True), ("bearer {}", False)],
)
def test_only_a_bearer_token_gives_access(api: Api, header: str, challenged: bool) -> None:
    headers = {"Authorization": header.format(api.token), "Cookie": f"XXL_JOB_LOGIN_IDENTITY={api.token}"}
    answer = api.with_token("").get("/things", headers=headers if header else {})
    assert answer.status_code == (401 if challenged else 200)
    assert ("WWW-Authenticate" in answer.headers) == challenged


def test_a_public_operation_needs_no_token(api: Api) -> None:
    assert api.with_token("").get("/public").json["title"] == "open"


def test_the_right_is_needed_somewhere(api: Api) -> None:
    api.post("/things", {"title": "one"})
    reader = api.with_token(make_token(Right.VIEW, name="reader"))
    assert reader.get("/things").status_code == 200
    assert reader.post("/things", {"title": "x"}).status_code == 403
    editor = api.with_token(make_token(Right.VIEW, Right.EDIT, name="editor"))
    assert editor.post("/things", {"title": "x"}).status_code == 201
    assert editor.delete("/things/1").status_code == 403


def test_a_dry_run_answers_as_usual_and_keeps_nothing(api: Api) -> None:
    headers = {"Idempotency-Key": "k"}
    answer = api.post("/things?dry_run=true", {"title": "one"}, headers=headers)
    assert (answer.status_code, answer.headers["X-Dry-Run"], answer.json["title"]) == (201, "true", "one")
    assert api.post("/things/5/call?dry_run=true").headers["X-Dry-Run"] == "true"
    assert titles() == []
    assert "X-Dry-Run" not in api.post("/things", {"title": "one"}, headers=headers).headers


@pytest.mark.parametrize("path", ["/things", "/prepared", "/things/5/call"])
def test_a_repeated_request_is_answered_again_and_not_done_again(api: Api, path: str) -> None:
    body = {"title": "one"} if path != "/things/5/call" else None
    first, second = (api.post(path, body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert (second.status_code, second.data, second.headers.get("Location")) == (
        first.status_code,
        first.data,
        first.headers.get("Location"),
    )
    assert second.headers["Idempotent-Replayed"] == "true"
    assert len(titles()) == 1
    other = api.with_token(make_token(*ALL, admin=True, name="other"))
    if body:
        assert other.post(path, {"title": "two"}, headers={"Idempotency-Key": "k"}).status_code == 201


def test_a_repeated_change_is_answered_with_the_version_it_made(api: Api) -> None:
    api.post("/things", {"title": "one"})
    first, second = (
        api.patch("/things/1", {"title": "zwölf"}, headers={"Idempotency-Key": "k"}) for _ in range(2)
    )
    assert second.headers["Idempotent-Replayed"] == "true"
    assert second.headers["ETag"] == first.headers["ETag"] == api.get("/things/1").headers["ETag"]
    with session_scope() as session:  # as another version of the program would answer
        session.execute(update(IdempotentRequest).values(body='{"id": 1, "name": "one"}'))
    third = api.patch("/things/1", {"title": "zwölf"}, headers={"Idempotency-Key": "k"})
    assert (third.status_code, third.json, third.headers.get("ETag")) == (200, {"id": 1, "name": "one"}, None)


def test_a_key_belongs_to_one_request(api: Api) -> None:
    api.post("/things", {"title": "one"}, headers={"Idempotency-Key": "k"})
    answer = api.post("/things", {"title": "two"}, headers={"Idempotency-Key": "k"})
    assert (answer.status_code, answer.json["errors"][0]["field"]) == (422, "Idempotency-Key")
    assert api.post("/things", {"title": "x"}, headers={"Idempotency-Key": "two words"}).status_code == 422


@pytest.mark.parametrize("path", ["/things", "/things/1/call"])
def test_the_key_of_a_refused_request_can_be_used_again(api: Api, path: str) -> None:
    headers = {"Idempotency-Key": "k"}
    wrong = {"title": "wrong"} if path == "/things" else None
    assert api.post(path, wrong, headers=headers).status_code in (409, 422)
    assert api.post("/things", {"title": "right"}, headers=headers).status_code == 201


def test_what_cannot_be_prepared_is_refused_and_leaves_the_key(api: Api) -> None:
    headers = {"Idempotency-Key": "k"}
    make_group(title="one", app_name="app-one")
    assert api.post("/prepared", {"title": "one"}, headers=headers).status_code == 409
    assert api.post("/prepared", {"title": "one"}).status_code == 409
    assert api.post("/prepared", {"title": "two"}, headers=headers).status_code == 201
    assert api.post("/prepared", {"title": "one"}, headers=headers).status_code == 422


@every_database
@pytest.mark.parametrize("path", ["/things", "/prepared"])
def test_of_equal_requests_at_the_same_time_one_is_done(api: Api, path: str) -> None:
    answers: list[Any] = []

    def send() -> None:
        answers.append(api.post(path, {"title": "one"}, headers={"Idempotency-Key": "k"}))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(answer.status_code, answer.data) for answer in answers} == {(201, answers[0].data)}
    with read_scope() as session:
        assert session.scalar(select(func.count()).select_from(Group)) == 1


def test_a_change_applies_to_the_version_that_was_read(api: Api) -> None:
    api.post("/things", {"title": "one"})
    etag = api.get("/things/1").headers["ETag"]
    assert api.get("/things/1", headers={"If-None-Match": etag}).status_code == 304
    changed = api.patch("/things/1", {"title": "two"}, headers={"If-Match": etag})
    assert (changed.status_code, changed.headers["ETag"]) == (200, api.get("/things/1").headers["ETag"])
    assert api.patch("/things/1", {"title": "three"}, headers={"If-Match": etag}).status_code == 412
    for malformed in ("", " ", '"', '"""', ","):
        answer = api.patch("/things/1", {"title": "three"}, headers={"If-Match": malformed})
        assert (answer.status_code, answer.json["errors"][0]["field"]) == (422, "If-Match"), malformed
    assert api.delete("/things/1", headers={"If-Match": etag}).status_code == 412
    assert titles() == ["two"]
    assert api.delete("/things/1").status_code == 204


def test_what_changes_by_itself_is_no_other_version_but_is_answered(api: Api) -> None:
    path = f"/watched/{api.post('/things', {'title': 'one'}).json['id']}"
    etag = api.get(path).headers["ETag"]
    assert api.get(path, headers={"If-None-Match": etag}).status_code == 200
    assert api.delete(path, headers={"If-Match": '"other"'}).status_code == 412
    assert titles() == ["one"]
    assert api.delete(path, headers={"If-Match": etag}).status_code == 204


def test_the_document_describes_the_operations(api: Api) -> None:
    document = api.with_token("").get("/openapi.json").json
    assert document["openapi"].startswith("3.1")
    add = document["paths"]["/things"]["post"]
    assert add["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/ThingIn"
    }
    assert {each["name"] for each in add["parameters"]} == {"dry_run", "Idempotency-Key"}
    assert set(document["components"]["schemas"]) >= {"ThingIn", "Thing", "Problem"}
    assert document["paths"]["/public"]["get"]["security"] == []
    assert "502" not in add["responses"]
    assert "502" in document["paths"]["/things/{thing_id}/call"]["post"]["responses"]


def test_a_parameter_that_is_given_twice_says_so(api: Api) -> None:
    answer = api("POST", "/things?dry_run=true&q=a&dry_run=true&q=b", json={"title": "x"})
    assert answer.status_code == 422
    assert answer.json["errors"] == [
        {"field": name, "reason": "is given more than once"} for name in ("dry_run", "q")
    ]
