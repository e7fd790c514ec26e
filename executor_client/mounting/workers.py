"""Worker processes of one application that share an executor: one holds it, the others stand by.

The holder has the journal lock, which the kernel releases when the process ends for any reason.
"""

import contextlib
import fcntl
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

from executor_client.journal.lock import is_locked
from executor_client.mounting import handover
from executor_client.service.answers import Answer, Service
from executor_client.service.endpoints import Request
from executor_client.wire.clock import monotonic_s
from executor_client.wire.errors import ExecutorError, HeldElsewhere, StartRefused
from executor_client.wire.protocol import FAIL, SEND_AGAIN, Reply

#: a worker that stands by tries to take over this often, in seconds
TAKE_OVER_PERIOD_S = 0.3
#: a request waits this long for a worker that holds the executor; XXL-JOB's admin waits 3 s
NO_HOLDER_S = 2.5
#: a worker that stops waits this long for others that stop with it, see ``is_last``
OTHERS_STOP_S = 1.0
_RETRY_S = 0.05
#: variable that Flask's reloader sets for the serving process only
_RELOADER_MARK = "WERKZEUG_RUN_MAIN"

logger = logging.getLogger(__name__)


class Worker:
    """This process as one of the workers that share an executor."""

    def __init__(self, journal: Path, service: Service) -> None:
        """Join the workers; ``journal`` is the path of the executor's journal. Raises StartRefused."""
        self._journal = journal
        self._service = service
        self._holder_file = journal.with_name(f"{journal.name}.holder")
        self._stopping = threading.Event()
        self._server: handover.HandoverServer | None = None
        self._thread: threading.Thread | None = None
        try:
            journal.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._presence = os.open(
                journal.with_name(f"{journal.name}.workers"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600
            )
        except OSError as exc:
            raise StartRefused(
                f"journal {journal}: cannot create it: {exc.strerror}; set XXL_JOB_HOME to a writable folder"
            ) from exc
        fcntl.flock(self._presence, fcntl.LOCK_SH)
        service.pass_on = self.pass_on

    def hold(self) -> None:
        """Answer the requests that other workers forward."""
        try:
            self._server = handover.HandoverServer(self._holder_file, self._service.answer_here)
            self._server.start()
        except OSError as exc:
            logger.warning("executor cannot be reached by other workers reason=%s", exc)

    def stand_by(self, take_over: Callable[[], None]) -> None:
        """Call ``take_over``, in a thread, when no other worker holds the executor, until it succeeds."""
        self._thread = threading.Thread(target=self._wait, args=(take_over,), name="stand-by", daemon=True)
        self._thread.start()
        logger.info("executor standing by, another worker holds it journal=%s", self._journal)
        if os.environ.get(_RELOADER_MARK):
            logger.warning(
                "the process that reloads this one may hold the executor, with the code of its own start;"
                " with Flask's reloader, start the executor only if %s is set",
                _RELOADER_MARK,
            )

    def is_last(self) -> bool:
        """Return whether no other worker is left; wait a moment for those that stop at the same time."""
        until_s = monotonic_s() + OTHERS_STOP_S
        while True:
            with contextlib.suppress(OSError):
                fcntl.flock(self._presence, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(self._presence, fcntl.LOCK_SH)  # a worker that starts now need not wait
                return True
            if monotonic_s() > until_s:
                return False
            threading.Event().wait(_RETRY_S)

    def end_wait(self) -> None:
        """Stop competing for leadership."""
        self._stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(10)

    def release(self) -> None:
        """Stop answering other workers. Call before the journal is closed, after which another takes over."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def leave(self) -> None:
        """Stop forwarding requests."""
        self._service.pass_on = None
        os.close(self._presence)

    def after_fork(self) -> None:
        """Close the copies of a fork and forward requests to the parent, which continues."""
        self._stopping.set()
        if self._server is not None:
            self._server.abandon()
        with contextlib.suppress(OSError):
            os.close(self._presence)

    def pass_on(self, request: Request) -> Answer:
        """Forward a request to the holder, waiting a moment for one, and return its answer."""
        until_s = monotonic_s() + NO_HOLDER_S
        while self._service.endpoints is None:
            # A retry after a lost answer is safe: a run that the last holder has accepted is a duplicate.
            with contextlib.suppress(OSError, ValueError):
                return handover.ask(self._holder_file, request)
            if monotonic_s() > until_s:
                return self._service.reply(Reply(FAIL, f"no worker holds the executor; {SEND_AGAIN}"))
            threading.Event().wait(_RETRY_S)
        return self._service.answer_here(request)

    def _wait(self, take_over: Callable[[], None]) -> None:
        failure = ""
        while not self._stopping.wait(TAKE_OVER_PERIOD_S):
            if is_locked(self._journal):
                continue
            try:
                take_over()
                return
            except HeldElsewhere:
                continue
            except (ExecutorError, OSError) as exc:
                if str(exc) != failure:
                    logger.warning("executor cannot be taken over reason=%s", exc)
                failure = str(exc)
