"""Callback store: results that executors report, written before the callback is answered."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis, monotonic_ms, now_ms
from app.database.batch_writer import BATCH_MAX, BatchWriter, write_here
from app.domain.enums import HandleCode
from app.domain.executors.token_scope import TokenScope
from app.pipeline import complete
from app.pipeline.complete import Completion, OtherRun
from app.runtime.logging import QuotedText, request_id
from app.runtime.metrics import CALLBACK_DURATION, CALLBACKS
from app.services.runs.kills import kills
from app.store.executors import groups
from app.store.fires import logs
from executor_client.wire.callbacks import CallbackItem

logger = logging.getLogger(__name__)

#: how long a stop waits for callbacks that are being stored
CLOSE_TIMEOUT_S = 10.0


#: late callbacks of one request that are logged, one line each
LATE_LOGGED = 10


class Stored(NamedTuple):
    """Effect of a request: number of runs it ended, and the results that were not stored."""

    won: int
    #: log id, code, code of the row
    late: list[tuple[int, int, int]]
    #: log ids of runs of groups that the token does not act for
    foreign: list[int]
    #: runs that the database has lost: log id, which another run has now, and AppName
    other_runs: list[tuple[int, str]]


class Batch(NamedTuple):
    """Results of one request, and the groups its token acts for."""

    items: tuple[CallbackItem, ...]
    scope: TokenScope
    #: id of the request, for log lines
    request: str = ""

    @property
    def succeeded(self) -> list[int]:
        """Log ids of the successes, which wait while their runs are being killed, see ``kills``."""
        return [item.log_id for item in self.items if item.handle_code == HandleCode.SUCCESS]


def _size(batch: Batch) -> int:
    return len(batch.items)


class CallbackStore:
    """Stores reported results; those of concurrent requests share a transaction of at most BATCH_MAX."""

    def __init__(self) -> None:
        self._writer = BatchWriter("callbacks", _size)

    def store(self, items: tuple[CallbackItem, ...], scope: TokenScope) -> Stored:
        """Commit the results of runs within the scope; return what became of them.

        Many results take several transactions. After an error some may be stored: repeated, they are late.
        """
        kills.wait(Batch(items, scope).succeeded)
        if not items:
            return Stored(0, [], [], [])
        started_ms = monotonic_ms()
        parts = [items[start : start + BATCH_MAX] for start in range(0, len(items), BATCH_MAX)]
        stored = _together([self._writer.submit(Batch(part, scope), _store) for part in parts])
        _note(stored, started_ms)
        return stored

    def store_together(self, batches: Sequence[Batch]) -> list[Stored | None]:
        """Commit the results of several requests in this thread.

        None: nothing was stored, because a run is being killed or the database has failed.
        """
        started_ms = monotonic_ms()
        wanted = [number for number, batch in enumerate(batches) if not kills.is_held(batch.succeeded)]
        found = write_here([batches[number] for number in wanted], _store, _size)
        answers: list[Stored | None] = [None] * len(batches)
        for number, stored in zip(wanted, found, strict=True):
            if isinstance(stored, Stored):
                answers[number] = stored
                request_id.set(batches[number].request)
                _note(stored, started_ms)
        return answers

    def close(self) -> None:
        """Write the queued results, then end the thread."""
        self._writer.close(CLOSE_TIMEOUT_S)


def _together(parts: Sequence[Stored]) -> Stored:
    """Return what became of the results of one request, stored in parts."""
    late = [each for part in parts for each in part.late]
    foreign = {log_id for part in parts for log_id in part.foreign}
    other_runs = [each for part in parts for each in part.other_runs]
    return Stored(sum(part.won for part in parts), late, sorted(foreign), other_runs)


def _note(stored: Stored, started_ms: Millis) -> None:
    """Count and log what became of the results of one request."""
    CALLBACK_DURATION.observe((monotonic_ms() - started_ms) / 1000)
    _count(stored)
    for log_id, code, has_code in stored.late[:LATE_LOGGED]:
        logger.info("callback ignored log_id=%s code=%s has_code=%s", log_id, code, has_code)
    for log_id, app_name in stored.other_runs[:LATE_LOGGED]:
        logger.warning("callback of another run ignored log_id=%s app_name=%s", log_id, QuotedText(app_name))
    if len(stored.late) > LATE_LOGGED:
        logger.info("callbacks ignored count=%s", len(stored.late))


def _count(stored: Stored) -> None:
    counts = {
        "stored": stored.won,
        "late": len(stored.late),
        "foreign": len(stored.foreign),
        "other_run": len(stored.other_runs),
    }
    for outcome, count in counts.items():
        if count:
            CALLBACKS.add(outcome, count=count)


def _store(session: Session, batches: Sequence[Batch]) -> list[Stored]:
    """Store the results of several requests in one transaction."""
    at_ms = now_ms()
    foreign = _find_foreign(session, batches)
    reported = [
        [item for item in batch.items if item.handle_code != HandleCode.NONE and item.log_id not in refused]
        for batch, refused in zip(batches, foreign, strict=True)
    ]
    results = [
        complete.callback_result(item.log_id, item.handle_code, item.handle_msg, item.log_date_time)
        for items in reported
        for item in items
        if _is_log_id(item.log_id)
    ]
    done = complete.complete(session, results, now_ms=at_ms)
    other_runs = _name_others(session, done.other_runs)
    usable = [[item for item in items if _run_of(item) not in other_runs] for items in reported]
    _write_reports(session, usable, done)
    won = set(done.won)
    return [
        Stored(
            sum(item.log_id in won for item in items),
            [
                (item.log_id, item.handle_code, done.late[item.log_id])
                for item in items
                if item.log_id in done.late
            ],
            sorted(refused),
            [(item.log_id, other_runs[_run_of(item)]) for item in sent if _run_of(item) in other_runs],
        )
        for sent, items, refused in zip(reported, usable, foreign, strict=True)
    ]


def _name_others(session: Session, others: Sequence[OtherRun]) -> dict[tuple[int, int], str]:
    """Return log id and `logDateTime` of the results of other runs -> AppName, empty without a group."""
    if not others:
        return {}
    of_groups = groups.find_for_dispatch(session, {other.job_group for other in others})
    names = {group_id: group.app_name for group_id, group in of_groups.items()}
    return {(other.log_id, other.log_date_time): names.get(other.job_group, "") for other in others}


def _run_of(item: CallbackItem) -> tuple[int, int]:
    return item.log_id, item.log_date_time


def _write_reports(session: Session, usable: Sequence[Sequence[CallbackItem]], done: Completion) -> None:
    """Write checkpoints and progress, of late results too: that of a killed run brings its checkpoint."""
    stored = {*done.won, *done.late}
    reports = {item.log_id: item for items in usable for item in items if item.has_reports}
    rows = [
        {"id": item.log_id, "checkpoint": item.checkpoint, "progress": item.progress}
        for item in reports.values()
        if item.log_id in stored
    ]
    logs.write_reports(session, rows)


def _is_log_id(number: int) -> bool:
    return 0 < number < 2**63


def _find_foreign(session: Session, batches: Sequence[Batch]) -> list[frozenset[int]]:
    """Return, per request, the log ids of runs that its token does not act for; one statement for all."""
    limited = {
        item.log_id
        for batch in batches
        if not batch.scope.covers_all
        for item in batch.items
        if _is_log_id(item.log_id)
    }
    if not limited:
        return [frozenset()] * len(batches)
    group_ids = logs.find_group_ids(session, limited)
    return [
        frozenset(
            item.log_id
            for item in batch.items
            if item.log_id in group_ids and not batch.scope.covers(group_ids[item.log_id])
        )
        for batch in batches
    ]
