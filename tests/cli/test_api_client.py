"""The API client: retries, idempotency keys, errors, both transports."""

from typing import Any

import pytest

from executor_client.api.client import ApiClient
from executor_client.api.errors import (
    ApiRefused,
    ApiUnreachable,
    InvalidRequest,
    NotFound,
    RetryLater,
    Unauthorized,
)
from executor_client.api.session import ApiSession
from executor_client.api.transport import Answer, Request
from executor_client.api.wsgi import WsgiTransport
from tests.cli.fake_api import TOKEN, FakeApi, Reply, problem


@pytest.fixture(params=["http", "wsgi"])
def client(request: pytest.FixtureRequest, api: FakeApi) -> ApiClient:
    if request.param == "http":
        return ApiClient(request.getfixturevalue("address"), TOKEN)
    environ = {"HTTP_AUTHORIZATION": f"Bearer {TOKEN}"}
    return ApiClient(transport=WsgiTransport(api, environ=environ, address="here"))


def test_a_value_goes_and_comes(api: FakeApi, client: ApiClient) -> None:
    api.on("POST", "/jobs", lambda seen: Reply(seen.body, 201))
    assert client.post("/jobs", {"description": "日报"}, dry_run=True) == {"description": "日报"}
    assert api.seen[-1].query == {"dry_run": "true"}
    api.on("GET", "/runs/.*", {})
    client.run("7.1700000000000.ab/ä")
    assert api.seen[-1].path == "/runs/7.1700000000000.ab/ä".encode().decode("latin-1")


def test_a_busy_console_is_called_again_with_the_same_key(api: FakeApi, client: ApiClient) -> None:
    busy = problem(503, "busy", Retry_After="0")
    api.on(
        "POST", "/jobs/1/runs", [busy, problem(409, "in flight", Retry_After="0"), Reply({"id": "1"}, 202)]
    )
    assert client.post("/jobs/1/runs") == {"id": "1"}
    keys = {each.headers["IDEMPOTENCY_KEY"] for each in api.seen}
    assert (len(api.seen), len(keys)) == (3, 1)


@pytest.mark.parametrize(
    ("reply", "error", "line"),
    [
        (problem(401, "expired"), Unauthorized, "expired"),
        (problem(404, "There is no job 1"), NotFound, "There is no job 1"),
        (problem(429, "too many", Retry_After="3600"), RetryLater, "too many"),
        (problem(503, "down"), RetryLater, "down (request r1)"),
        (problem(502, "10.0.0.5: refused"), ApiRefused, "10.0.0.5: refused"),
        (
            problem(422, "invalid", [{"field": "a", "reason": "x"}, {"field": "b", "reason": "y"}]),
            InvalidRequest,
            "a: x; b: y",
        ),
    ],
)
def test_a_refusal_is_an_error_with_its_reasons(
    api: FakeApi, client: ApiClient, reply: Reply, error: Any, line: str
) -> None:
    api.on("GET", "/jobs/1", reply)
    with pytest.raises(error) as raised:
        client.job(1)
    assert (raised.value.status, str(raised.value), len(api.seen)) == (reply.status, line, 1)


def test_a_request_that_is_too_long_says_what_to_do(api: FakeApi, client: ApiClient) -> None:
    api.on("GET", "/jobs/1", Reply((b"Request Entity Too Large",), 413))
    with pytest.raises(ApiRefused, match=r"HTTP status 413: longer than the console .* in parts$"):
        client.job(1)


@pytest.mark.parametrize(
    "reply",
    [
        Reply((b"<html>",)),
        Reply((b"<html>",), 404),
        Reply({"timestamp": 1, "status": 404, "error": "Not Found", "path": "/other"}, 404),
    ],
)
def test_an_answer_of_something_else_is_named(api: FakeApi, client: ApiClient, reply: Reply) -> None:
    api.on("GET", "/me", reply)
    with pytest.raises(ApiUnreachable, match="no API v1 answers here"):
        client.me()
    assert len(api.seen) == 1


def test_a_page_that_a_proxy_does_not_pass_on_is_a_refusal(api: FakeApi, client: ApiClient) -> None:
    api.on("GET", "/me", {"name": "ann"})
    api.on("GET", "/jobs/1", Reply((b"<html>",), 404))
    client.me()
    with pytest.raises(ApiRefused, match="HTTP status 404") as raised:
        client.job(1)
    assert (type(raised.value), len(api.seen)) == (ApiRefused, 2), "not that there is no such job"


def test_a_proxy_without_its_console_is_called_again(api: FakeApi, client: ApiClient) -> None:
    api.on("GET", "/me", [Reply((b"<html>Bad gateway",), 502), Reply({"name": "ann"})])
    assert client.me() == {"name": "ann"}


def test_a_redirect_is_not_followed(api: FakeApi, address: str) -> None:
    api.on("GET", "/me", Reply(None, 302, {"Location": "https://elsewhere/"}))
    with pytest.raises(ApiUnreachable, match="redirected to https://elsewhere/"):
        ApiSession(address, TOKEN).get("/me")


class Restarting:
    """Transport to a console that answers, does not for a while, and answers again."""

    address = "there"

    def __init__(self, *failures: int) -> None:
        self._failures = {*failures}
        self.sent: list[Request] = []

    def send(self, request: Request) -> Answer:
        self.sent.append(request)
        if len(self.sent) in self._failures:
            raise ApiUnreachable("there", "Connection refused")
        return Answer(200, {}, iter([b"{}"]), lambda: None)

    def close(self) -> None:
        """Nothing is open."""


def test_a_restart_of_a_console_that_has_answered_is_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor_client.api.session.LAST_PAUSE_S", 0.0)
    transport = Restarting(2, 3, 4, 5, 6)
    session = ApiSession(transport=transport)
    session.get("/me")
    session.post("/jobs/1/start")
    assert len({request.headers["Idempotency-Key"] for request in transport.sent[1:]}) == 1
    stopped = ApiSession(transport=Restarting(*range(100)))
    with pytest.raises(ApiUnreachable):
        stopped.get("/me")
    with pytest.raises(ApiUnreachable):  # a secret is not created twice
        ApiSession(transport=Restarting(1)).call(Request("POST", "/tokens", is_repeatable=False))


def test_no_console_is_one_line() -> None:
    with pytest.raises(ApiUnreachable, match=r"^http://127.0.0.1:9: Connection refused$"):
        ApiClient("http://127.0.0.1:9", TOKEN).me()
