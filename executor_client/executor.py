"""Executor: public class, built from a configuration, started and stopped, or run until a signal."""

import logging
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any

from executor_client.capture.capture import Capture
from executor_client.capture.threads import is_of_run
from executor_client.config.config import ExecutorConfig, without_user
from executor_client.config.settings import level_number
from executor_client.handlers.registry import HandlerRegistry, registry
from executor_client.lifecycle import forks, process_exit
from executor_client.wire.capabilities import Capabilities
from executor_client.wire.errors import ExecutorError, HeldElsewhere, ImportedOnly, StartRefused

if TYPE_CHECKING:
    from flask import Blueprint

    from executor_client.mounting.asgi import AsgiApp
    from executor_client.mounting.own_server import OwnServer
    from executor_client.mounting.workers import Worker
    from executor_client.mounting.wsgi import WsgiApp
    from executor_client.service.engine import Engine

#: format of the process log unless the program has set up ``logging``
LOG_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s %(message)s"

logger = logging.getLogger(__name__)


class Executor:
    """Serves handlers to XXL-JOB admins.

    ``Executor.from_env().run()`` is a complete program; ``with Executor(config):`` serves inside the block.
    ``blueprint()``, ``wsgi_app()`` and ``asgi_app()`` mount the endpoints on an application; then ``start()``
    opens no port of its own, and one of the application's processes holds the executor.
    """

    def __init__(self, config: ExecutorConfig, handlers: HandlerRegistry = registry) -> None:
        """Check the settings without opening anything. Raises StartRefused with one line."""
        from executor_client.service.answers import Service

        if _handlers_only:  # an import for the handlers starts nothing, so its settings are not checked
            _handlers_only[-1].append(self)
        else:
            config.check()
        # The paths are absolute, because a handler may change the working directory.
        log_path = config.log_path.absolute() if config.log_path is not None else None
        self.config = replace(config, home=config.home.absolute(), log_path=log_path)
        self._handlers = handlers
        self._service = Service()
        self._service.serves_metrics = config.metrics
        self._boot_id = uuid.uuid4().hex
        self._is_started = False
        self._worker: Worker | None = None
        self._engine: Engine | None = None
        self._server: OwnServer | None = None
        self._capture = Capture(output=False, records=False)
        #: prefix of the paths on an application; None: this executor has a port of its own
        self.mount_prefix: str | None = None
        #: registered URL, once started
        self.address = ""

    @classmethod
    def from_env(cls, **settings: Any) -> "Executor":
        """Build from the ``XXL_JOB_*`` variables; fields of ExecutorConfig given by keyword override them."""
        return cls(ExecutorConfig.from_env(**settings))

    def blueprint(self) -> "Blueprint":
        """Return the endpoints for a Flask application, which has to serve the registered address."""
        from executor_client.mounting.wsgi import make_blueprint

        self.mount_prefix = ""
        return make_blueprint(self._service)

    def wsgi_app(self, application: "WsgiApp", prefix: str = "") -> "WsgiApp":
        """Return a WSGI application with the endpoints below ``prefix``, and all else of ``application``.

        Raises StartRefused without a token: behind a proxy every request seems to come from this host.
        """
        from executor_client.mounting.wsgi import WsgiMount, normal_prefix

        return WsgiMount(self._service, application, self._mount(normal_prefix(prefix)))

    def asgi_app(self, application: "AsgiApp", prefix: str = "") -> "AsgiApp":
        """Return an ASGI application like ``wsgi_app``; it starts and stops the executor with its server."""
        from executor_client.mounting.asgi import AsgiMount
        from executor_client.mounting.wsgi import normal_prefix

        return AsgiMount(self._service, self, application, self._mount(normal_prefix(prefix)))

    def start(self) -> None:
        """Open the port unless mounted, recover unfinished runs, register.

        Mounted, this process stands by while another one holds the executor, and takes over from it.
        Raises StartRefused with one line, also if it is mounted and its address is not known.
        """
        if _in_child() or _handlers_only:
            raise ImportedOnly
        if self._is_started:
            raise ExecutorError("the executor is already started")
        self._handlers.require_bound()
        forks.prepare()
        if self.mount_prefix is not None:
            self._start_as_worker()
        else:
            self._start_alone()
        self._is_started = True
        forks.watch(self)
        process_exit.watch(self)

    def stop(self) -> None:
        """Stop gracefully: wait for running handlers, report results or keep them on disk.

        Does nothing if the executor is not started. Raises ExecutorError in a handler and what it starts.
        """
        of_handlers = self._engine is not None and self._engine.is_of_handlers(threading.current_thread())
        if of_handlers or (self._is_started and is_of_run(sys._getframe())):
            raise ExecutorError("a handler cannot stop the executor, which would wait for the handler")
        was_started, self._is_started = self._is_started, False
        if not was_started:
            return
        process_exit.forget(self)
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end_wait()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.stop(self._close_port(worker), *([worker.is_last] if worker is not None else []))
            self._service.endpoints = None
            self._capture.remove()
        if worker is not None:
            worker.leave()

    def after_fork(self) -> None:
        """Drop, in a forked process, the parent's threads, sockets and locks.

        Mounted, this process forwards requests to the parent; ``start`` makes it a worker of its own.
        """
        if not self._is_started:
            return
        self._is_started = False
        process_exit.forget(self)
        self._boot_id = uuid.uuid4().hex
        self._service.endpoints = None
        engine, self._engine = self._engine, None
        if engine is not None:
            forks.keep(engine)
            engine.abandon()
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.after_fork()
        server, self._server = self._server, None
        if server is not None:
            server.abandon()

    def run(self) -> None:
        """Serve until SIGTERM or Ctrl-C; a second signal ends the process at once. Main thread only.

        Logs to stderr unless ``logging`` has been set up.
        """
        logging.basicConfig(level=level_number(self.config.log_level), format=LOG_FORMAT)
        with _Signals() as signals, self:
            signals.wait()
            logger.info("executor stopping")

    def __enter__(self) -> "Executor":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _mount(self, prefix: str) -> str:
        if not self.config.access_tokens:
            raise StartRefused(
                "refused to mount: no access token is set, and through a proxy every request seems to come"
                " from this host; set XXL_JOB_ACCESS_TOKEN"
            )
        self.mount_prefix = prefix
        return prefix

    def _start_alone(self) -> None:
        from executor_client.mounting.own_server import OwnServer, batched_runs
        from executor_client.mounting.wsgi import WsgiMount
        from executor_client.service.engine import registered_address

        application = WsgiMount(self._service, None)
        endpoints = [batched_runs(self._service)]
        server = OwnServer(application, self.config.host, self.config.listen_port, endpoints)
        try:
            self._hold(registered_address(self.config, server.port), server.start)
        except BaseException:
            server.stop()
            raise
        self._server = server

    def _start_as_worker(self) -> None:
        from executor_client.mounting.workers import Worker
        from executor_client.service.engine import registered_address

        worker = Worker(self.config.journal_path, self._service)

        def take_over() -> None:
            address = registered_address(self.config, self.config.port, self.mount_prefix or "")
            self._hold(address, worker.hold)

        try:
            take_over()
        except HeldElsewhere:
            worker.stand_by(take_over)
        except BaseException:
            worker.leave()
            raise
        self._worker = worker

    def _hold(self, address: str, open_port: Callable[[], None]) -> None:
        """Become the one process of this executor; raise HeldElsewhere if another one is."""
        config, is_alone = self.config, self.mount_prefix is None
        self._capture = Capture(output=config.capture_output, records=config.route_logging, default=is_alone)
        self._capture.install()
        try:
            engine, restored_count = self._build(address)
        except BaseException:
            self._capture.remove()
            raise
        self._engine = engine
        open_port()
        engine.start()
        self._log_start(restored_count)

    def _build(self, address: str) -> "tuple[Engine, int]":
        from executor_client.service.engine import Engine

        self.address = address
        engine = Engine(self.config, self._handlers, address, self._boot_id)
        try:
            restored_count = engine.restore()
        except ExecutorError as exc:
            engine.abort()
            raise StartRefused(str(exc)) from exc
        self._service.capabilities = Capabilities.of_client(self._boot_id).to_header()
        self._service.metrics = engine.render_metrics
        self._service.endpoints = engine.endpoints
        return engine, restored_count

    def _close_port(self, worker: "Worker | None") -> Callable[[], None]:
        server, self._server = self._server, None

        def close() -> None:
            if server is not None:
                server.stop()
            if worker is not None:
                worker.release()

        return close

    def _log_start(self, restored_count: int) -> None:
        logger.info(
            "executor started appname=%s address=%s admins=%s handlers=%s glue=%s"
            " journal=%s logs=%s restored=%s boot=%s",
            self.config.appname,
            self.address,
            ",".join(map(without_user, self.config.admin_addresses)),
            ",".join(self._handlers.names()) or "-",
            ",".join(sorted(self.config.allow_glue)) or "off",
            self.config.journal_path,
            self.config.log_root,
            restored_count,
            self._boot_id,
        )


