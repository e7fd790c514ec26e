"""Helpers of the tests of api, for all that need them."""

from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

from werkzeug.test import Client, TestResponse

from app.api.executor_api import ExecutorApi
from tests.support.factories import T0

TOKEN = "a-token-of-some-length"


OLD_TOKEN = "the-token-before-this-one"


CONTEXT = "/xxl-job-admin"


NETWORKS = tuple(ip_network(text) for text in ("127.0.0.0/8", "10.0.0.0/8"))


def console_stub(_environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """Application behind the executor API."""
    start_response("418 Console", [("Content-Type", "text/plain")])
    return [b"console"]


class Executor:
    """Client that calls the API as an executor does."""

    def __init__(self, api: ExecutorApi) -> None:
        self.api = api
        self.client = Client(api)

    def post(
        self, action: str, body: bytes | str = b"", *, token: str | None = TOKEN, path: str = "", **more: Any
    ) -> TestResponse:
        headers = dict(more.pop("headers", {}))
        if token is not None:
            headers.setdefault("XXL-JOB-ACCESS-TOKEN", token)
        return self.client.post(path or f"{CONTEXT}/api/{action}", data=body, headers=headers, **more)

    def call(self, action: str, body: bytes | str = b"", **more: Any) -> tuple[int, str | None]:
        """Post and return code and message; check that the response is an envelope."""
        response = self.post(action, body, **more)
        assert response.status == "200 OK"
        envelope = response.get_json()
        assert list(envelope)[:3] == ["code", "msg", "content"]
        assert type(envelope["code"]) is int
        return envelope["code"], envelope["msg"]


def item(log_id: int | str, code: Any = 200, message: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"logId": log_id, "logDateTim": T0, "handleCode": code, "handleMsg": message, **more}


#: an unreachable database of each kind
NOWHERE = {
    "sqlite": "sqlite:////nowhere/at/all.db",
    "mariadb": "mysql+pymysql://root@127.0.0.1:1/x",
    "mysql": "mysql+pymysql://root@127.0.0.1:1/x",
    "postgresql": "postgresql+psycopg://xxl_job@127.0.0.1:1/x",
}
