"""Quick path: WSGI middleware that answers plain requests like one that was let through a moment ago.

A view costs a request more than what it does. So the first of such requests goes through the gate and its
view, and those that follow within a second, with the same credentials, are carried out together, in one
transaction. The path only ever grants: whatever is not plain, or might be refused, goes the ordinary way.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from io import BytesIO
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.database.batch_writer import BatchWriter, write_here
from app.domain.runs.request_ids import HEADER, new_request_id
from app.fast_triggers.access_cache import Passes
from app.runtime.environ import FAILED, PASSED, REQUEST_ID, TRIED
from app.runtime.logging import USER, request_id
from executor_client.httpd.batching import BatchAnswer, BatchedEndpoints, BatchRequest, Declined, Outcome

Pass = TypeVar("Pass")
Order = TypeVar("Order")
Headers = list[tuple[str, str]]
WSGIApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
DECLINED = Declined({TRIED: True})
#: headers whose names are not prefixed in a WSGI environment
_BODY_HEADERS = ("CONTENT_TYPE", "CONTENT_LENGTH")
#: longer bodies are not plain
BODY_MAX = 16 * 1024


class Answer(NamedTuple):
    """Answer to a request."""

    status: str
    headers: Headers
    body: bytes


class Kind(ABC, Generic[Pass, Order]):
    """Kind of plain requests."""

    def __init__(self) -> None:
        self.passes: Passes[Pass] = Passes()

    @abstractmethod
    def serves(self, path: str) -> bool:
        """Return whether requests for this path may be of this kind."""

    @abstractmethod
    def key_of(self, environ: dict[str, Any]) -> Hashable | None:
        """Return everything in a request, besides its path, that decides whether it is let through.

        None: the request is not plain.
        """

    @abstractmethod
    def pass_of(self, environ: dict[str, Any], answer: Answer) -> Pass | None:
        """Return what a request like this one is let through with; None: it was not let through."""

    @abstractmethod
    def order_of(self, environ: dict[str, Any], body: bytes, passed: Pass) -> Order | None:
        """Return what the request asks for; None: it goes the ordinary way."""

    @abstractmethod
    def user_of(self, order: Order) -> str:
        """Return the name of the user, for the access log."""

    @abstractmethod
    def carry_out(self, session: Session, orders: Sequence[Order]) -> list[Answer | None]:
        """Carry out orders in one transaction; None: the order changed nothing and goes the ordinary way."""


class _Plain(NamedTuple):
    """A request that is let through: its place among others, what it asks for, its id."""

    place: int
    order: Any
    request: str


class QuickPath:
    """WSGI middleware in front of console and API; our own server calls ``answer`` in its place."""

    def __init__(self, inner: WSGIApp, kinds: Sequence[Kind[Any, Any]]) -> None:
        self._inner, self._kinds = inner, kinds
        self._writer = BatchWriter("quick-path")

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request."""
        found = self._find(environ)
        if found is None:
            return self._inner(environ, start_response)
        kind, key = found
        if TRIED in environ:
            return self._let_through(kind, key, environ, start_response)
        return self._try(kind, key, environ, start_response)

    def endpoints(self) -> BatchedEndpoints:
        """Return the endpoints whose requests our server may answer together."""
        return BatchedEndpoints("triggers", lambda path: self._kind_of(path) is not None, self.answer)

    def answer(self, requests: Sequence[BatchRequest]) -> list[Outcome]:
        """Carry out requests that wait at the same time, those of a kind in one transaction."""
        outcomes: list[Outcome] = [None] * len(requests)
        plain: dict[Kind[Any, Any], list[_Plain]] = {}
        for place, request in enumerate(requests):
            environ = _environ_of(request)
            if (found := self._find(environ)) is None:
                continue
            kind, key = found
            if (passed := kind.passes.find(key)) is None:
                outcomes[place] = DECLINED if kind.passes.has(key) else None
                continue
            own_id = new_request_id()
            request_id.set(own_id)
            order = kind.order_of(environ, request.body, passed)
            if order is None:
                outcomes[place] = DECLINED
            else:
                plain.setdefault(kind, []).append(_Plain(place, order, own_id))
        request_id.set("")  # what follows is of several requests
        for kind, each_plain in plain.items():
            done = write_here([each.order for each in each_plain], kind.carry_out)
            for each, result in zip(each_plain, done, strict=True):
                outcomes[each.place] = _outcome(result, each.request)
        return outcomes

    def _find(self, environ: dict[str, Any]) -> tuple[Kind[Any, Any], Hashable] | None:
        """Return the kind of a plain request and its key."""
        kind = None if environ.get("SCRIPT_NAME") else self._kind_of(environ.get("PATH_INFO", ""))
        key = None if kind is None else kind.key_of(environ)
        return None if kind is None or key is None else (kind, key)

    def _kind_of(self, path: str) -> Kind[Any, Any] | None:
        return next((kind for kind in self._kinds if kind.serves(path)), None)

    def _try(
        self,
        kind: Kind[Pass, Any],
        key: Hashable,
        environ: dict[str, Any],
        start_response: Callable[..., Any],
    ) -> Iterable[bytes]:
        """Answer one request, with those that other threads have, or the ordinary way."""
        passed = kind.passes.find(key)
        order = None if passed is None else kind.order_of(environ, _body(environ), passed)
        if order is None:
            return self._let_through(kind, key, environ, start_response)
        environ[USER] = kind.user_of(order)
        try:
            answer: Answer | None = self._writer.submit(order, kind.carry_out)
        except IntegrityError:  # rolled back: another process was first
            answer = None
        except Exception as exc:  # raised by the view
            environ[FAILED], answer = exc, None
        if answer is None:
            return self._inner(environ, start_response)
        start_response(answer.status, answer.headers)
        return [answer.body]

    def _let_through(
        self,
        kind: Kind[Pass, Any],
        key: Hashable,
        environ: dict[str, Any],
        start_response: Callable[..., Any],
    ) -> Iterable[bytes]:
        """Answer the ordinary way; keep a pass if the request was let through."""
        ticket, started = kind.passes.ticket(), list[tuple[str, Headers]]()

        def start(status: str, headers: Headers, *rest: Any) -> Any:
            started.append((status, list(headers)))
            return start_response(status, headers, *rest)

        parts = self._inner(environ, start)
        if PASSED not in environ:
            return parts
        body = b"".join(parts)
        if hasattr(parts, "close"):
            parts.close()
        value = kind.pass_of(environ, Answer(*started[0], body))
        if value is not None:
            kind.passes.keep(key, value, ticket)
        return [body]


