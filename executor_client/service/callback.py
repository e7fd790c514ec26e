"""Callback sender: reports results from the journal to an admin, in batches, until an admin replies 200.

A rejected result is deferred and sent after all others, so that it does not block them, and a rejected batch
is sent one by one. A result is given up when an admin has refused it for GIVE_UP_MS, never while no admin is
reachable.
"""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from executor_client.execution.error_boundary import survive
from executor_client.execution.services import Services
from executor_client.logs.files import append_line, log_file
from executor_client.service.admin_client import AdminClient, is_token_refusal
from executor_client.wire.callbacks import CallbackItem, callback_body
from executor_client.wire.clock import monotonic_s, now_ms
from executor_client.wire.errors import AdminUnreachable, JournalUnavailable
from executor_client.wire.protocol import FAIL, SEND_AGAIN, SUCCESS, Reply

#: results in one request
BATCH_MAX = 50
#: size of their texts together, in bytes: proxies such as nginx refuse a request of more than 1 MiB
BATCH_MAX_BYTES = 900_000
#: retry delay of a result that was rejected while others were sent
REFUSED_WAIT_S = 60.0
#: shortest retry delay of a rejected result, whatever the settings
LEAST_WAIT_S = 0.1
#: rejections in a row after which an admin counts as rejecting everything
REFUSALS_IN_A_ROW = 3
#: time from the first refusal of a result, in milliseconds, after which it is given up
GIVE_UP_MS = 7 * 86_400_000
UNREACHABLE = "no admin is reachable"
#: HTTP errors caused by the content of a request: 400 Bad Request, 413 Content Too Large
_CONTENT_ERRORS = ("HTTP status 400", "HTTP status 413")

PendingResult = tuple[int, CallbackItem]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Deferral:
    """Time of the next attempt for a rejected result, in monotonic seconds, and the delay before it."""

    until_s: float
    delay_s: float


