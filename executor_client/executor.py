"""Executor: the public class; built from a configuration, started and stopped, or run until a signal."""

import atexit
import logging
import os
import signal
import socket
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from executor_client.capture import Capture
from executor_client.config import ExecutorConfig
from executor_client.endpoints import PATHS
from executor_client.errors import ExecutorError, ImportedOnly, StartRefused
from executor_client.handlers import HandlerRegistry, registry
from executor_client.protocol import Capabilities
from executor_client.settings import level_number

if TYPE_CHECKING:
    from flask import Blueprint

    from executor_client.engine import Engine
    from executor_client.server import OwnServer

#: format of the process log unless the program has set up ``logging``
LOG_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s %(message)s"

logger = logging.getLogger(__name__)


class Executor:
    """Serves handlers to XXL-JOB admins.

    ``Executor.from_env().run()`` is a complete program; ``with Executor(config):`` serves inside the block.
    ``blueprint()`` mounts the endpoints on a Flask application; then ``start()`` opens no port of its own.
    """

    def __init__(self, config: ExecutorConfig, handlers: HandlerRegistry = registry) -> None:
        """Check the settings without opening anything. Raises StartRefused with one line."""
        # imported here: Flask is loaded with the first executor, not with the package
        from executor_client.server import Service

        if not _handlers_only:  # an import for the handlers starts nothing, whatever the settings are
            config.check()
        self.config = config
        self._handlers = handlers
        self._service = Service()
        self._boot_id = uuid.uuid4().hex
        self._mounted = False
        self._engine: Engine | None = None
        self._server: OwnServer | None = None
        self._capture = Capture(output=config.capture_output, records=config.route_logging)
        #: registered URL, once started
        self.address = ""

    @classmethod
    def from_env(cls, **settings: Any) -> "Executor":
        """Build from the ``XXL_JOB_*`` variables; fields of ExecutorConfig given by keyword override them."""
        return cls(ExecutorConfig.from_env(**settings))

    def blueprint(self) -> "Blueprint":
        """Return the endpoints for a Flask application, which has to serve the registered address."""
        from executor_client.server import make_blueprint

        self._mounted = True
        return make_blueprint(self._service, PATHS, metrics=self.config.metrics)

    def start(self) -> None:
        """Open the port unless mounted as a blueprint, recover unfinished runs, register.

        Raises StartRefused with one line.
        """
        if _in_child() or _handlers_only:
            raise ImportedOnly
        if self._engine is not None:
            raise ExecutorError("the executor is already started")
        self._handlers.require_bound()
        server = None if self._mounted else self._bind()
        self._capture.install()
        try:
            engine, restored = self._build(server.port if server else self.config.port)
        except BaseException:
            self._capture.remove()
            if server is not None:
                server.stop()
            raise
        self._engine, self._server = engine, server
        if server is not None:
            server.start()
        engine.start()
        atexit.register(self.stop)
        self._log_start(restored)

    def stop(self) -> None:
        """Stop gracefully: wait for running handlers, report results or keep them on disk.

        Does nothing if the executor is not started.
        """
        engine, self._engine = self._engine, None
        if engine is None:
            return
        atexit.unregister(self.stop)
        engine.stop(close_port=self._close_port)
        self._service.endpoints = None
        self._capture.remove()

    def run(self) -> None:
        """Serve until SIGTERM or Ctrl-C; a second signal ends the process at once. Main thread only.

        Logs to stderr unless ``logging`` has been set up.
        """
        logging.basicConfig(level=level_number(self.config.log_level), format=LOG_FORMAT)
        with _signals() as wait_for_signal, self:
            wait_for_signal()
            logger.info("executor stopping")

    def __enter__(self) -> "Executor":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _bind(self) -> "OwnServer":
        from executor_client.server import OwnServer, make_app

        app = make_app(self._service, PATHS, metrics=self.config.metrics)
        return OwnServer(app, self.config.host, self.config.port)

    def _build(self, port: int) -> "tuple[Engine, int]":
        from executor_client.engine import Engine, registered_address

        self.address = registered_address(self.config, port)
        engine = Engine(self.config, self._handlers, self.address, self._boot_id)
        try:
            restored = engine.restore()
        except ExecutorError as exc:
            engine.abort()
            raise StartRefused(str(exc)) from exc
        self._service.capabilities = Capabilities(
            durable_dedup=True, boot_id=self._boot_id, run_state=True
        ).to_header()
        self._service.metrics = engine.render_metrics
        self._service.endpoints = engine.endpoints
        return engine, restored

    def _close_port(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def _log_start(self, restored: int) -> None:
        config = self.config
        logger.info(
            "executor started appname=%s address=%s admins=%s handlers=%s glue=%s"
            " journal=%s logs=%s restored=%s boot=%s",
            config.appname,
            self.address,
            ",".join(config.admin_addresses),
            ",".join(self._handlers.names()) or "-",
            ",".join(sorted(config.allow_glue)) or "off",
            config.journal_path,
            config.log_root,
            restored,
            self._boot_id,
        )


#: not empty while a program is imported for its handlers only
_handlers_only: list[bool] = []


@contextmanager
def for_handlers_only() -> Iterator[None]:
    """Import a program for its handlers only: the import ends where the program starts its executor."""
    _handlers_only.append(True)
    try:
        with suppress(ImportedOnly):
            yield
    finally:
        _handlers_only.pop()


def _in_child() -> bool:
    """Return whether this is a handler's child process, which imports the program to find the handler."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return getattr(main, "name", "") == "executor_client.child"


@contextmanager
def _signals() -> "Iterator[Any]":
    """Catch SIGTERM and SIGINT; yield a function that waits for the first. A second one ends the process.

    The handlers take no lock: the interpreter writes the signal's number to a socket.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    previous_descriptor = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    received: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)

    previous = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: reader.recv(1)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous_descriptor)
        reader.close()
        writer.close()
