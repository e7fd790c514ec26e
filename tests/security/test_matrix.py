"""Console and API, each kind of caller, own, foreign and missing objects: the expected answers.

A foreign object answers like a missing one, a missing right is reported, and a refused request changes
nothing.
"""

import re
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import Client

from app.domain.access.permissions import ALL_RIGHTS, Right
from app.settings.home import access_tokens
from tests.security.api_door import ApiDoor
from tests.security.console_door import ConsoleDoor
from tests.security.endpoints import ENDPOINTS, Needs
from tests.security.places import Meaning, filled
from tests.support.console import CONTEXT, Console
from tests.support.plan import every_database

#: rights do not depend on the database
pytestmark = pytest.mark.databases("sqlite")

DOORS: dict[str, Any] = {"console": ConsoleDoor, "api": ApiDoor}
#: endpoints that only read and answer a POST like a GET, or do nothing with a GET but lead back
READS = re.compile(r".*/(pageList|getJobsByGroup|logDetailCat|loadById|nextTriggerTime|chartInfo|test)")
#: invalid tokens of the API send every so many operations
SHARES = 3
MORE_THAN_VIEWER = re.compile("(operator|editor|coder)$")


def roles(**roles_of: tuple[str, ...]) -> pytest.MarkDecorator:
    """Return the parameters ``kind`` and ``role`` of a test."""
    return pytest.mark.parametrize(
        ("kind", "role"), [(kind, role) for kind, names in roles_of.items() for role in names]
    )


def everyone(kind: str) -> tuple[str, ...]:
    """Return all roles of a door but the administrator."""
    return (*DOORS[kind].without_access, *DOORS[kind].rights)


def expected_of(door: Any, call: Any, role: str) -> Meaning:
    """Return the answer to a role for its own object; a list needs its right on any group."""
    needs = call.needs
    if needs is Needs.ANYONE:
        return Meaning.DONE
    if role in door.without_access:
        return Meaning.LOG_IN
    if needs is Needs.LOGIN or role == "admin":
        return Meaning.DONE
    if needs is Needs.ADMIN:
        return Meaning.DENIED
    rights = ALL_RIGHTS if call.is_list and role in door.of_several_groups else door.rights[role]
    return Meaning.DONE if Right(needs.value) in rights else Meaning.DENIED


@roles(console=everyone("console"), api=everyone("api"))
def test_own_objects(app: Flask, kind: str, role: str, pytestconfig: pytest.Config) -> None:
    check_own_objects(DOORS[kind](app), role, is_whole=pytestconfig.getoption("all"))


@every_database
@pytest.mark.parametrize("kind", DOORS)
def test_an_administrator_may_send_every_request(app: Flask, kind: str) -> None:
    """So each statement of console and API runs on each database."""
    check_own_objects(DOORS[kind](app), "admin")


def calls_of(door: Any, role: str) -> list[tuple[str, Any]]:
    """Return what a role sends by default: each invalid token of the API to every third operation.

    Together they meet each operation twice; without a token, all operations are sent.
    """
    invalid = [each for each in door.without_access if each != "no token"]
    if not isinstance(door, ApiDoor) or role not in invalid:
        return list(door.calls)
    return list(door.calls[invalid.index(role) % SHARES :: SHARES])


def check_own_objects(door: Any, role: str, *, is_whole: bool = True) -> None:
    """Send every request about the objects of the own group; a refused one has to change nothing.

    If not ``is_whole``, who may do more than a viewer tries out only that: a viewer tries out the rest.
    """
    client, viewer = door.meet(role), MORE_THAN_VIEWER.sub("viewer", role)
    before, allowed = door.snapshot(), []
    for name, call in door.calls if is_whole else calls_of(door, role):
        expected = expected_of(door, call, role)
        if expected is Meaning.DONE:
            is_tried_out = viewer != role and expected_of(door, call, viewer) is Meaning.DONE
            if is_whole or not is_tried_out:
                allowed.append((name, call))
            continue
        answer = client.send(name, call, client.place)
        door.check(answer)
        meaning = door.meaning_of(answer)
        is_by_content = name in door.by_content and meaning is Meaning.REFUSED and expected is Meaning.DENIED
        assert meaning is expected or is_by_content, (name, call, meaning, answer.text[:400])
    assert door.snapshot() == before, "a refused request has changed something"
    for name, call in allowed:
        answer = client.try_out(name, call)
        door.check(answer)
        meaning = door.meaning_of(answer)
        is_expected = meaning is Meaning.DONE or meaning in door.also
        assert is_expected or answer.status_code in getattr(call, "also", ()), (name, call, answer.text[:400])
    if isinstance(door, ApiDoor):
        assert door.snapshot() == before, "a dry run has changed something"


