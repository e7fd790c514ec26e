"""Bad input on every endpoint: never an internal error, and nothing half-written.

A refused request changes no row, and a change has its row in the audit.
"""

import re
from typing import Any
from urllib.parse import parse_qsl

import pytest
from flask import Flask
from hypothesis import strategies as st
from sqlalchemy import func, select
from werkzeug.test import TestResponse

from app.database.engine import read_scope
from app.models.audit import AuditEntry
from app.models.base import Base
from app.models.favourite import Favourite
from app.models.log import JobLog
from app.models.registry import Registration
from app.models.saved_view import SavedView
from app.models.task import Task
from app.models.user import User
from app.settings.home import access_tokens
from tests.console.pages import token_of
from tests.security import endpoints
from tests.security.endpoints import Call
from tests.security.hostile import Pairs, encoded, json_bodies, pairs, try_out
from tests.security.places import TABLES, Meaning, Place, filled, make_place, meaning_of, owned_by
from tests.support.console import CONTEXT, Console
from tests.support.security import DESTRUCTIVE, EXAMPLES

AREAS = ("PUBLIC", "OF_THE_USER", "LISTS", "JOBS", "RUNS", "GROUPS", "INSTALLATION", "VARIABLES")
ENDS_LOGIN = re.compile("/(log|toLogin|account/|user/updatePwd)")
#: tables of a user's own preferences, which are not audited, and of work that is audited when it is done
WITHOUT_AUDIT = (Favourite, SavedView, Task, User)
FORM_TYPE = "application/x-www-form-urlencoded"


class Target:
    """Administrator's client and the objects that requests name."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self.console = Console(app, app.test_client())
        self._renew()
        self._rows = rows()

    def _renew(self) -> None:
        self._log_in()
        self.place: Place = owned_by("admin", make_place("own"))

    def _log_in(self) -> None:
        self.console.log_in()
        self.token = token_of(self.console)

    def attack(self, call: Call, changes: Pairs) -> None:
        """Send a request with hostile fields; check answer and tables."""
        before = self._rows
        answer = self._send(call, changes)
        assert meaning_of(answer) is not Meaning.ERROR, answer.text[:300]
        assert "Internal error" not in answer.text
        if call.form is None:
            return
        after = self._rows = rows()
        self._check_tables(answer, before, after)
        if DESTRUCTIVE.match(call.path) and after != before:
            self._renew()
        elif ENDS_LOGIN.match(call.path):
            self._log_in()
            self.place = owned_by("admin", self.place)
        else:
            return
        self._rows = rows()

    def _send(self, call: Call, changes: Pairs) -> TestResponse:
        path, _, query = filled(call.path, self.place).partition("?")
        given = [*parse_qsl(query, keep_blank_values=True)]
        form = {name: filled(str(value), self.place) for name, value in (call.form or {}).items()}
        changed = {name for name, _ in changes}
        kept = [
            (name.encode(), value.encode())
            for name, value in [*given, *form.items()]
            if name.encode() not in changed
        ]
        if call.form is None:
            return self.console.get(path, query_string=encoded(kept + changes).decode(), buffered=True)
        body = encoded([*kept, *changes, (b"csrf_token", self.token.encode())])
        return self.console.post(path, body, content_type=FORM_TYPE)

    @staticmethod
    def _check_tables(answer: TestResponse, before: dict[Any, Any], after: dict[Any, Any]) -> None:
        changed = {model for model in TABLES if before[model] != after[model]}
        if meaning_of(answer) in (Meaning.REFUSED, Meaning.MISSING, Meaning.DENIED):
            assert changed == set(), "a refused request has changed something"
        if changed - set(WITHOUT_AUDIT):
            assert after[AuditEntry] > before[AuditEntry], "a change without a row in the audit"


def rows() -> dict[type[Base], Any]:
    """Return the rows of all tables that requests change, and the number of audited changes."""
    with read_scope() as session:
        found: dict[type[Base], Any] = {
            model: [tuple(row) for row in session.execute(select(model.__table__))] for model in TABLES
        }
        found[AuditEntry] = session.scalar(select(func.count()).select_from(AuditEntry))
    return found


@EXAMPLES
@pytest.mark.parametrize("area", AREAS)
def test_forms_and_queries(app: Flask, area: str, examples: int) -> None:
    target = Target(app)
    for calls in getattr(endpoints, area).values():
        for call in calls:
            names = [name for name, _ in parse_qsl(call.path.partition("?")[2])] + list(call.form or {})
            count = examples if call.form is not None else examples // 2
            try_out(pairs(names), lambda changes, call=call: target.attack(call, changes), count)


@EXAMPLES
@pytest.mark.parametrize("area", AREAS)
def test_bodies_that_are_no_form(app: Flask, area: str, examples: int) -> None:
    target = Target(app)
    bodies = st.sampled_from([b"", b"\xff" * 50, b"{}", b"--x\r\n\r\n", b"a" * 1000, b"&=&;=%"]) | st.binary()
    types = st.sampled_from(
        [FORM_TYPE, "multipart/form-data", "multipart/form-data; boundary=x", "application/json", "", "\xff"]
    )

    def send(example: tuple[bytes, str]) -> None:
        for calls in filter(None, getattr(endpoints, area).values()):
            path = filled(calls[-1].path, target.place)
            headers = {"X-CSRF-Token": target.token}
            answer = target.console.post(path, example[0], content_type=example[1], headers=headers)
            assert meaning_of(answer) is not Meaning.ERROR, (path, answer.text[:300])
            target.console.log_in()

    try_out(st.tuples(bodies, types), send, examples // 2)


REGISTRATION = {
    "registryGroup": "EXECUTOR",
    "registryKey": "x-app",
    "registryValue": "http://10.0.0.5:9999/",
}


@EXAMPLES
@pytest.mark.parametrize("action", ["registry", "registryRemove", "registryCheck", "callback"])
def test_json_of_executors(app: Flask, action: str, examples: int) -> None:
    place = make_place("own")
    client, token = app.test_client(), access_tokens(app.config["XXL_JOB"])[0]
    result = {"logId": place.log, "logDateTim": 1, "handleCode": 200, "handleMsg": "x", "executeResult": None}
    fields = result if action == "callback" else REGISTRATION

    def stored() -> list[Any]:
        with read_scope() as session:
            models = (JobLog, Registration)
            return [tuple(row) for model in models for row in session.execute(select(model.__table__))]

    def send(body: bytes) -> None:
        before = stored()
        headers = {"XXL-JOB-ACCESS-TOKEN": token}
        answer = client.post(f"{CONTEXT}/api/{action}", data=body, headers=headers)
        reply = answer.get_json()
        assert (answer.status_code, reply["code"] in (200, 500)) == (200, True)
        assert "internal error" not in (reply["msg"] or "")
        assert reply["code"] == 200 or stored() == before, "a refused body has changed something"

    try_out(json_bodies(fields, in_list=action == "callback"), send, 4 * examples)
