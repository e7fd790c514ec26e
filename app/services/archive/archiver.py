"""Archiver: decides which logs are fetched when, and fetches many at once. The body of a process of its own.

Bounded in all ways, so that it never delays a dispatch: 32 calls, two for an instance, one a second for a
log, 16 MB a second in all; an instance that times out three times in a row rests for a minute. Nothing
begins while a second begins, when most runs are sent.
"""

import logging
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy.exc import DBAPIError

from app.blobs.blob_store import BlobStore, StoreFull
from app.clock import SECOND_MS, Clock, Millis, now_ms
from app.database.engine import transact
from app.database.faults import fault_log
from app.domain.archive.kinds import ArchiveMode
from app.domain.archive.pulls import rest_ms
from app.pipeline.archive_at_once import open_row
from app.runtime.metrics import LOG_PULLS
from app.services.archive.pulls import MIB, Puller, PullResult, Update
from app.services.archive.store_log import store_log
from app.services.executors.callers import Caller
from app.settings.config import Config
from app.store.archive import rows
from app.store.archive.modes import is_any_archived, mode_of
from app.store.archive.rows import ArchivedLog, DueLog

logger = logging.getLogger(__name__)

#: calls at the same time, in all and of one instance
CALLS_MAX, CALLS_OF_INSTANCE = 32, 2
#: logs of an executor that one call after the other fetches, and how long
LANE_MAX, LANE_S = 8, 2.0
#: a lease ends after this; a lane and its last pull take less: its pieces have a time-out each
LEASE_MS: Millis = 60 * SECOND_MS
#: runs in progress are fetched from so long after they were accepted
ACCEPTED_MS: Millis = 5 * SECOND_MS
#: bytes a second, in all
RATE = 16 * MIB
#: seconds of that after which a lane ends
OWED_S = 0.5
#: after so many time-outs in a row an instance rests for so long
FAILURES_MAX, REST_S = 3, 60.0
#: period of the look for due logs, and for runs that have none yet
LOOK_MS: Millis = 250
#: the same while more logs are due than may be fetched
BACKLOG_MS: Millis = 50
#: a look that took long is repeated after so many times that, or once a call has ended: with many logs of
#: busy or resting instances it has to pass over all of them
LOOK_SHARE = 10
#: the same while no log is archived, and while none is in progress
OFF_MS: Millis = 30 * SECOND_MS
IDLE_MS: Millis = SECOND_MS
DISCOVER_S = 1.0
DISCOVERED_MAX = 500
DUE_MAX = CALLS_MAX * LANE_MAX


