"""Every endpoint, each kind of caller, own, foreign and missing objects: the expected answer.

A foreign object answers like a missing one, a missing right is reported, and a refused request changes
nothing. A normal user has the rights of its role on its own group, and every right on another group, so that
only the object's own group decides; an outsider has no group at all.
"""

import itertools
import re

import pytest
from flask import Flask
from werkzeug.test import Client

from app.domain.access.permissions import ALL_RIGHTS, Right
from app.settings.home import access_tokens
from tests.security.endpoints import ENDPOINTS, Call, Needs
from tests.security.places import (
    NOWHERE,
    Caller,
    Meaning,
    Place,
    answer_of,
    filled,
    has_object,
    make_place,
    meaning_of,
    owned_by,
    snapshot,
)
from tests.support.console import CONTEXT, Console, add_group, add_user
from tests.support.security import DESTRUCTIVE

#: rights do not depend on the database
pytestmark = pytest.mark.databases("sqlite")

#: normal users: role -> rights on the own group
RIGHTS: dict[str, frozenset[Right]] = {
    "outsider": frozenset(),
    "viewer": frozenset({Right.VIEW}),
    "operator": frozenset({Right.VIEW, Right.OPERATE}),
    "editor": frozenset({Right.VIEW, Right.EDIT}),
    "coder": frozenset({Right.VIEW, Right.GLUE}),
}
#: requests without a login; API tokens for users, once there are some, become callers beside these
WITHOUT_LOGIN = ("anonymous", "executor token", "wrong token")
CALLS = [(endpoint, call) for endpoint, calls in ENDPOINTS.items() for call in calls]
#: endpoints that only read and answer a POST like a GET, or do nothing with a GET but lead back
READS = re.compile(r".*/(pageList|getJobsByGroup|logDetailCat|loadById|nextTriggerTime|chartInfo|test)")
#: a missing object is a success for them, as in the original; of all runs an administrator may clear none
FORGIVING = {
    "scripting_jobs.remove",
    "scripting_users.remove",
    "scripting_users.update",
    "scripting_logs.clear_log",
}
#: names the group in a file, and reports problems with it as errors of the file
BY_FILE = "job_transfer.import_file"
_numbers = itertools.count(1)


def meet(role: str, app: Flask) -> tuple[Caller, Place]:
    """Return a caller of a role and a place of its own."""
    place, console = make_place("own"), Console(app, app.test_client())
    if role in WITHOUT_LOGIN:
        token = access_tokens(app.config["XXL_JOB"])[0] if role == "executor token" else "wrong-token-0123456"
        return Caller(console, token="" if role == "anonymous" else token), place
    name = "admin"
    if role in RIGHTS:
        name, rights = f"{role}{next(_numbers)}", RIGHTS[role]
        groups = [place.group, add_group(f"granted-{name}")] if rights else []
        add_user(name, groups, {place.group: rights} if rights else None)
    return Caller(console, name), owned_by(name, place)


def expected(call: Call, role: str) -> Meaning:
    """Return the answer to a role for its own object; a list needs its right on any group."""
    needs = call.needs
    if needs is Needs.ANYONE:
        return Meaning.DONE
    if role in WITHOUT_LOGIN:
        return Meaning.LOG_IN
    if needs is Needs.LOGIN or role == "admin":
        return Meaning.DONE
    if needs is Needs.ADMIN:
        return Meaning.DENIED
    own = ALL_RIGHTS if call.is_list and RIGHTS[role] else RIGHTS[role]
    return Meaning.DONE if Right(needs.value) in own else Meaning.DENIED


def test_every_endpoint_has_its_expected_answers(app: Flask) -> None:
    assert {rule.endpoint for rule in app.url_map.iter_rules()} == ENDPOINTS.keys()
    urls = app.url_map.bind("localhost")
    for endpoint, call in CALLS:
        path = filled(call.path, NOWHERE).partition("?")[0]
        assert urls.match(path, "GET" if call.form is None else "POST")[0] == endpoint, call


def test_every_change_is_in_the_matrix(app: Flask) -> None:
    for rule in app.url_map.iter_rules():
        if "POST" in (rule.methods or set()) and READS.fullmatch(rule.rule) is None:
            assert any(call.form is not None for call in ENDPOINTS[rule.endpoint]), rule


@pytest.mark.parametrize("role", [*WITHOUT_LOGIN, *RIGHTS, "admin"])
def test_own_objects(app: Flask, role: str) -> None:
    caller, place = meet(role, app)
    before = snapshot()
    allowed = []
    for endpoint, call in CALLS:
        wanted = expected(call, role)
        if wanted is Meaning.DONE:
            allowed.append((endpoint, call))
            continue
        meaning = meaning_of(caller.send(call, place))
        by_file = endpoint == BY_FILE and wanted is Meaning.DENIED and meaning is Meaning.REFUSED
        assert meaning is wanted or by_file, (endpoint, call, meaning)
    assert snapshot() == before, "a refused request has changed something"
    for endpoint, call in allowed:
        meaning = meaning_of(caller.send(call, place))
        assert meaning in (Meaning.DONE, Meaning.REFUSED), (endpoint, call, meaning)
        if call.form is not None and DESTRUCTIVE.match(call.path):
            caller, place = meet(role, app)


def test_foreign_objects_answer_like_missing_ones(app: Flask) -> None:
    caller, _ = meet("viewer", app)
    foreign = make_place("secret")
    before = snapshot()
    for endpoint, call in CALLS:
        if call.is_list or not has_object(call) or call.needs is Needs.ADMIN:
            continue
        answer, none = caller.send(call, foreign), caller.send(call, NOWHERE)
        assert answer_of(answer) == answer_of(none), (endpoint, call)
        wanted = (Meaning.MISSING, Meaning.REFUSED)
        assert meaning_of(answer) in wanted or endpoint in FORGIVING, (endpoint, call)
        assert "secret" not in answer.text.replace(foreign.app_name, ""), (endpoint, call)
    assert snapshot() == before, "a refused request has changed something"


def test_an_administrator_finds_no_missing_object(app: Flask) -> None:
    caller, _ = meet("admin", app)
    before = snapshot()
    for endpoint, call in CALLS:
        if not call.is_list and has_object(call):
            meaning = meaning_of(caller.send(call, NOWHERE))
            assert meaning in (Meaning.MISSING, Meaning.REFUSED) or endpoint in FORGIVING, (endpoint, call)
    assert snapshot() == before, "a refused request has changed something"


@pytest.mark.parametrize("role", ["outsider", "viewer"])
def test_lists_contain_nothing_foreign(app: Flask, role: str) -> None:
    caller, _ = meet(role, app)
    foreign = make_place("secret")
    for endpoint, call in CALLS:
        if call.is_list and call.needs is not Needs.ADMIN:
            answer = caller.send(call, foreign)
            path = filled(call.path, foreign)
            assert meaning_of(answer) is not Meaning.ERROR
            shown = answer.text.replace(path, "").replace("q=secret", "")
            assert "secret" not in shown, (endpoint, call)


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
