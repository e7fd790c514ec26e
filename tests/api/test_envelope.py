"""Paths, methods, tokens, envelopes. Source of the tables: docs/reference/protocol.md, sections 2 and 9.3."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from waitress.adjustments import Adjustments
from werkzeug.test import Client

from app.api.executor_api import ExecutorApi
from app.api.tokens import CACHE_MS, TokenBook
from app.models.registry import Registration
from app.settings.config import Config
from tests.support.api import CONTEXT, OLD_TOKEN, TOKEN, Executor, console_stub
from tests.support.factories import all_rows, make_group, only_row

#: independent of the database
pytestmark = pytest.mark.databases("sqlite")

METHOD = "invalid request, HttpMethod not support."
WRONG_TOKEN = "The access token is wrong."
NO_TOKEN = "No access token was given."
REGISTRATION = (
    b'{"registryGroup":"EXECUTOR","registryKey":"billing-exec","registryValue":"http://10.1.2.3:9999/"}'
)


@pytest.mark.parametrize(
    "path",
    [
        f"{CONTEXT}/api/registry",
        f"{CONTEXT}/api/registry/",
        f"{CONTEXT}/api/registry?x=1",
        f"{CONTEXT}//api/registry",
        f"{CONTEXT}/api//registry",
        f"/{CONTEXT}///api//registry//",
        "/api/registry",
        "//api/registry/",
    ],
)
def test_api_paths(executor: Executor, path: str) -> None:
    path, _, query = path.partition("?")
    assert executor.call(
        "registry", REGISTRATION, environ_overrides={"PATH_INFO": path, "QUERY_STRING": query}
    ) == (200, None)
    assert only_row(Registration).registry_key == "billing-exec"


@pytest.mark.parametrize(
    "path",
    [f"{CONTEXT}/api", f"{CONTEXT}/api/", f"{CONTEXT}/api/a/b", "/other/api/registry", "/API/registry", "/x"],
)
def test_other_paths_are_passed_to_the_console(executor: Executor, path: str) -> None:
    response = executor.post("", REGISTRATION, path=path)
    assert (response.status_code, response.get_data()) == (418, b"console")
    assert all_rows(Registration) == []


@pytest.mark.parametrize("context_path", ["", "/admin/jobs"])
def test_another_context_path(database: str, api_config: Config, context_path: str) -> None:
    executor = Executor(ExecutorApi(console_stub, replace(api_config, context_path=context_path)))
    assert executor.call("", REGISTRATION, path=f"{context_path}/api/registry") == (200, None)
    assert executor.call("", REGISTRATION, path="/api/registry") == (200, None)
    assert executor.call("", REGISTRATION, path=f"{CONTEXT}/api/registry") == (200, None)
    paths = executor.api.batches.endpoints()
    for path in (f"{context_path}/api/callback", "/api/callback", f"{CONTEXT}/api/callback"):
        assert paths.takes(path)


def test_a_server_that_strips_the_context_path_itself(executor: Executor) -> None:
    response = executor.client.post(
        "/api/registry",
        data=REGISTRATION,
        base_url=f"http://x{CONTEXT}",
        headers={"XXL-JOB-ACCESS-TOKEN": TOKEN},
    )
    assert response.get_json()["code"] == 200


def test_other_methods_get_a_json_reply_even_without_a_token(executor: Executor) -> None:
    for method, action in product(
        ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"], ["registry", "callback", "nothing-of-the-kind"]
    ):
        response = executor.client.open(f"{CONTEXT}/api/{action}", method=method)
        assert response.status_code == 200
        if method == "HEAD":
            assert (response.get_data(), int(response.headers["Content-Length"]) > 0) == (b"", True)
        else:
            assert (response.get_json()["code"], response.get_json()["msg"]) == (500, METHOD), (
                method,
                action,
            )


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        ({"XXL-JOB-ACCESS-TOKEN": TOKEN}, None),
        ({"xxl-job-access-token": TOKEN}, None),
        ({"Xxl-Job-Access-Token": OLD_TOKEN}, None),
        ({"XXL-RPC-ACCESS-TOKEN": TOKEN}, None),
        ({"XXL-JOB-ACCESS-TOKEN": "", "XXL-RPC-ACCESS-TOKEN": TOKEN}, None),
        ({"XXL-JOB-ACCESS-TOKEN": "wrong", "XXL-RPC-ACCESS-TOKEN": TOKEN}, WRONG_TOKEN),
        ({}, NO_TOKEN),
        ({"XXL-JOB-ACCESS-TOKEN": ""}, NO_TOKEN),
        ({"XXL-JOB-ACCESS-TOKEN": TOKEN.upper()}, WRONG_TOKEN),
        ({"XXL-JOB-ACCESS-TOKEN": TOKEN[:-1]}, WRONG_TOKEN),
        ({"XXL-JOB-ACCESS-TOKEN": f"{TOKEN},{OLD_TOKEN}"}, WRONG_TOKEN),
        ({"XXL-JOB-ACCESS-TOKEN": "default_token"}, WRONG_TOKEN),
        ({"XXL-JOB-ACCESS-TOKEN": "t\xf6ken"}, WRONG_TOKEN),
        ({"Authorization": TOKEN}, NO_TOKEN),
    ],
)
def test_token_headers(executor: Executor, headers: dict[str, str], refusal: str | None) -> None:
    fine = {
        "registry": (200, None),
        "callback": (200, None),
        "nope": (500, "invalid request, uri-mapping(nope) not found."),
    }
    for action, answer in fine.items():
        found = executor.call(
            action, REGISTRATION if action == "registry" else b"[]", token=None, headers=headers
        )
        assert found == (answer if refusal is None else (500, refusal)), (
            "the token is checked before path and body"
        )
    assert len(all_rows(Registration)) == (refusal is None)


def test_a_group_with_its_own_token_accepts_only_that(executor: Executor) -> None:
    make_group(
        app_name="billing-exec", address_type=0, address_list=None, access_token="only-for-the-billing"
    )
    for action in ("registry", "registryRemove"):
        assert executor.call(action, REGISTRATION) == (500, WRONG_TOKEN)
        assert executor.call(action, REGISTRATION, token="only-for-the-billing") == (200, None)
    other = REGISTRATION.replace(b"billing-exec", b"another-exec")
    assert executor.call("registry", other, token="only-for-the-billing") == (500, WRONG_TOKEN)
    assert executor.call("registry", other) == (200, None)
    assert executor.call("callback", b"[]", token="only-for-the-billing") == (200, None)
    assert [row.registry_key for row in all_rows(Registration)] == ["another-exec"]


def test_a_new_group_token_is_valid_within_seconds(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0]
    monkeypatch.setattr("app.api.tokens.monotonic_ms", lambda: clock[0])
    book = TokenBook((TOKEN,))
    assert not book.accepts("only-for-the-billing", "billing-exec")
    make_group(app_name="billing-exec", access_token="only-for-the-billing")
    clock[0] = CACHE_MS
    assert book.accepts(TOKEN, "billing-exec")
    clock[0] += 1
    assert book.accepts("only-for-the-billing", "billing-exec")
    assert not book.accepts(TOKEN, "billing-exec")


@pytest.mark.parametrize("action", ["xyz", "Registry", "registry2", "beat", "run", "%3Cb%3E", "x" * 300])
def test_an_unknown_action_is_reported(executor: Executor, action: str) -> None:
    name = {"%3Cb%3E": "<b>"}.get(action, action)[:100]
    assert executor.call(action, b"{}") == (500, f"invalid request, uri-mapping({name}) not found.")


def test_the_response_byte_for_byte(executor: Executor) -> None:
    response = executor.post("registry", REGISTRATION)
    assert response.get_data() == b'{"code":200,"msg":null,"content":null,"data":null}'
    assert list(response.headers) == [
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(response.get_data()))),
        ("X-Content-Type-Options", "nosniff"),
    ]


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json;charset=UTF-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "",
    ],
)
def test_the_content_type_does_not_matter(executor: Executor, content_type: str) -> None:
    assert executor.call("registry", REGISTRATION, content_type=content_type) == (200, None)
    assert only_row(Registration).registry_value == "http://10.1.2.3:9999/"


def test_cookies_and_query_are_ignored(executor: Executor) -> None:
    executor.client.set_cookie("XXL_JOB_LOGIN_IDENTITY", "x" * 64)
    response = executor.post("registry", REGISTRATION, query_string={"registryKey": "other"})
    assert "Set-Cookie" not in response.headers
    assert only_row(Registration).registry_key == "billing-exec"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Illegal Argument."),
        (b"  \n", "Illegal Argument."),
        (b"null", "Illegal Argument."),
        (b"{}", "Illegal Argument."),
        (REGISTRATION.replace(b"EXECUTOR", b" "), "Illegal Argument."),
        (REGISTRATION.replace(b'"billing-exec"', b"null"), "Illegal Argument."),
        (REGISTRATION.replace(b"http://10.1.2.3:9999/", b""), "Illegal Argument."),
        (b"{", "registration refused: not JSON"),
        (b"[]", "registration refused"),
        (b'"text"', "registration refused"),
        (REGISTRATION.replace(b'"billing-exec"', b'{"a":1}'), "registration refused"),
        (b"[" * 100_000, "registration refused: nested too deeply"),
    ],
)
def test_invalid_registrations_are_refused(executor: Executor, body: bytes, message: str) -> None:
    for action in ("registry", "registryRemove"):
        code, text = executor.call(action, body)
        assert code == 500
        assert (text or "").startswith(message)
    assert all_rows(Registration) == []


def test_numbers_and_unknown_fields_of_a_registration(executor: Executor) -> None:
    body = (
        b'{"registryGroup":"EXECUTOR","registryKey":4711,"registryValue":"http://10.1.2.3:9999/",'
        b'"more":{"x":[1]}}'
    )
    assert executor.call("registry", body) == (200, None)
    assert only_row(Registration).registry_key == "4711"


def test_a_forbidden_address_is_refused_with_the_reason(executor: Executor) -> None:
    code, message = executor.call("registry", REGISTRATION.replace(b"10.1.2.3", b"8.8.8.8"))
    assert code == 500
    assert "XXL_JOB_EXECUTOR_NETWORKS" in (message or "")


def test_capabilities_of_the_client_are_stored(executor: Executor) -> None:
    executor.call("registry", REGISTRATION, headers={"X-Exec-Capabilities": "durable-dedup,boot=5f0c"})
    assert (only_row(Registration).capabilities, only_row(Registration).boot_id) == ("durable-dedup", "5f0c")
    executor.call("registry", REGISTRATION, headers={"X-Exec-Handlers": "a,%E7%BB%93%E7%AE%97"})
    assert only_row(Registration).handlers == "a,%E7%BB%93%E7%AE%97"


def test_registration_updates_the_address_list(executor: Executor) -> None:
    group = make_group(app_name="billing-exec", address_type=0, address_list=None)
    executor.call("registry", REGISTRATION)
    assert only_row(type(group)).address_list == "http://10.1.2.3:9999/"
    assert executor.call("registryRemove", REGISTRATION) == (200, None)
    assert executor.call("registryRemove", REGISTRATION) == (200, None), "an unknown address is accepted"
    assert only_row(type(group)).address_list is None


def test_a_body_that_is_too_long_is_not_read(executor: Executor) -> None:
    class Endless:
        def read(self, size: int) -> bytes:
            raise AssertionError(f"{size} bytes read")

    environ: dict[str, Any] = {
        "wsgi.input": Endless(),
        "CONTENT_LENGTH": str(16 * 1024 * 1024 + 1),
        "HTTP_XXL_JOB_ACCESS_TOKEN": TOKEN,
    }
    response = Client(executor.api).post("/api/callback", environ_overrides=environ)
    assert response.get_json()["code"] == 500
    assert "longer than" in response.get_json()["msg"]
    assert Adjustments().max_request_body_size > 16 * 1024 * 1024, (
        "the server passes bodies on that the API limits itself"
    )


def test_a_line_end_in_a_message_stays_inside_its_string(executor: Executor) -> None:
    response = executor.post(
        "registry",
        json.dumps({"registryGroup": "A\r\nX: y", "registryKey": "k", "registryValue": "http://10.0.0.1:9/"}),
    )
    assert response.get_data().count(b"\n") == 0
    assert "X" not in dict(response.headers)