class CallbackSender:
    """Callback thread: sends results until they are acknowledged."""

    def __init__(self, admins: Sequence[AdminClient], services: Services, wake: threading.Event) -> None:
        """``wake`` is set when there may be results to send; only this thread uses ``admins``."""
        self._admins = list(admins)
        self._services = services
        self._wake = wake
        self._stopping = threading.Event()
        #: cuts short the wait after a failure
        self._retry_requested = threading.Event()
        #: rejected results by run id
        self._deferrals: dict[int, Deferral] = {}
        #: results rejected since the last one that was accepted
        self._in_a_row = 0
        self._failure_logged: set[int] = set()
        self._thread = threading.Thread(target=self._run, name="callback", daemon=True)

    def start(self) -> None:
        """Start the thread; results left by a previous process are sent at once."""
        self._wake.set()
        self._thread.start()

    def stop(self, *, drain_s: float) -> None:
        """Send pending results for at most ``drain_s``; the rest stays on disk."""
        self._stopping.set()
        self.retry_now()
        self._thread.join(drain_s)

    def retry_now(self) -> None:
        """Retry without delay, because an admin has just become reachable."""
        self._retry_requested.set()
        self._wake.set()

    def _run(self) -> None:
        timing = self._services.timing
        wait_s, last = 0.0, False
        while not last:
            last = self._stopping.is_set()
            if not last and wait_s:
                self._retry_requested.wait(wait_s)
            elif not last:
                self._wake.wait(self._idle_s())
            self._wake.clear()
            if self._retry_requested.is_set():
                self._retry_requested.clear()
                self._deferrals = dict.fromkeys(self._deferrals, Deferral(0.0, 0.0))
            has_delivered = survive(self._send_all, False, "sending results")
            wait_s = (
                0.0
                if has_delivered
                else min(max(wait_s * 2, timing.callback_retry_min_s), timing.callback_retry_max_s)
            )
        for admin in self._admins:
            admin.close()

    def _idle_s(self) -> float:
        """Return how long to wait for further results: until a deferred one is due."""
        due_s = min((deferral.until_s for deferral in self._deferrals.values()), default=float("inf"))
        return max(0.0, min(due_s - monotonic_s(), self._services.timing.callback_retry_max_s))

    def _send_all(self) -> bool:
        """Send all results that are not deferred; False if no admin accepts them."""
        try:
            while True:
                batch = _truncate_batch(self._next_batch())
                if not batch:
                    return True
                reply = self._deliver(batch)
                if reply.code != SUCCESS and not self._set_apart(batch, reply):
                    return False
        except JournalUnavailable as exc:
            logger.warning("results not read from the journal error=%s", exc)
            return False

    def _next_batch(self) -> list[PendingResult]:
        """Return results that were never rejected; without any, the rejected ones that are longest overdue.

        Of those no more than REFUSALS_IN_A_ROW, so that each of them gets its turn.
        """
        journal, deferrals = self._services.journal, self._deferrals
        if new_results := journal.find_unacknowledged(BATCH_MAX, skip=deferrals.keys()):
            return new_results
        now_s = monotonic_s()
        due_run_ids = [run_id for run_id, deferral in deferrals.items() if deferral.until_s <= now_s]
        due_run_ids.sort(key=lambda run_id: deferrals[run_id].until_s)
        return journal.find_unacknowledged(BATCH_MAX, skip=deferrals.keys() - due_run_ids[:REFUSALS_IN_A_ROW])

    def _set_apart(self, batch: list[PendingResult], rejection: Reply) -> bool:
        """Send a rejected batch one by one and defer what is rejected again.

        False if the admin is unreachable or seems to reject everything.
        """
        if _is_for_all(rejection.msg or ""):
            return False
        if len(batch) == 1:
            return self._defer(batch[0], self._services.timing.callback_retry_min_s)
        self._in_a_row = 0
        for result in batch:
            reply = self._deliver([result])
            if reply.code != SUCCESS and (
                _is_for_all(reply.msg or "") or not self._defer(result, REFUSED_WAIT_S)
            ):
                return False
        return True

    def _defer(self, result: PendingResult, least_s: float) -> bool:
        """Defer a rejected result, each time for longer; False after too many rejections in a row."""
        deferral = self._deferrals.get(result[0])
        delay_s = max(
            min(max(deferral.delay_s * 2 if deferral else 0.0, least_s), REFUSED_WAIT_S), LEAST_WAIT_S
        )
        self._deferrals[result[0]] = Deferral(monotonic_s() + delay_s, delay_s)
        self._in_a_row += 1
        return self._in_a_row < REFUSALS_IN_A_ROW

    def _deliver(self, batch: list[PendingResult]) -> Reply:
        """Send to the admin that accepted last, then to the others, until one replies 200.

        Otherwise return the last refusal: only without any is no admin reachable.
        """
        items = [item for _, item in batch]
        refusal: Reply | None = None
        unreachable = Reply(FAIL, UNREACHABLE)
        for admin in list(self._admins):
            try:
                refusal = admin.callback(items)
            except AdminUnreachable as exc:
                unreachable = Reply(FAIL, f"{UNREACHABLE}: {exc}")
                continue
            if refusal.code == SUCCESS:
                self._admins.remove(admin)
                self._admins.insert(0, admin)
                self._acknowledge(batch)
                return refusal
        reply = refusal or unreachable
        self._services.counters.add("callbacks_failed")
        logger.warning("results not delivered count=%s reply=%s", len(batch), reply.msg)
        if self._give_up(batch, reply):
            return Reply(SUCCESS)
        self._log_to_runs(batch, f"callback failed, will be retried: {reply.msg}")
        return reply

    def _give_up(self, batch: list[PendingResult], refusal: Reply) -> bool:
        """Give up results that were refused for too long; True if none of the batch is left."""
        message = refusal.msg or ""
        is_for_each = len(batch) == 1 or is_token_refusal(message)
        if _is_of_server(message) or not is_for_each:
            return False
        journal, at_ms = self._services.journal, now_ms()
        refused_ms = journal.refuse([run_id for run_id, _ in batch], now_ms=at_ms)
        old_results = [result for result in batch if at_ms - refused_ms[result[0]] >= GIVE_UP_MS]
        if old_results:
            log_ids = ",".join(str(item.log_id) for _, item in old_results)
            logger.error("results given up after days of refusals log_ids=%s reply=%s", log_ids, message)
            self._settle(old_results, f"callback given up after days of refusals: {message}")
            self._services.counters.add("callbacks_given_up", len(old_results))
        return len(old_results) == len(batch)

    def _acknowledge(self, batch: list[PendingResult]) -> None:
        self._in_a_row = 0
        self._settle(batch, "callback finished")
        self._services.counters.add("callbacks_acknowledged", len(batch))

    def _settle(self, batch: list[PendingResult], text: str) -> None:
        """Send these results no more."""
        for run_id, _ in batch:
            self._deferrals.pop(run_id, None)
        self._services.journal.acknowledge([run_id for run_id, _ in batch], now_ms=now_ms()).result()
        self._log_to_runs(batch, text)
        self._failure_logged.difference_update(run_id for run_id, _ in batch)

    def _log_to_runs(self, batch: list[PendingResult], text: str) -> None:
        """Append a line to the logs of the runs; a failure only once per run."""
        is_failure = text.startswith("callback failed")
        for run_id, item in batch:
            if is_failure and run_id in self._failure_logged:
                continue
            if is_failure:
                self._failure_logged.add(run_id)
            try:
                path = log_file(self._services.log_root, item.log_id, item.log_date_time)
            except ValueError:
                continue
            append_line(path, f"----------- {text} -----------", now_ms=now_ms())


def send_unstored(
    items: Sequence[CallbackItem], admins: Sequence[AdminClient], *, drain_s: float
) -> list[CallbackItem]:
    """Send results that the journal could not take, one by one, for at most ``drain_s``.

    Return those that no admin has accepted.
    """
    remaining = list(items)
    until_s = monotonic_s() + drain_s
    for admin in admins:
        try:
            for item in [*remaining]:
                if monotonic_s() < until_s and admin.callback([item]).code == SUCCESS:
                    remaining.remove(item)
        except AdminUnreachable as exc:
            logger.warning("results not delivered error=%s", exc)
        admin.close()
    return remaining


def _truncate_batch(batch: list[PendingResult]) -> list[PendingResult]:
    """Return the first results, at least one, that are within BATCH_MAX_BYTES together."""
    size = 0
    for count, (_, item) in enumerate(batch):
        size += len(callback_body([item], with_reports=True))
        if size > BATCH_MAX_BYTES and count:
            return batch[:count]
    return batch


def _is_for_all(message: str) -> bool:
    """Return whether a rejection is independent of the results that were sent."""
    return _is_of_server(message) or is_token_refusal(message)


def _is_of_server(message: str) -> bool:
    """Return whether a rejection is caused by the state of the server, which will pass."""
    if message.startswith(_CONTENT_ERRORS):
        return False
    return message.startswith((UNREACHABLE, "HTTP status")) or SEND_AGAIN in message
