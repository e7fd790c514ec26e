"""WSGI transport: calls the application of API v1 in this process, for ``duetime --local``."""

import io
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from executor_client.api.transport import BASE_PATH, Answer, Request

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class WsgiTransport:
    """Transport to a WSGI application, which gets ``environ`` with each request.

    ``environ`` may hold keys that HTTP cannot set, such as the identity of the caller.
    """

    def __init__(self, application: Application, *, environ: Mapping[str, Any], address: str) -> None:
        self.address = address
        self._application = application
        self._environ = environ

    def send(self, request: Request) -> Answer:
        """Call the application; its body is produced while the answer is read."""
        responses: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], _error: Any = None) -> Any:
            responses[:] = [(status, headers)]
            return io.BytesIO().write

        body = self._application(self._environ_of(request), start_response)
        pieces = iter(body)
        first = b""
        while not responses or not first:  # an application may start its response with the first piece
            piece = next(pieces, None)
            if piece is None:
                break
            first += piece
        status, headers = responses[0]
        names = {name.lower(): value for name, value in headers}
        body_pieces = _chain(first, pieces)
        return Answer(int(status.split()[0]), names, body_pieces, getattr(body, "close", lambda: None))

    def _environ_of(self, request: Request) -> dict[str, Any]:
        body = request.encoded_body()
        headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in request.headers.items()}
        environ = {
            "REQUEST_METHOD": request.method,
            "SCRIPT_NAME": BASE_PATH,
            "PATH_INFO": unquote(request.path, "latin-1"),
            "QUERY_STRING": request.encoded_query(),
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_HOST": "localhost",
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body or b""),
            "wsgi.errors": io.StringIO(),
            "wsgi.multithread": False,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            **headers,
            **self._environ,
        }
        if body is not None:
            environ["CONTENT_TYPE"] = "application/json"
            environ["CONTENT_LENGTH"] = str(len(body))
        return environ

    def close(self) -> None:
        """Nothing is open."""


def _chain(first: bytes, pieces: Iterable[bytes]) -> Any:
    yield first
    yield from pieces
