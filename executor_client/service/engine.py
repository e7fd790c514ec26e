"""Engine: builds, starts and stops the services of an executor, except its HTTP server."""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from executor_client.config.config import ANY_HOSTS, ExecutorConfig
from executor_client.execution.error_boundary import survive
from executor_client.execution.event_loop import EventLoop
from executor_client.execution.intake import REASON_STOPPED, Intake
from executor_client.execution.job_thread import JobThread
from executor_client.execution.metrics import Counters, render
from executor_client.execution.services import Services
from executor_client.execution.watchdog import Watchdog
from executor_client.handlers.registry import HandlerRegistry
from executor_client.handlers.schemas import Schemas
from executor_client.journal.journal import Journal
from executor_client.logs.files import expire_logs
from executor_client.logs.reading import LogReader
from executor_client.service.admin_client import AdminClient
from executor_client.service.callback import CallbackSender, send_unstored
from executor_client.service.endpoints import Endpoints
from executor_client.service.heartbeat import Heartbeat
from executor_client.service.tail_sender import send_tails
from executor_client.wire.clock import monotonic_s, now_ms
from executor_client.wire.errors import ExecutorError, StartRefused
from executor_client.wire.start_zone import start_zone

#: period of the clean-up of logs and journal; it also runs at the start
CLEANING_PERIOD_S = 6 * 3600.0
DAY_MS = 86_400_000

logger = logging.getLogger(__name__)


class Engine:
    """Services of a running executor except its HTTP server."""

    def __init__(self, config: ExecutorConfig, handlers: HandlerRegistry, address: str, boot_id: str) -> None:
        """Open journal and log folder; raise StartRefused. ``address`` is the URL to register."""
        start_zone()  # before a framework changes it: some systems have only the current time zone
        self._config = config
        _require_folder(config)
        _warn_of_earlier_journal(config)
        self.counters = Counters()
        self._wake = threading.Event()
        self._journal = Journal(config.journal_path)
        self._watchdog = Watchdog()
        self._event_loop = EventLoop(self._watchdog.after)
        services = Services(
            self._journal,
            self._watchdog,
            self.counters,
            config.timing,
            config.log_root,
            config.script_limits,
            self._wake.set,
            self._event_loop,
        )
        self._handlers = handlers
        self._intake = Intake(handlers, config.allow_glue, services)
        self._log_reader = LogReader(config.log_root)
        self.endpoints = Endpoints(self._intake, self._log_reader, config.access_tokens)

        consoles: dict[str, frozenset[str]] = {}

        def admins() -> list[AdminClient]:
            return [AdminClient(url, config, boot_id, consoles) for url in config.admin_addresses]

        self._heartbeat = Heartbeat(admins(), config, address, self.counters)
        self._callback = CallbackSender(admins(), services, self._wake)
        self._services, self._admins = services, admins
        self._stopping = threading.Event()
        self._cleaning = threading.Thread(target=self._clean_periodically, name="cleaning", daemon=True)

    def restore(self) -> int:
        """Recover the unfinished runs of a previous process; return how many were queued again.

        Call before the port opens.
        """
        self._watchdog.start()
        oldest_ms = now_ms() - int(self._config.timing.restore_max_age_s * 1000)
        return self._intake.restore(self._journal.open_runs(), not_before_ms=oldest_ms)

    def start(self) -> None:
        """Start callbacks, registration and clean-up. Call after the port is open."""
        self._callback.start()
        self._heartbeat.start(
            self._callback.retry_now, self._handlers.names, lambda: Schemas.of(self._handlers.schemas())
        )
        self._cleaning.start()

    def stop(self, close_port: Callable[[], None], is_last: Callable[[], bool] = lambda: True) -> None:
        """Stop in order: registration, intake, handlers, tails of logs, commands, port, callbacks, journal.

        A run that an admin sends before it has deregistered this executor is still accepted.
        If ``is_last`` returns False, another process will serve the address, which stays registered.
        """
        self._stopping.set()
        timing = self._config.timing
        until_s = monotonic_s() + timing.admin_timeout_s * 2
        self._heartbeat.stop(timeout_s=timing.admin_timeout_s * 2, deregister=is_last())
        busy = self._intake.close()
        runs = [run.request for thread in busy if (run := thread.current)]
        self._heartbeat.join(max(0.0, until_s - monotonic_s()))
        _finish_runs(
            busy,
            wait_s=timing.shutdown_wait_s,
            kill_s=max(timing.cooperative_s, timing.terminate_s) + timing.abandon_s,
        )
        send_tails(runs, self._log_reader, self._admins())
        self._event_loop.stop()
        self._services.commands.end()
        close_port()
        with contextlib.suppress(ExecutorError):
            self._journal.flush()
        self._callback.stop(drain_s=timing.drain_s)
        self._watchdog.stop()
        with contextlib.suppress(ExecutorError):
            logger.info("executor stopped results_on_disk=%s", self._journal.count_unacknowledged())
        self._journal.close()
        self._send_lost()

    def is_of_handlers(self, thread: threading.Thread) -> bool:
        """Return whether handlers run in this thread, which a stop waits for."""
        of_jobs = any(job.thread is thread for job in self._intake.threads())
        return of_jobs or self._event_loop.has_thread(thread)

    def abort(self) -> None:
        """Release what the constructor opened after a failed start."""
        self._journal.close()

    def abandon(self) -> None:
        """Release, in a forked process, the locks that would keep other processes from the executor."""
        self._stopping.set()
        self._journal.abandon()

    def render_metrics(self) -> str:
        """Return the text of ``GET /metrics``."""
        return render(
            self.counters, {**self._intake.gauges, "results_waiting": self._journal.count_unacknowledged()}
        )

    def _send_lost(self) -> None:
        """Send results that could not be stored, as on a full disk, straight to an admin.

        Runs that had not started are left out: the next start of the executor starts them.
        """
        self._services.log_ended()
        lost_results = [run.result for run in self._services.lost_runs if run.is_started]
        if lost_results:
            remaining = send_unstored(lost_results, self._admins(), drain_s=self._config.timing.drain_s)
            logger.warning("results sent without the journal count=%s", len(lost_results) - len(remaining))

    def _clean_periodically(self) -> None:
        while not self._stopping.is_set():
            survive(self._clean, None, "cleaning")
            self._stopping.wait(CLEANING_PERIOD_S)

    def _clean(self) -> None:
        running = [run.log.path for thread in self._intake.threads() if (run := thread.current)]
        days = self._config.log_retention_days
        log_days = expire_logs(self._config.log_root, days, now_ms=now_ms(), running=running)
        row_count = self._journal.prune(
            before_ms=now_ms() - self._config.timing.dedup_retention_days * DAY_MS
        )
        if log_days or row_count:
            logger.info("cleaned log_days=%s journal_rows=%s", len(log_days), row_count)


