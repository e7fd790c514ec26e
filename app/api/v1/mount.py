"""Mount of the API: WSGI middleware that creates its application at the first request.

A console whose API is not used needs neither the time nor the memory for it.
"""

import json
import re
import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from app.services.executors.callers import Caller
from app.settings.config import Config

WSGIApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
#: path of the API below the context path
PATH = "/api/v1"


class ApiMount:
    """WSGI middleware: passes ``/api/v1/…`` to the API, with or without the context path, all else on."""

    def __init__(self, inner: WSGIApp, config: Config, executors: Caller) -> None:
        self._inner = inner
        self._config, self._executors = config, executors
        self._path = re.compile(rf"((?:{re.escape(config.context_path)})?{PATH})(/.*|)", re.DOTALL)
        self._making = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Handle one request."""
        path = re.sub(r"/{2,}", "/", environ.get("PATH_INFO", ""))
        match = self._path.fullmatch(path)
        if match is None:
            return self._inner(environ, start_response)
        environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + match[1]
        environ["PATH_INFO"] = match[2]
        with self._making:
            application = self.application
        return application(environ, start_response)

    def document(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        from app.api.v1.application import document_json  # imported here for the reason below

        document: dict[str, Any] = json.loads(document_json())
        return document

    @cached_property
    def application(self) -> WSGIApp:
        """The application."""
        # imported here, because they cost 0.3 s and 16 MB
        from app.api.v1.application import create_api
        from app.api.v1.resources import all_resources

        return create_api(self._config, self._executors, all_resources())
