"""Helpers of the tests of client, for all that need them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from flask import Flask

from executor_client.api.transport import BASE_PATH, Transport
from executor_client.api.wsgi import WsgiTransport
from tests.support.fake_executor import Answer

ADDRESS = "http://console"


#: answer of an executor with a whole log
LOG = Answer.json(content={"fromLineNum": 1, "toLineNum": 2, "logContent": "one\ntwo", "isEnd": True})


#: first line of each piece of ``long_log``, and the one behind its last
LONG_LOG_STARTS = [1, 4_001, 8_001, 8_501]


def long_log() -> list[Answer]:
    """Return the answers of an executor that reads a log of 8,500 lines to its end, in pieces."""
    pieces = [
        "".join(f"{number:060}\n" for number in range(first, after))
        for first, after in pairwise(LONG_LOG_STARTS)
    ]
    ends = [after - 1 for after in LONG_LOG_STARTS[1:]]
    contents = [
        {"fromLineNum": first, "toLineNum": last, "logContent": text, "isEnd": False}
        for first, last, text in zip(LONG_LOG_STARTS, [*ends, ends[-1]], [*pieces, ""], strict=True)
    ]
    return [Answer.json(content=content) for content in contents]


@dataclass(frozen=True)
class Console:
    """The API's application, and a token for it."""

    app: Flask
    token: str

    def transport(self) -> Transport:
        environ = {"HTTP_AUTHORIZATION": f"Bearer {self.token}"}
        return WsgiTransport(self.app, environ=environ, address=ADDRESS)

    def below_its_path(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve the application where a console has it."""
        path = environ["PATH_INFO"].removeprefix(BASE_PATH)
        return self.app({**environ, "SCRIPT_NAME": BASE_PATH, "PATH_INFO": path}, start_response)
