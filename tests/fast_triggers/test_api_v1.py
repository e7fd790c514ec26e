"""Plain triggers over the API: what they share with the view, keys, limits, and tokens that end."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from sqlalchemy.exc import IntegrityError
from werkzeug.test import TestResponse

from app.api.v1.plain_calls import read_plain
from app.api.v1.rates import BURST
from app.clock import now_ms
from app.database.engine import session_scope, transact
from app.domain.access.permissions import Right
from app.fast_triggers.access_cache import KEPT_MS, RENEWED_MS
from app.models.api_token import ApiToken
from app.models.audit import AuditEntry
from app.models.fire import Fire
from tests.api.v1.conftest import Api, make_token
from tests.console.conftest import CONTEXT, add_group, add_job
from tests.factories import all_rows
from tests.fast_triggers.conftest import Clock, Views

pytestmark = pytest.mark.usefixtures("clock", "server")
Send = Callable[..., TestResponse]


@pytest.fixture
def job_id(app: Flask) -> int:
    return add_job(add_group())


@pytest.fixture
def send(app: Flask, job_id: int) -> Send:
    """Sends a trigger with the token of a program."""
    api = Api(app, make_token(Right.OPERATE))
    with session_scope() as session:  # its use is recorded once a minute
        session.query(ApiToken).one().last_used_ms = now_ms()

    def post(body: Any = None, key: str = "", path: str = "", **headers: str) -> TestResponse:
        if key:
            headers["Idempotency-Key"] = key
        where = path or f"/jobs/{job_id}/runs"
        return api.post(f"{CONTEXT}/api/v1{where}", body or {"param": "x"}, headers=headers)

    return post


def test_a_trigger_like_one_let_through_does_the_same_without_its_view(send: Send, views: Views) -> None:
    first, second = send(), send()
    assert (views.count, second.status_code) == (1, 202)
    assert sorted(first.headers.keys()) == sorted(second.headers.keys())
    run, other = first.get_json(), second.get_json()
    assert second.headers["Location"] == f"{CONTEXT}/api/v1/runs/{other['id']}"
    assert run | {"id": "", "due_at": ""} == other | {"id": "", "due_at": ""}
    assert [fire.executor_param for fire in all_rows(Fire)] == ["x", "x"]
    one, two = (entry for entry in all_rows(AuditEntry) if entry.action == "job.trigger")
    assert (one.username, one.via, one.changes) == (two.username, two.via, two.changes)


def test_a_repeated_key_gets_the_first_answer(send: Send, views: Views) -> None:
    send()
    first, again = send(key="k"), send(key="k")
    assert first.get_json() == again.get_json()
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert send({"param": "y"}, key="k").status_code == 422
    assert send(key="ä").status_code == 422
    assert (views.count, len(all_rows(Fire))) == (4, 2)


def test_a_run_after_a_repeated_answer_is_not_called_repeated(send: Send, views: Views, clock: Clock) -> None:
    send(key="k")
    clock.now_ms += RENEWED_MS + 1
    assert send(key="k").headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in send(key="another").headers


def test_a_key_of_the_view_is_known_to_the_quick_path(send: Send, views: Views) -> None:
    first, again = send(key="k"), send(key="k")
    assert first.get_json() == again.get_json()
    assert (again.headers["Idempotent-Replayed"], len(all_rows(Fire))) == ("true", 1)


def test_two_requests_with_a_key_in_one_transaction_undo_it(send: Send, views: Views) -> None:
    send(key="other")
    _, kind = views.path._kinds
    (kept,) = kind.passes._kept.values()
    environ = {"PATH_INFO": f"{CONTEXT}/api/v1/jobs/1/runs", "HTTP_IDEMPOTENCY_KEY": "k"}
    orders = [kind.order_of(environ, b"{}", kept.value) for _ in range(2)]
    with pytest.raises(IntegrityError):
        transact(lambda session: kind.carry_out(session, orders))
    assert len(all_rows(Fire)) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"body": {"in_s": 60}},
        {"body": {"addresses": ["http://127.0.0.1:1/"]}},
        {"body": {"params": "misspelt"}},
        {"body": {"param": "x" * 513}},
        {"path": "/jobs/1/runs?dry_run=true"},
        {"path": "/jobs/01/runs"},
        {"path": "/jobs/4711/runs"},
        {"Authorization": "Bearer xxl_" + "0" * 43},
        {"Authorization": ""},
        {"If-Match": '"x"'},
        {"Content-Type": "text/plain"},
    ],
)
def test_other_requests_go_through_the_view(send: Send, views: Views, options: dict[str, Any]) -> None:
    send()
    send(**options)
    assert views.count == 2


def test_a_body_with_a_repeated_member_goes_through_the_view() -> None:
    assert read_plain(b'{"param": "x"}') is not None
    assert read_plain(b'{"param": "x", "param": "y"}') is None


def test_a_token_of_another_address_is_checked(send: Send, views: Views, app: Flask, job_id: int) -> None:
    token = make_token(Right.OPERATE, name="roaming")
    for address in ("127.0.0.1", "127.0.0.2"):
        Api(app, token).post(
            f"{CONTEXT}/api/v1/jobs/{job_id}/runs", {}, environ_base={"REMOTE_ADDR": address}
        )
    assert views.count == 2


def revoke(token: ApiToken) -> None:
    token.revoked_ms = now_ms()


def expire(token: ApiToken) -> None:
    token.expires_ms = now_ms() - 1


def limit(token: ApiToken) -> None:
    token.rights = "view"


@pytest.mark.parametrize(("change", "status"), [(revoke, 401), (expire, 401), (limit, 403)])
def test_a_pass_ends_with_the_token_and_its_right(
    send: Send, views: Views, change: Callable[[ApiToken], None], status: int
) -> None:
    assert [send().status_code, send().status_code, views.count] == [202, 202, 1]
    with session_scope() as session:
        change(session.query(ApiToken).one())
    assert send().status_code == status
    assert len(all_rows(Fire)) == 2


def test_a_pass_ends_at_the_expiry_of_its_token(
    send: Send, views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    expires_ms = now_ms() + 60_000
    with session_scope() as session:
        session.query(ApiToken).one().expires_ms = expires_ms
    send()
    monkeypatch.setattr("app.fast_triggers.api_v1.now_ms", lambda: expires_ms)
    send()
    assert views.count == 2


def test_requests_count_for_the_rate_limit(
    send: Send, views: Views, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr("app.api.v1.plain_calls.monotonic_ms", clock)
    monkeypatch.setattr("app.api.v1.access.monotonic_ms", clock)
    send()
    _, kind = views.path._kinds
    (kept,) = kind.passes._kept.values()
    for _ in range(BURST - 2):
        kept.value.call.limit.take(kept.value.call.caller.token_id, at_ms=clock.now_ms)
    assert [send().status_code for _ in range(2)] == [202, 429]
    clock.now_ms += KEPT_MS
    assert send().status_code == 202
