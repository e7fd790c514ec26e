"""Operations of API v1: none without an entry in the matrix, no token in a log, none instead of a login."""

import logging

import pytest
from flask import Flask
from sqlalchemy import select

from app.api.v1.endpoint import PUBLIC
from app.api.v1.resources import all_resources
from app.database.engine import read_scope
from app.models.api_token import ApiToken
from app.models.audit import AuditEntry
from app.services.auditing import refusals
from tests.security.api_door import ApiClient, ApiDoor, filled
from tests.security.api_endpoints import OPERATIONS
from tests.security.endpoints import Needs
from tests.support.console import CONTEXT, Console

#: rights do not depend on the database
pytestmark = [pytest.mark.databases("sqlite"), pytest.mark.usefixtures("database")]


@pytest.fixture
def door(app: Flask) -> ApiDoor:
    return ApiDoor(app)


def test_every_operation_has_its_expected_answers(door: ApiDoor) -> None:
    operations = [operation for resource in all_resources() for operation in resource.operations]
    declared = {f"{operation.method} {operation.path}" for operation in operations}
    assert declared - OPERATIONS.keys() == set(), "operations without an entry"
    assert OPERATIONS.keys() - declared == set(), "entries without an operation"
    public = {f"{each.method} {each.path}" for each in operations if each.right == PUBLIC}
    assert public == {key for key, calls in OPERATIONS.items() if calls[0].needs is Needs.ANYONE}
    urls = door.api.url_map.bind("localhost")
    for key, calls in OPERATIONS.items():
        method, path = key.split()
        for each in calls:
            rule, _arguments = urls.match(
                filled(each.path, ApiDoor.nowhere).partition("?")[0], method, return_rule=True
            )
            assert rule.rule == path, each


def test_no_token_is_logged_kept_or_answered(door: ApiDoor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = door.meet("admin")
    wrong = "xxl_" + "b" * 43
    answers = [client.try_out(name, call) for name, call in door.calls]
    answers += [ApiClient(client.api.with_token(wrong), client.place).try_out(*door.calls[0])]
    answers += [client.api.get(f"/{client.api.token}"), client.api.get(f"/jobs?token={client.api.token}")]
    refusals.recorder.flush(last=True)
    with read_scope() as session:
        entries = [vars(entry) for entry in session.scalars(select(AuditEntry))]
        rows = [vars(row) for row in session.scalars(select(ApiToken))]
    assert any(entry["action"] == "refused.api_token" for entry in entries)
    for secret in (client.api.token, wrong):
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


def test_refused_requests_are_audited_with_the_token(door: ApiDoor) -> None:
    client, foreign = door.meet("limited viewer"), door.make_place("secret")
    client.api.post(f"/jobs/{client.place['job']}/stop")
    client.api.get(f"/groups/{foreign['group']}")
    refusals.recorder.flush(last=True)
    with read_scope() as session:
        entries = session.scalars(select(AuditEntry).where(AuditEntry.action.startswith("refused."))).all()
    found = [(entry.action, entry.username, entry.via, entry.object_id) for entry in entries]
    who = ("limited viewer", "token limited viewer")
    assert found == [("refused.right", *who, 0), ("refused.object", *who, foreign["group"])]
    assert f"/jobs/{client.place['job']}/stop" in str(entries[0].changes)