def _environ_of(request: BatchRequest) -> dict[str, Any]:
    """Return those parts of a request's WSGI environment that kinds look at, as the server makes them."""
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": request.path,
        "REMOTE_ADDR": request.peer,
        "wsgi.url_scheme": "http",
    }
    for name, text in request.headers.items():
        environ[name if name in _BODY_HEADERS else f"HTTP_{name}"] = text
    return environ


def _outcome(result: Answer | Exception | None, request: str) -> Outcome:
    """Return the answer to a request, or what the application gets instead."""
    if isinstance(result, Answer):
        own = [header for header in result.headers if header[0].lower() != "content-length"]  # the server's
        return BatchAnswer(int(result.status[:3]), (*own, (HEADER, request)), result.body)
    if result is None or isinstance(result, IntegrityError):
        return DECLINED
    return Declined({TRIED: True, FAILED: result, REQUEST_ID: request})


def has_plain_body(environ: dict[str, Any], content_type: str) -> bool:
    """Whether the request is a POST without parameters, of this type and of a length that is known."""
    length = environ.get("CONTENT_LENGTH") or ""
    return (
        environ["REQUEST_METHOD"] == "POST"
        and not environ.get("QUERY_STRING")
        and environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() == content_type
        and length.isdecimal()
        and int(length) <= BODY_MAX
        and "HTTP_TRANSFER_ENCODING" not in environ
    )


def _body(environ: dict[str, Any]) -> bytes:
    """Return the body, which can be read again."""
    body: bytes = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
    environ["wsgi.input"] = BytesIO(body)
    return body
