"""Keeping of archived logs: what is older than its days or beyond the size of the archive is purged.

Files that no row names, of crashes and of runs that were deleted, go an hour after they were written.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Final

from app.blobs.blob_store import BlobStore, NoBlob, StoredBlob, StoreFull
from app.blobs.folder import PARTIAL
from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, Millis
from app.database.engine import read_scope, transact
from app.domain.archive.chunks import CHUNK_NAME, parse_chunks
from app.domain.archive.kinds import Missing
from app.services.archive.store_log import store_log
from app.settings.config import Config
from app.store.archive import expiry, removal, room
from app.store.archive.expiry import EndedLog, PurgedLog
from app.store.fires import log_ids

logger = logging.getLogger(__name__)

#: period of the look for what is not kept any longer, and the wait while more of it remains
PERIOD_MS: Millis = 10 * MINUTE_MS
WAIT_MS: Millis = 100
#: wait after a failure of the store
FAILED_MS: Millis = MINUTE_MS
#: file with the identity of the database: two installations would delete each other's files
OWNER: Final = "owner"
#: logs of one transaction, files that are looked at each time
PURGED_AT_ONCE = 500
FILES_AT_ONCE = 2_000
#: a file is left alone for so long: its row may be written yet
ORPHAN_MS: Millis = HOUR_MS
#: a look at all files begins so long after the last one
SWEEP_MS: Millis = 6 * HOUR_MS
GIB = 1024**3
#: share of the size of the archive that is left when it was full
KEPT_SHARE: Final = 0.95
_START = (0, 0)


def owner_of(store: BlobStore) -> str:
    """Return the identity of the database whose archive it is; empty: not known. Raises OSError."""
    try:
        return store.get(OWNER).decode("ascii", "replace").strip()
    except NoBlob:
        return ""


def is_own(store: BlobStore) -> bool:
    """Whether the rows of this database say which files of a store are needed; marks one that is not marked.

    Raises OSError and StoreFull.
    """
    with read_scope() as session:
        identity = log_ids.find_identity(session)
    owner = owner_of(store)
    if not owner and identity:
        store.put(OWNER, identity.encode())
    if owner in ("", identity):
        return True
    logger.error("no files deleted, the log archive is that of another database file=%s", OWNER)
    return False


class Keeper:
    """Deletes what is not kept any longer; ``tick`` belongs to one thread."""

    def __init__(self, config: Config, store: BlobStore) -> None:
        self._archive, self._store = config.archive, store
        #: state -> how far its logs were looked at, with these days of jobs
        self._seen = dict.fromkeys(expiry.ENDED, _START)
        self._days: Mapping[int, int] = {}
        self._anew_ms: Millis = 0
        self._files: Iterator[StoredBlob] = iter(())
        self._swept_ms: Millis = 0

    def tick(self, at_ms: Millis) -> Millis:
        """Purge a batch of each kind and look at some files; return the wait until the next look."""
        try:
            return self._look(at_ms)
        except (OSError, StoreFull) as exc:  # What was not deleted goes with a later look.
            store_log.write("archived logs not deleted", exc)
            return FAILED_MS

    def _look(self, at_ms: Millis) -> Millis:
        has_more = self._expire(at_ms)
        has_more |= self._shrink(at_ms)
        has_more |= self._remove()
        has_more |= self._sweep(at_ms)
        return WAIT_MS if has_more else PERIOD_MS

    def _expire(self, at_ms: Millis) -> bool:
        """Purge logs that are older than their days; return whether there may be more."""
        with read_scope() as session:
            days = expiry.own_days(session, "log_days")
        if days != self._days or at_ms >= self._anew_ms:
            self._seen, self._days, self._anew_ms = dict.fromkeys(expiry.ENDED, _START), days, at_ms + DAY_MS
        general = self._archive.days
        shortest = min((count for count in (general, *days.values()) if count), default=0)
        if not shortest:
            return False

        def is_old(log: EndedLog) -> bool:
            count = days.get(log.job_id, general)
            return bool(count) and log.ended_ms < at_ms - count * DAY_MS

        return self._purge_old(at_ms - shortest * DAY_MS, is_old)

    def _purge_old(self, before_ms: Millis, is_old: Callable[[EndedLog], bool]) -> bool:
        has_more = False
        for state, after in self._seen.items():
            with read_scope() as session:
                logs = expiry.find_ended(
                    session, state, after=after, before_ms=before_ms, limit=PURGED_AT_ONCE
                )
            old = [log for log in logs if is_old(log)]
            self._purge(old, Missing.EXPIRED)
            if logs:
                self._seen[state] = (logs[-1].ended_ms, logs[-1].id)
            if old:
                logger.info("archived logs deleted count=%s reason=days", len(old))
            has_more |= len(logs) == PURGED_AT_ONCE
        return has_more

    def _shrink(self, at_ms: Millis) -> bool:
        """Purge the oldest logs while the archive is beyond its size; return whether there may be more."""
        most = self._archive.total_gb * GIB
        if not most:
            return False
        with read_scope() as session:
            total = room.total_stored(session)
        if total <= most:
            return False
        excess = transact(room.recount) - int(most * KEPT_SHARE)
        if excess <= most - int(most * KEPT_SHARE):
            return False
        oldest = list[EndedLog]()
        for state in expiry.ENDED:
            with read_scope() as session:
                oldest += expiry.find_ended(
                    session, state, after=_START, before_ms=at_ms, limit=PURGED_AT_ONCE
                )
        surplus = list[EndedLog]()
        for log in sorted(oldest):
            if excess <= 0:
                break
            surplus.append(log)
            excess -= log.stored
        self._purge(surplus, Missing.PURGED)
        logger.warning("archived logs deleted count=%s reason=archive full", len(surplus))
        return bool(surplus) and excess > 0

    def _purge(self, logs: list[EndedLog], reason: Missing) -> None:
        if logs:
            archive_ids = [log.id for log in logs]
            old_logs = transact(partial(expiry.purge, archive_ids=archive_ids, reason=reason))
            self._store.delete([name for log in old_logs for name in _names_of(log)])

    def _remove(self) -> bool:
        """Delete files and rows of deleted runs; return whether there may be more."""
        with read_scope() as session:
            logs = removal.find_deleted(session, limit=PURGED_AT_ONCE)
        if logs:
            self._store.delete(
                [name for log in logs for name in _names_of(PurgedLog(log.folder, log.chunks))]
            )
            transact(partial(removal.delete_rows, logs=logs))
        return len(logs) == PURGED_AT_ONCE

    def _sweep(self, at_ms: Millis) -> bool:
        """Delete files that no row names, among some; return whether there are more to look at."""
        files = list(islice(self._files, FILES_AT_ONCE))
        if not files:
            if at_ms < self._swept_ms + SWEEP_MS:
                return False
            self._files = self._store.list("")
            files = list(islice(self._files, FILES_AT_ONCE))
            if not files:
                return False
            self._swept_ms = at_ms
            if not is_own(self._store):
                self._files = iter(())
                return False
        old = [file.name for file in files if file.written_ms < at_ms - ORPHAN_MS]
        orphans = [name for name in old if name.rpartition("/")[2].startswith(PARTIAL)]
        by_log = defaultdict[int, list[str]](list)
        for name in old:
            if match := CHUNK_NAME.fullmatch(name):
                by_log[int(match[1])].append(name)
        with read_scope() as session:
            row_by_id = expiry.find_named(session, list(by_log))
        for log_id, names in by_log.items():
            own = set(_names_of(row_by_id[log_id])) if log_id in row_by_id else set()
            orphans += [name for name in names if name not in own]
        self._store.delete(orphans)
        if orphans:
            logger.info("files of no archived log deleted count=%s", len(orphans))
        return len(files) == FILES_AT_ONCE


def _names_of(log: PurgedLog) -> list[str]:
    return [chunk.path_in(log.folder) for chunk in parse_chunks(log.chunks)]
