"""An application under its HTTP server, in a thread of the test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from executor_client.httpd.server import ConnectionLimits, create_http_server


@contextmanager
def serving(app: Any, *, threads: int = 4) -> Iterator[int]:
    """Serve a WSGI application on a free port, which is the value."""
    server = create_http_server(app, ConnectionLimits(), host="127.0.0.1", port=0, threads=threads)
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            server.asyncore.loop(timeout=0.05, map=server._map, count=1)
        server.task_dispatcher.shutdown()
        server.asyncore.close_all(server._map)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server.effective_port
    finally:
        stop.set()
        thread.join()
