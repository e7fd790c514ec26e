"""Errors of the API client.

ApiError
├── NotConfigured       no address or token is set, or the file of profiles cannot be used
├── NotUnicode          a text for the console is not Unicode
├── ApiUnreachable      no API v1 at the address
│   └── NoApi               something else answers there
├── UnknownName         (LookupError) no job, run or executor group has this name or id
├── NotUnique           several jobs have this name
├── RunNotEnded         (TimeoutError) a run had not ended after the wait for it
├── RunUnsuccessful     a run ended, but not with success
└── ApiRefused          the API refused the request (4xx, 5xx), with its reasons
    ├── InvalidRequest      400, 415, 422
    ├── Unauthorized        401
    ├── Forbidden           403
    ├── NotFound            404
    ├── Conflict            409
    ├── PreconditionFailed  412
    └── RetryLater          429, 503
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from executor_client.wire.errors import ExecutorError

#: status of a request whose body is too long
TOO_LARGE = 413


class ApiError(ExecutorError):
    """Base of all errors of the API client; the text is one line."""


class NotConfigured(ApiError):
    """No console to call is configured, or no token for it."""


class NotUnicode(ApiError):
    """A text for the console cannot be encoded in UTF-8, for instance one given in another encoding."""

    def __init__(self, text: str) -> None:
        super().__init__(f"not valid UTF-8: {text[:40]!r}")


class ApiUnreachable(ApiError):
    """No API v1 answered at this address."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason


class NoApi(ApiUnreachable):
    """Something else answers at this address."""


class UnknownName(ApiError, LookupError):
    """There is no job, run or executor group of this name or id, or the token may not see it."""


class NotUnique(ApiError):
    """Several jobs have this name; ``ids`` lists them."""

    def __init__(self, text: str, ids: Sequence[int]) -> None:
        super().__init__(text)
        self.ids = tuple(ids)


class RunNotEnded(ApiError, TimeoutError):
    """A run had not ended when the time to wait for it was over; it continues."""

    def __init__(self, run_id: str, state: str, timeout_s: float) -> None:
        super().__init__(f"run {run_id} is still {state} after {timeout_s:g} s; it continues")
        self.run_id = run_id
        self.state = state


class RunUnsuccessful(ApiError):
    """A run ended without success: with ``state`` and ``reason``."""

    def __init__(self, run_id: str, state: str, reason: str) -> None:
        super().__init__(f"run {run_id} {state}" + (f": {reason}" if reason else ""))
        self.run_id = run_id
        self.state = state
        self.reason = reason


@dataclass(frozen=True)
class FieldError:
    """Why the value of one member of a request is refused; ``field`` is its name in the API."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.field else self.reason


class ApiRefused(ApiError):
    """The API refused a request."""

    def __init__(self, status: int, problem: dict[str, Any], *, retry_after_s: float | None = None) -> None:
        self.status = status
        self.title = str(problem.get("title") or f"HTTP status {status}")
        self.detail = str(problem.get("detail") or "")
        self.request_id = str(problem.get("request_id") or "")
        #: seconds after which a repetition makes sense; None: not given
        self.retry_after_s = retry_after_s
        self.fields = tuple(_field_errors(problem.get("errors")))
        super().__init__(self._line())

    def _line(self) -> str:
        if self.fields:
            return "; ".join(map(str, self.fields))
        line = self.detail or self.title
        if self.status == TOO_LARGE:
            line += ": longer than the console (16 MiB) or a proxy in front of it accepts; send it in parts"
        if self.status in (500, 503) and self.request_id:
            line += f" (request {self.request_id})"
        return line


def _field_errors(errors: Any) -> list[FieldError]:
    entries = errors if isinstance(errors, list) else []
    return [
        FieldError(str(entry.get("field") or ""), str(entry.get("reason") or ""))
        for entry in entries
        if isinstance(entry, dict)
    ]


class InvalidRequest(ApiRefused):
    """The request is malformed or has invalid values; ``fields`` names them."""


class Unauthorized(ApiRefused):
    """The token is missing, unknown, expired or revoked."""


class Forbidden(ApiRefused):
    """The token does not have the right."""


class NotFound(ApiRefused):
    """There is no such object, or the token may not see it."""


class Conflict(ApiRefused):
    """The state of the object does not allow the request."""


class PreconditionFailed(ApiRefused):
    """The object was changed since it was read."""


class RetryLater(ApiRefused):
    """The console is too busy; ``retry_after_s`` names the wait."""


_BY_STATUS: dict[int, type[ApiRefused]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    415: InvalidRequest,
    422: InvalidRequest,
    429: RetryLater,
    503: RetryLater,
}


def refusal(status: int, problem: dict[str, Any], *, retry_after_s: float | None = None) -> ApiRefused:
    """Return the error for the status and the problem document of an answer."""
    return _BY_STATUS.get(status, ApiRefused)(status, problem, retry_after_s=retry_after_s)
