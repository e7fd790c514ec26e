"""``python wsgi.py``: run the console under waitress in the foreground until SIGTERM or SIGINT.

``app``, created on first access, is the application of ``flask --app wsgi COMMAND``.
"""

import gc
import logging
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from sqlalchemy.exc import DBAPIError

from app.database.engine import bind_engine, unbind_engine
from app.database.faults import not_configured
from app.database.moves import follow, restart_program
from app.database.opening import check_database
from app.database.promotion_mark import when_moved
from app.errors import NotConfigured
from app.runtime.logging import set_up_logging
from app.runtime.program import raise_file_limit, read_arguments
from app.runtime.systemd import Watchdog, notify
from app.settings.config import Config
from app.settings.console_address import answers, console_address
from app.settings.home import keep_new_files_private

logger = logging.getLogger("wsgi")

#: idle connections are closed after this; for unfinished requests see ConnectionLimits
CHANNEL_TIMEOUT_S = 60
CLEANUP_INTERVAL_S = 10
CONNECTION_LIMIT = 2_000
#: part of the connections that one address may hold: a quarter
ADDRESS_PART = 4
#: unsent bytes of a connection at which its thread waits for the reader: more than the longest streamed
#: answer (``WHOLE_MAX_MIB``), because a reader that stops would hold the thread; above 1 MiB on disk
UNSENT_MAX = 80 * 1024 * 1024
#: file descriptors reserved for database, logs and outgoing calls
OTHER_FILES = 300
EXIT_NOT_CONFIGURED = 2
#: how long the console may take to answer its own watchdog, on a host that is short of memory or CPU time
ANSWER_S = 20


def __getattr__(name: str) -> Any:
    """Create ``app`` on first access."""
    if name != "app":
        raise AttributeError(name)
    try:
        config = follow(Config.from_env())
    except NotConfigured as exc:
        _exit_not_configured(exc)
    from app.commands.flask_app import create_command_app

    globals()["app"] = create_command_app(config)
    return globals()["app"]


def _exit_not_configured(error: Exception) -> NoReturn:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(EXIT_NOT_CONFIGURED)


def main() -> None:
    """Run the console until a signal stops it."""
    env_file = read_arguments("xxl-job-console", "Run the console in the foreground until SIGTERM or SIGINT.")
    gc.disable()  # Until all modules are loaded and the pages made, it would collect nothing.
    keep_new_files_private()
    _stop_at_signals()
    from app.domain.enums import NodeKind
    from app.runtime.interruptible_wait import stopping
    from app.services.auditing import refusals
    from app.services.installation.nodes import Heartbeat
    from app.services.installation.preconditions import check_schema, check_settings
    from app.services.operations.promise_guard import PromiseGuard
    from app.services.operations.workers_watch import WorkersWatch

    try:
        config = Config.from_env(env_file=env_file)
        set_up_logging(config.log_level, config.log_format)
        check_settings(config)
        config = follow(config)
        check_database(config)
        check_schema(bind_engine(config))  # checked before anything is written to the home folder
        server = _prepare(config)
    except NotConfigured as exc:
        _exit_not_configured(exc)
    except DBAPIError as exc:
        _exit_not_configured(not_configured(exc))
    _announce(config)
    when_moved(restart_program)
    heartbeat = Heartbeat(config, NodeKind.CONSOLE)
    heartbeat.start()
    watch = WorkersWatch(config, heartbeat.is_clock_right)
    watch.start()
    guard = PromiseGuard(config, heartbeat.is_clock_right)
    guard.start()
    refusals.recorder.start()
    watchdog = Watchdog(partial(answers, f"{console_address(config)}/health", timeout_s=ANSWER_S))
    watchdog.start()
    _stop_at_signals(stopping.set)  # waiting requests are answered first
    gc.freeze()  # keep long-lived objects out of later GC scans
    gc.enable()
    notify("READY=1")  # it listens: requests wait until the loop runs
    try:
        server.run()
    finally:
        notify("STOPPING=1")
        watchdog.stop()
        server.close()
        watch.stop()
        guard.stop()
        refusals.recorder.stop()
        heartbeat.stop()
        unbind_engine()
        logger.info("console stopped")


def _prepare(config: Config) -> Any:
    from app.api.executor_api import BODY_MAX
    from app.factory import create_app
    from app.services.installation import startup
    from executor_client.httpd.server import ConnectionLimits, create_http_server

    app = create_app(config)
    connection_limit = _connection_limit()
    try:  # before the node counts as alive, because requests wait until it serves
        server = create_http_server(
            app,
            ConnectionLimits(address_max=_address_max(config, connection_limit)),
            host=config.host,
            port=config.port,
            threads=config.threads,
            ident=None,
            connection_limit=connection_limit,
            channel_timeout=CHANNEL_TIMEOUT_S,
            cleanup_interval=CLEANUP_INTERVAL_S,
            asyncore_use_poll=True,
            outbuf_high_watermark=UNSENT_MAX,
            max_request_body_size=BODY_MAX,
            clear_untrusted_proxy_headers=False,
            batches=app.extensions["xxl_job_batched"],
            reserves=app.extensions["xxl_job_reserved"],
            expose_tracebacks=False,
        )
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise NotConfigured(
            f"XXL_JOB_HOST, XXL_JOB_PORT: cannot listen on {config.host}:{config.port}: {reason}"
        ) from exc
    startup.prepare(config)
    return server


def _address_max(config: Config, connection_limit: int) -> int | None:
    """Return the most connections of one address; None behind a proxy, whose address all have."""
    return None if config.proxy_count else connection_limit // ADDRESS_PART


def _connection_limit() -> int:
    """Return the connection limit: CONNECTION_LIMIT, or less if the file descriptor limit is lower."""
    return max(raise_file_limit(CONNECTION_LIMIT + OTHER_FILES) - OTHER_FILES, 100)


def _announce(config: Config) -> None:
    logger.info("console started address=%s/", config.address)
    if config.proxy_count:
        return
    if config.on_loopback:
        logger.info(
            "console listens on loopback only; set XXL_JOB_HOST=0.0.0.0 and XXL_JOB_ALLOWED_HOSTS to open it,"
            " or put a TLS proxy in front and set XXL_JOB_PROXY_COUNT"
        )
    else:
        logger.warning(
            "console without TLS; put a TLS proxy in front (XXL_JOB_PROXY_COUNT in docs/configuration.md)"
        )


def _stop_at_signals(first: Callable[[], None] | None = None) -> None:
    """End the process with SIGTERM and SIGINT, after a call of ``first``."""

    def stop(_signal: int, _frame: Any) -> NoReturn:
        if first is not None:
            first()
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


if __name__ == "__main__":
    main()