#: executors of a program that is being imported for its handlers only; otherwise empty
_handlers_only: list[list[Executor]] = []


@contextmanager
def for_handlers_only() -> Iterator[list[Executor]]:
    """Import a program for its handlers only, up to the line that starts an executor; yield all it makes."""
    _handlers_only.append([])
    try:
        with suppress(ImportedOnly):
            yield _handlers_only[-1]
    finally:
        _handlers_only.pop()


def _in_child() -> bool:
    """Return whether this is a handler's child process, which imports the program to find the handler."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    return "executor_client.execution.child" in (getattr(main, "name", ""), *sys.orig_argv[2:3])


class _Signals:
    """Catches SIGTERM and SIGINT inside the ``with`` block. A second one ends the process.

    The handlers take no lock: the interpreter writes the signal's number to a socket.
    """

    def __init__(self) -> None:
        self._previous: dict[int, Any] = {}
        self._signals: list[int] = []

    def __enter__(self) -> "_Signals":
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._previous_descriptor = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._previous = {
            number: signal.signal(number, self._handle) for number in (signal.SIGTERM, signal.SIGINT)
        }
        forks.watch(self)
        return self

    def __exit__(self, *error: object) -> None:
        self._restore(self._previous_descriptor)
        self._reader.close()
        self._writer.close()

    def wait(self) -> None:
        """Wait for the first signal."""
        self._reader.recv(1)

    def after_fork(self) -> None:
        """Restore the signals of a forked process: through the shared socket they would stop the parent."""
        if self._previous:
            self._restore(-1)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._signals:
            os._exit(128 + number)
        self._signals.append(number)

    def _restore(self, descriptor: int) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}
        signal.set_wakeup_fd(descriptor)