@roles(console=("viewer",), api=("viewer", "foreign"))
def test_foreign_objects_answer_like_missing_ones(app: Flask, kind: str, role: str) -> None:
    door = DOORS[kind](app)
    client, foreign = door.meet(role), door.make_place("confidential")
    before = door.snapshot()
    for name, call in door.calls:
        if call.is_list or not door.names_object(call) or call.needs is Needs.ADMIN:
            continue
        answer, none = client.send(name, call, foreign), client.send(name, call, door.nowhere)
        assert door.shape_of(answer, foreign) == door.shape_of(none, door.nowhere), (name, call)
        assert door.hides_foreign(name, answer), (name, call, answer.text)
        assert "confidential" not in door.own_text(call, answer, foreign), (name, call)
    assert door.snapshot() == before, "a refused request has changed something"


@roles(console=("outsider", "viewer"), api=("viewer", "limited coder", "foreign"))
def test_lists_contain_nothing_foreign(app: Flask, kind: str, role: str) -> None:
    door = DOORS[kind](app)
    client, foreign = door.meet(role), door.make_place("confidential")
    for name, call in door.calls:
        if call.is_list and call.needs is not Needs.ADMIN:
            answer = client.send(name, call, foreign)
            assert door.meaning_of(answer) is not Meaning.ERROR
            assert "confidential" not in door.own_text(call, answer, foreign), (name, call)


def test_an_administrator_finds_no_missing_object(app: Flask) -> None:
    door = ConsoleDoor(app)
    client, before = door.meet("admin"), door.snapshot()
    for name, call in door.calls:
        if not call.is_list and door.names_object(call):
            answer = client.send(name, call, door.nowhere)
            assert door.hides_foreign(name, answer), (name, call, answer.text)
    assert door.snapshot() == before, "a refused request has changed something"


def test_every_endpoint_has_its_expected_answers(app: Flask) -> None:
    assert {rule.endpoint for rule in app.url_map.iter_rules()} == ENDPOINTS.keys()
    urls = app.url_map.bind("localhost")
    for endpoint, call in ConsoleDoor.calls:
        path = filled(call.path, ConsoleDoor.nowhere).partition("?")[0]
        assert urls.match(path, "GET" if call.form is None else "POST")[0] == endpoint, call


def test_every_change_is_in_the_matrix(app: Flask) -> None:
    for rule in app.url_map.iter_rules():
        if "POST" in (rule.methods or set()) and READS.fullmatch(rule.rule) is None:
            assert any(call.form is not None for call in ENDPOINTS[rule.endpoint]), rule


@pytest.mark.parametrize("action", ["registry", "registryRemove", "registryCheck", "callback"])
def test_the_executor_api_takes_the_token_only(app: Flask, action: str) -> None:
    """A login is none there, not even an administrator's, and a page sent by a browser has no token."""
    body = '{"registryGroup":"EXECUTOR","registryKey":"x-app","registryValue":"http://10.0.0.5:9999/"}'
    data = "[]" if action == "callback" else body
    token = access_tokens(app.config["XXL_JOB"])[0]
    console = Console(app, app.test_client()).log_in()

    def code(client: Client, **headers: str) -> object:
        return client.post(f"{CONTEXT}/api/{action}", data=data, headers=headers).get_json()["code"]

    assert code(console.client) == 500
    assert code(console.client, **{"XXL-JOB-ACCESS-TOKEN": "wrong-token-0123456"}) == 500
    assert code(app.test_client(), **{"XXL-JOB-ACCESS-TOKEN": token}) == 200
