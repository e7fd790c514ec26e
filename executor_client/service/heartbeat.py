"""Heartbeat: registers the executor at every admin, every 30 seconds, and deregisters it at the stop."""

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import quote

from executor_client.config.config import ExecutorConfig
from executor_client.execution.error_boundary import survive
from executor_client.execution.metrics import Counters
from executor_client.handlers.schemas import NO_SCHEMAS, Schemas
from executor_client.service.admin_client import AdminClient, is_token_refusal, token_advice
from executor_client.wire.clock import monotonic_s
from executor_client.wire.errors import AdminUnreachable
from executor_client.wire.protocol import FAIL, SUCCESS, Reply

#: period while no admin has accepted the registration
UNREGISTERED_PERIOD_S = 3.0

logger = logging.getLogger(__name__)


class Heartbeat:
    """Heartbeat thread. Rejections and unreachable admins are logged only."""

    def __init__(
        self, admins: Sequence[AdminClient], config: ExecutorConfig, address: str, counters: Counters
    ) -> None:
        """``address`` is registered verbatim; nothing else uses ``admins``."""
        self._admins = list(admins)
        self._appname = config.appname
        self._has_token = bool(config.access_tokens)
        self._address = address
        self._period_s = config.timing.registry_period_s
        self._counters = counters
        self._stopping = threading.Event()
        self._deregister = True
        #: set when this executor has deregistered from the admins that know it
        self._deregistration = threading.Event()
        #: admin address -> last failure, "" after a success; a change is logged once
        self._last_failure: dict[str, str] = {}
        #: a missing executor group is logged once
        self._has_warned = False
        self._on_registered: Callable[[], None] = lambda: None
        self._handlers: Callable[[], Sequence[str]] = list
        self._schemas: Callable[[], Schemas] = lambda: NO_SCHEMAS
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(
        self,
        on_registered: Callable[[], None],
        handlers: Callable[[], Sequence[str]] = list,
        schemas: Callable[[], Schemas] = lambda: NO_SCHEMAS,
    ) -> None:
        """Register at once and then periodically, and announce what ``handlers`` and ``schemas`` return.

        ``on_registered`` is called when an admin accepts its first registration or the first after a failure.
        """
        self._on_registered, self._handlers, self._schemas = on_registered, handlers, schemas
        self._thread.start()

    def stop(self, *, timeout_s: float, deregister: bool = True) -> None:
        """Deregister from the admins that know this executor; ``join`` waits for the others.

        Another worker that goes on at this address needs no deregistration.
        """
        self._deregister = deregister
        self._stopping.set()
        if deregister:
            self._deregistration.wait(timeout_s)

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the thread."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            started_s = monotonic_s()
            successes = [
                survive(partial(self._register, admin), False, "registering") for admin in self._admins
            ]
            period_s = self._period_s if any(successes) else min(UNREGISTERED_PERIOD_S, self._period_s)
            self._stopping.wait(max(0.0, period_s - (monotonic_s() - started_s)))
        self._leave()

    def _leave(self) -> None:
        """Deregister, first from the admins that accepted the last registration, because they send runs."""
        failed_admins = [admin for admin in self._admins if self._last_failure.get(admin.address)]
        self._remove_all([admin for admin in self._admins if admin not in failed_admins])
        self._deregistration.set()
        self._remove_all(failed_admins)
        for admin in self._admins:
            admin.close()

    def _remove_all(self, admins: list[AdminClient]) -> None:
        """Deregister from all admins at the same time, since one may hang."""
        threads = []
        for admin in admins[1:]:
            thread = threading.Thread(target=self._remove, args=(admin,), name="deregistration", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no new threads while Python exits
                self._remove(admin)
            else:
                threads.append(thread)
        for admin in admins[:1]:
            self._remove(admin)
        for thread in threads:
            thread.join()

    def _register(self, admin: AdminClient) -> bool:
        if self._stopping.is_set():  # the call to another admin may have taken a while
            return False
        reply = self._call(
            lambda: admin.register(self._appname, self._address, self._handlers(), self._schemas())
        )
        text = "" if reply.code == SUCCESS else self._reason(reply)
        before, self._last_failure[admin.address] = self._last_failure.get(admin.address), text
        if text:
            self._counters.add("registrations_failed")
            if text != before:
                logger.warning("registration failed admin=%s reason=%s", admin.address, text)
            return False
        if before != "":
            logger.info(
                "registered admin=%s appname=%s address=%s", admin.address, self._appname, self._address
            )
            self._on_registered()
        if admin.has_no_group and not self._has_warned:
            self._warn_without_group(admin)
        return True

    def _warn_without_group(self, admin: AdminClient) -> None:
        """Log that no runs come until the group is added."""
        self._has_warned = True
        logger.warning(
            "no executor group has the AppName %s, so no runs come; add it at %s/connect?appname=%s",
            self._appname,
            admin.address,
            quote(self._appname, safe=""),
        )

    def _reason(self, reply: Reply) -> str:
        if is_token_refusal(reply.msg or ""):
            return token_advice(has_token=self._has_token)
        return reply.msg or f"code {reply.code}"

    def _remove(self, admin: AdminClient) -> None:
        if not self._deregister or self._last_failure.get(admin.address) is None:
            return
        reply = self._call(lambda: admin.remove(self._appname, self._address))
        if reply.code == SUCCESS:
            logger.info("deregistered admin=%s", admin.address)
        else:
            logger.warning("deregistration failed admin=%s reason=%s", admin.address, reply.msg)

    def _call(self, call: Callable[[], Reply]) -> Reply:
        try:
            return call()
        except AdminUnreachable as exc:
            return Reply(FAIL, exc.reason)
