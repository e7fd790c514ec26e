"""Archiver: decides which logs are fetched when, and fetches many at once. The body of a process of its own.

Bounded in all ways, so that it never delays a dispatch: 32 calls, two for an instance, one a second for a
log, 16 MB a second in all; an instance that times out three times in a row rests for a minute.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from zoneinfo import ZoneInfo

from sqlalchemy.exc import DBAPIError

from app.blobs.blob_store import BlobStore, StoreFull
from app.clock import SECOND_MS, Clock, Millis, now_ms
from app.database.engine import transact
from app.database.faults import fault_log
from app.domain.archive.chunks import folder_of
from app.domain.archive.kinds import ArchiveMode, ArchiveState
from app.runtime.metrics import LOG_PULLS
from app.services.archive.pulls import MIB, Puller, PullResult
from app.services.archive.store_log import store_log
from app.services.archive.texts import Redaction
from app.services.executors.callers import Caller
from app.settings.config import Config
from app.store.archive import rows
from app.store.archive.modes import is_any_archived, mode_of
from app.store.archive.rows import AcceptedRun, ArchivedLog, DueLog

logger = logging.getLogger(__name__)

#: calls at the same time, in all and of one instance
CALLS_MAX, CALLS_OF_INSTANCE = 32, 2
#: due logs of one look at the database, and looks until all calls have one
DUE_MAX, LOOKS_MAX = 4 * CALLS_MAX, CALLS_MAX // CALLS_OF_INSTANCE
#: a lease ends after this; a pull takes less: its pieces have a time-out each
LEASE_MS: Millis = 60 * SECOND_MS
#: runs in progress are fetched from so long after they were accepted
ACCEPTED_MS: Millis = 5 * SECOND_MS
#: bytes a second, in all
RATE = 16 * MIB
#: after so many time-outs in a row an instance rests for so long
FAILURES_MAX, REST_S = 3, 60.0
#: period of the look for due logs, and for runs that have none yet
LOOK_MS: Millis = 250
#: the same while no log is archived, and while none is in progress
OFF_MS: Millis = 30 * SECOND_MS
IDLE_MS: Millis = SECOND_MS
DISCOVER_S = 1.0
DISCOVERED_MAX = 500


class Archiver:
    """Fetches logs; ``tick`` belongs to one thread."""

    def __init__(
        self,
        config: Config,
        *,
        node: str,
        caller: Caller,
        store: BlobStore,
        clock: Clock = now_ms,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._zone = ZoneInfo(config.time_zone)
        self._clock, self._monotonic = clock, monotonic
        redaction, run_max = Redaction(config.archive.redact), config.archive.run_mb * MIB
        job_day_max = config.archive.job_day_mb * MIB
        self._puller = Puller(caller, store, redaction, run_max, clock, job_day_max)
        self._pool = ThreadPoolExecutor(CALLS_MAX, thread_name_prefix="pull")
        self._lock = threading.Lock()
        #: address -> calls in progress, time-outs in a row, and until when it rests
        self._calls: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._resting: dict[str, float] = {}
        self._discover_at = 0.0
        #: when it is looked next whether anything is archived, and whether it was
        self._look_at, self._is_on = 0.0, True
        #: when the bytes that came are paid for at RATE
        self._free_at = 0.0

    def close(self) -> None:
        """Start no further call and wait for none."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def tick(self, at_ms: Millis) -> Millis:
        """Fetch what is due; return the wait until the next look."""
        now_s = self._monotonic()
        if now_s >= self._look_at:
            self._look_at = now_s + OFF_MS / SECOND_MS
            self._is_on = is_any_archived()
        new = 0
        if self._is_on and now_s >= self._discover_at:
            self._discover_at = now_s + DISCOVER_S
            new = self.discover(at_ms)
        if now_s < self._free_at:
            return LOOK_MS
        logs, has_due = self._choose_due(at_ms, now_s)
        if not has_due and not new and not self._calls and not rows.has_fetched():
            return IDLE_MS if self._is_on else OFF_MS
        if logs:
            claim = partial(rows.claim, owner=self._node, now_ms=at_ms, lease_ms=LEASE_MS)
            not_begun = dict(logs)
            try:
                for log in transact(partial(claim, archive_ids=list(logs))):
                    self._pool.submit(self._fetch, log, not_begun.pop(log.id))
            finally:
                self._forget(not_begun.values())
        return LOOK_MS

    def discover(self, at_ms: Millis) -> int:
        """Begin the logs of runs in progress that may be kept; return how many."""
        accepted = rows.find_accepted(before_ms=at_ms - ACCEPTED_MS, limit=DISCOVERED_MAX)
        new = [self._row(run, mode, at_ms) for run in accepted if (mode := mode_of(run.mode)) is not _OFF]
        if new:
            transact(partial(rows.insert_open, rows=new))
        return len(new)

    def _row(self, run: AcceptedRun, mode: ArchiveMode, at_ms: Millis) -> dict[str, object]:
        return {
            "log_id": run.log_id,
            "job_id": run.job_id,
            "job_group": run.job_group,
            "folder": folder_of(run.job_id, run.log_id, run.logical_ms, self._zone),
            "state": ArchiveState.OPEN.value,
            "is_provisional": int(mode is ArchiveMode.FAILED),
            "next_ms": at_ms,
        }

    def _choose_due(self, at_ms: Millis, now_s: float) -> tuple[dict[int, str], bool]:
        """Return what ``_choose`` returns of all that is due, and whether anything is.

        The due logs of one instance may be many: those of others are looked for behind them.
        """
        chosen, has_due = dict[int, str](), False
        try:
            for _ in range(LOOKS_MAX):
                due = rows.find_due(now_ms=at_ms, limit=DUE_MAX, without=self._busy(now_s))
                has_due = has_due or bool(due)
                new = self._choose(due, now_s)
                chosen |= new
                if len(due) < DUE_MAX or not new:
                    break
        except BaseException:
            self._forget(chosen.values())
            raise
        return chosen, has_due

    def _busy(self, now_s: float) -> list[str]:
        """Return the addresses of executors that get no further call now: their logs hide no others."""
        with self._lock:
            self._resting = {address: until for address, until in self._resting.items() if now_s < until}
            calling = (address for address, count in self._calls.items() if count >= CALLS_OF_INSTANCE)
            return [*calling, *self._resting]

    def _choose(self, due: list[DueLog], now_s: float) -> dict[int, str]:
        """Return the logs that may be fetched now, with the addresses of their executors; counts them."""
        chosen: dict[int, str] = {}
        with self._lock:
            free = CALLS_MAX - self._calls.total()
            for log in due:
                if len(chosen) == free:
                    break
                if self._calls[log.address] >= CALLS_OF_INSTANCE or now_s < self._resting.get(log.address, 0):
                    continue
                self._calls[log.address] += 1
                chosen[log.id] = log.address
        return chosen

    def _forget(self, addresses: Iterable[str]) -> None:
        with self._lock:
            for address in addresses:
                self._calls[address] -= 1
                if not self._calls[address]:
                    del self._calls[address]

    def _fetch(self, log: ArchivedLog, address: str) -> None:
        result = PullResult(0, is_silent=False)
        try:
            result = self._puller.pull(log)
            LOG_PULLS.add("silent" if result.is_silent else "answered")
        except (StoreFull, OSError) as exc:
            LOG_PULLS.add("failed")
            store_log.write("logs not archived", exc)
        except DBAPIError as exc:  # The lease ends, and the log is fetched again.
            fault_log.write(logger, "log not archived", exc)
        except Exception:
            LOG_PULLS.add("failed")
            logger.exception("log not fetched log_id=%s", log.log_id)
        finally:
            self._forget([address])
            self._note(address, result)

    def _note(self, address: str, result: PullResult) -> None:
        with self._lock:
            now_s = self._monotonic()
            self._free_at = max(self._free_at, now_s) + result.size / RATE
            if not result.is_silent:
                self._failures.pop(address, None)
                self._resting.pop(address, None)
                return
            self._failures[address] += 1
            if self._failures[address] >= FAILURES_MAX:
                self._resting[address] = now_s + REST_S


_OFF = ArchiveMode.OFF
