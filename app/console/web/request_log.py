"""Request ids in log lines, answers and runs; and the access log.

The id is that of the ``X-Request-Id`` of a trusted proxy, or new. Query strings are never logged: they can
contain parameters of jobs and answers of the OpenID provider.
"""

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote

from app.domain.runs.request_ids import HEADER, is_request_id, new_request_id
from app.runtime.logging import ACCESS, USER, QuotedText, request_id
from app.settings.config import Config

logger = logging.getLogger(ACCESS)
WSGIApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_KEY = "HTTP_X_REQUEST_ID"
#: characters of a path that are logged as they are
_SAFE = "/:@!$&'()*+,;=~"
PATH_MAX = 500


class RequestLog:
    """WSGI middleware around all others: gives each request its id, and logs it if that is configured."""

    def __init__(self, inner: WSGIApp, config: Config) -> None:
        self._inner = inner
        self._has_proxy = config.proxy_count > 0
        self._is_logging = config.access_log

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request."""
        proxy_id = environ.get(_KEY, "") if self._has_proxy else ""
        own_id = proxy_id if is_request_id(proxy_id) else new_request_id()
        request_id.set(own_id)
        access = _Access(environ, own_id) if self._is_logging else None

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            if access is not None:
                access.status = status[:3]
            return start_response(status, [*headers, (HEADER, own_id)], *rest)

        answer = self._inner(environ, start)
        return answer if access is None else access.follow(answer)


class _Access:
    """One line of the access log, written when the answer is closed: it was sent, or its client has left."""

    def __init__(self, environ: dict[str, Any], own_id: str) -> None:
        self._environ, self._request = environ, own_id
        self._method = environ["REQUEST_METHOD"]
        # before the application removes its prefix
        self._path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        self._start_s = time.monotonic()
        self._answer: Iterable[bytes] = ()
        self._count = 0
        self.status = "-"

    def follow(self, answer: Iterable[bytes]) -> Iterable[bytes]:
        """Return the answer, whose bytes are counted."""
        self._answer = answer
        return self

    def __iter__(self) -> Iterator[bytes]:
        for part in self._answer:
            self._count += len(part)
            yield part

    def close(self) -> None:
        """Close the answer and write the line."""
        if hasattr(self._answer, "close"):
            self._answer.close()
        self._write(self._count)

    def _write(self, count: int) -> None:
        path = quote(self._path.encode("latin-1", "replace"), safe=_SAFE)[:PATH_MAX]
        request_id.set(self._request)
        logger.info(
            "request method=%s path=%s status=%s ms=%d bytes=%d user=%s address=%s",
            re.sub(r"[^A-Z]", "?", self._method)[:16],
            path,
            int(self.status) if self.status.isdigit() else self.status,
            int((time.monotonic() - self._start_s) * 1000),
            count,
            QuotedText(self._environ.get(USER, "")),
            self._environ.get("REMOTE_ADDR") or "-",
        )
