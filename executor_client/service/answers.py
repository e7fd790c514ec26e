"""HTTP answers of an executor, independent of the server that received the request."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from executor_client.service.endpoints import BODY_MAX_BYTES, PATHS, Endpoints, Request
from executor_client.wire.lenient_json import dump_json
from executor_client.wire.protocol import CAPABILITIES_HEADER, CONTENT_TYPE, FAIL, Reply

METRICS_PATH = "/metrics"


@dataclass(frozen=True, slots=True)
class Answer:
    """HTTP response."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


TOO_LARGE = Answer(413, (("Content-Type", "text/plain"),), b"request entity too large")


class Service:
    """Answers requests in this process, or passes them on to the worker that holds the executor."""

    def __init__(self) -> None:
        #: endpoints of the started executor; None: this process holds none
        self.endpoints: Endpoints | None = None
        self.capabilities = ""
        #: text of ``GET /metrics``; None: not served
        self.metrics: Callable[[], str] | None = None
        self.serves_metrics = False
        #: passes a request on to the worker that holds the executor
        self.pass_on: Callable[[Request], Answer] | None = None

    def is_path(self, path: str) -> bool:
        """Return whether a path belongs to the executor and not to the application."""
        return path in PATHS or (self.serves_metrics and path == METRICS_PATH)

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request; may wait for another worker, a few seconds at most."""
        if len(request.body) > BODY_MAX_BYTES:
            return TOO_LARGE
        if self.endpoints is None and self.pass_on is not None:
            return self.pass_on(request)
        return self.answer_here(request)

    def answer_here(self, request: Request) -> Answer:
        """Return the answer of this process."""
        endpoints, metrics = self.endpoints, self.metrics
        if endpoints is None:
            return self.reply(Reply(FAIL, "the executor is not started"))
        is_metrics = request.method == "GET" and request.target.partition("?")[0] == METRICS_PATH
        if metrics is not None and self.serves_metrics and is_metrics:
            return Answer(
                200, (("Content-Type", "text/plain; version=0.0.4; charset=utf-8"),), metrics().encode()
            )
        return self.reply(endpoints.handle(request))

    def reply(self, reply: Reply) -> Answer:
        """Return a reply as an answer."""
        extra_headers = ((CAPABILITIES_HEADER, self.capabilities),) if self.capabilities else ()
        return Answer(200, (("Content-Type", CONTENT_TYPE), *extra_headers), dump_json(reply.to_wire()))


def answer_head(answer: Answer) -> dict[str, Any]:
    """Return everything but the body, for JSON."""
    return {"status": answer.status, "headers": answer.headers}


def answer_from(head: dict[str, Any], body: bytes) -> Answer:
    """Return an answer from its parts; raise ValueError."""
    try:
        headers = tuple((str(name), str(value)) for name, value in head["headers"])
        return Answer(int(head["status"]), headers, body)
    except (KeyError, TypeError) as exc:
        raise ValueError("not an answer") from exc
