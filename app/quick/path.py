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

from app.batch_writer import BatchWriter
from app.log_setup import USER
from app.passing import FAILED, PASSED
from app.quick.passes import Passes

Pass = TypeVar("Pass")
Order = TypeVar("Order")
Headers = list[tuple[str, str]]
WSGIApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
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
    def key_of(self, environ: dict[str, Any]) -> Hashable | None:
        """Return all of a request that decides whether it is let through; None: it is not plain."""

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


class QuickPath:
    """WSGI middleware in front of console and API."""

    def __init__(self, inner: WSGIApp, kinds: Sequence[Kind[Any, Any]]) -> None:
        self._inner, self._kinds = inner, kinds
        self._writer = BatchWriter("quick-path")

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request."""
        for kind in self._kinds:
            key = kind.key_of(environ)
            if key is not None:
                return self._try(kind, key, environ, start_response)
        return self._inner(environ, start_response)

    def _try(
        self,
        kind: Kind[Pass, Any],
        key: Hashable,
        environ: dict[str, Any],
        start_response: Callable[..., Any],
    ) -> Iterable[bytes]:
        passed = kind.passes.find(key)
        order = None if passed is None else kind.order_of(environ, _body(environ), passed)
        if order is None:
            return self._let_through(kind, key, environ, start_response)
        environ[USER] = kind.user_of(order)
        try:
            answer: Answer | None = self._writer.submit(order, kind.carry_out)
        except IntegrityError:  # rolled back: another process was first
            answer = None
        except Exception as exc:  # noqa: BLE001 - raised by the view
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