def registered_address(config: ExecutorConfig, port: int | None, prefix: str = "") -> str:
    """Return the URL to register, with a trailing slash; the same at every start.

    ``port`` is None for a mounted executor that does not know the application's; ``prefix`` is that of its
    paths. Raises StartRefused if the address is unknown.
    """
    if config.address:
        return config.address.rstrip("/") + "/"
    if port is None:
        raise StartRefused(
            "mounted on an application, and its address is not known: set XXL_JOB_EXECUTOR_ADDRESS to the URL"
            f" where the admin reaches it, for example http://10.1.2.3:8000{prefix}/"
        )
    host = _outward_host(config.admin_addresses) if config.host in ANY_HOSTS else config.host
    return f"http://[{host}]:{port}{prefix}/" if ":" in host else f"http://{host}:{port}{prefix}/"


def _outward_host(admins: Sequence[str]) -> str:
    """Return the local address that a connection to an admin would use, to the first that has a route.

    Nothing is sent.
    """
    problems = []
    for admin in admins:
        parts = urlsplit(admin)
        try:
            port = parts.port or 80
            family, kind, _, _, target = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as probe:
                probe.connect(target)
                return str(probe.getsockname()[0])
        except (OSError, UnicodeError) as exc:
            problems.append(f"{parts.hostname} can reach ({exc})")
    raise StartRefused(
        f"cannot determine the address that {' or '.join(problems)}: set XXL_JOB_EXECUTOR_ADDRESS"
    )


def _require_folder(config: ExecutorConfig) -> None:
    try:
        if config.log_path is None:  # otherwise ``parents`` would create the home with the mode of the umask
            config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        config.log_root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as exc:
        raise StartRefused(
            f"log folder {config.log_root}: {exc.strerror}; set XXL_JOB_EXECUTOR_LOG_PATH"
        ) from exc


def _warn_of_earlier_journal(config: ExecutorConfig) -> None:
    earlier_path, journal_path = config.earlier_journal_path, config.journal_path
    if earlier_path != journal_path and earlier_path.exists() and not journal_path.exists():
        logger.warning("journal of an earlier version not read file=%s new=%s", earlier_path, journal_path)


def _finish_runs(threads: list[JobThread], *, wait_s: float, kill_s: float) -> None:
    """Wait for running handlers, kill those still running after ``wait_s``, and wait up to ``kill_s``."""
    until_s = monotonic_s() + wait_s
    late = [thread for thread in threads if not thread.join(max(0.0, until_s - monotonic_s()))]
    for thread in late:
        thread.stop(REASON_STOPPED)
    until_s = monotonic_s() + kill_s
    for thread in late:
        if not thread.join(max(0.0, until_s - monotonic_s())):
            logger.warning("handler still running after stop job_id=%s", thread.job_id)