class Lane(NamedTuple):
    """Logs of one executor that are fetched one after the other."""

    address: str
    archive_ids: list[int]


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
        rest: Callable[[Millis], Millis] = rest_ms,
    ) -> None:
        self._node = node
        self._zone = ZoneInfo(config.time_zone)
        self._clock, self._monotonic, self._rest = clock, monotonic, rest
        self._puller = Puller.of(config.archive, caller, store, clock)
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
        #: when it is looked next for due logs, unless a call has ended since
        self._due_at, self._has_ended = 0.0, False

    def close(self) -> None:
        """Start no further call and wait for none."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def tick(self, at_ms: Millis) -> Millis:
        """Fetch what is due; return the wait until the next look."""
        if wait_ms := self._rest(at_ms):
            return wait_ms
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
        if now_s < self._due_at and not self._has_ended:
            return BACKLOG_MS
        self._has_ended, started_s = False, self._monotonic()
        due = rows.find_due(now_ms=at_ms, limit=DUE_MAX, without=self._busy(now_s))
        ended_s = self._monotonic()
        self._due_at = ended_s + LOOK_SHARE * (ended_s - started_s) - LOOK_MS / SECOND_MS
        if not due and not new and not self._calls and not rows.has_fetched():
            return IDLE_MS if self._is_on else OFF_MS
        lanes = self._choose(due, now_s)
        self._begin(lanes, at_ms)
        return LOOK_MS if len(due) == sum(len(lane.archive_ids) for lane in lanes) else BACKLOG_MS

    def _begin(self, lanes: list[Lane], at_ms: Millis) -> None:
        """Lease the logs of lanes, whose calls are counted, and begin to fetch them."""
        not_begun = list(lanes)
        try:
            archive_ids = [archive_id for lane in lanes for archive_id in lane.archive_ids]
            claim = partial(rows.claim, owner=self._node, now_ms=at_ms, lease_ms=LEASE_MS)
            rows_to_pull = transact(partial(claim, archive_ids=archive_ids)) if lanes else []
            logs = {log.id: log for log in rows_to_pull}
            for lane in lanes:
                mine = [logs[archive_id] for archive_id in lane.archive_ids if archive_id in logs]
                if mine:
                    self._pool.submit(self._fetch_all, mine, lane.address)
                    not_begun.remove(lane)
        finally:
            for lane in not_begun:
                self._forget(lane.address)

    def discover(self, at_ms: Millis) -> int:
        """Begin the logs of runs in progress that may be kept; return how many."""
        open_runs = rows.find_accepted(before_ms=at_ms - ACCEPTED_MS, limit=DISCOVERED_MAX)
        new = [
            open_row(run, mode, self._zone, next_ms=at_ms)
            for run in open_runs
            if (mode := mode_of(run.mode)) is not ArchiveMode.OFF
        ]
        if new:
            transact(partial(rows.insert_open, rows=new))
        return len(new)

    def _busy(self, now_s: float) -> list[str]:
        """Return the addresses of executors that get no further call now: their logs hide no others."""
        with self._lock:
            self._resting = {address: until for address, until in self._resting.items() if now_s < until}
            calling = (address for address, count in self._calls.items() if count >= CALLS_OF_INSTANCE)
            return [*calling, *self._resting]

    def _choose(self, due: list[DueLog], now_s: float) -> list[Lane]:
        """Return the logs that may be fetched now, by calls of executors; counts these."""
        by_address = defaultdict[str, list[int]](list)
        for log in due:
            by_address[log.address].append(log.id)
        lanes = list[Lane]()
        with self._lock:
            free = CALLS_MAX - self._calls.total()
            for address, archive_ids in by_address.items():
                count = min(CALLS_OF_INSTANCE - self._calls[address], len(archive_ids), free)
                if count <= 0 or now_s < self._resting.get(address, 0):
                    continue
                free -= count
                self._calls[address] += count
                lanes += [Lane(address, archive_ids[lane::count][:LANE_MAX]) for lane in range(count)]
        return lanes

    def _forget(self, address: str) -> None:
        with self._lock:
            self._calls[address] -= 1
            if not self._calls[address]:
                del self._calls[address]
            self._has_ended = True

    def _fetch_all(self, logs: list[ArchivedLog], address: str) -> None:
        """Fetch logs of an executor one after the other; give back those that there is no time for."""
        until = self._monotonic() + LANE_S
        updates = list[Update]()
        try:
            while logs:
                result = self._fetch(logs.pop(0))
                self._note(address, result)
                updates += [result.update] if result.update is not None else []
                now_s = self._monotonic()
                if result.is_silent or now_s >= until or self._free_at - now_s >= OWED_S:
                    break
                if self._rest(self._clock()):
                    break
            if updates:
                self._puller.write(updates)
            if logs:
                archive_ids = [log.id for log in logs]
                transact(partial(rows.give_back, archive_ids=archive_ids, owner=self._node))
        except DBAPIError as exc:  # The leases end, and the logs are fetched again.
            fault_log.write(logger, "logs not archived", exc)
        except OSError as exc:
            store_log.write("logs not archived", exc)
        finally:
            self._forget(address)

    def _fetch(self, log: ArchivedLog) -> PullResult:
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
        return result

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
