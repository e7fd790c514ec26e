"""Callback store: results that executors report, written before the callback is answered."""

import logging
from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis, monotonic_ms, now_ms
from app.database.batch_writer import BATCH_MAX, BatchWriter, write_here
from app.database.engine import read_scope
from app.domain.enums import HandleCode
from app.domain.executors.token_scope import TokenScope
from app.pipeline import complete
from app.pipeline.complete import Completion, OtherRun
from app.pipeline.masking import mask_text
from app.runtime.logging import QuotedText, request_id
from app.runtime.metrics import CALLBACK_DURATION, CALLBACKS
from app.services.runs.kills import await_replacement, kills
from app.store.executors import groups
from app.store.fires import logs
from executor_client.wire.callbacks import CallbackItem

logger = logging.getLogger(__name__)

#: how long a stop waits for callbacks that are being stored
CLOSE_TIMEOUT_S = 10.0


#: late callbacks of one request that are logged, one line each
LATE_LOGGED = 10


class StoreResult(NamedTuple):
    """Result of storing a request: number of runs it ended, and the results that were not stored."""

    ended_count: int
    #: log id, code, code of the row
    late: list[tuple[int, int, int]]
    #: log ids of runs of groups that the token does not act for
    foreign: list[int]
    #: runs that the database has lost: log id, which another run has now, and AppName
    other_runs: list[tuple[int, str]]
    #: successes of runs that are being killed for newer ones, which are still to be stored
    held_items: tuple[CallbackItem, ...] = ()


class Batch(NamedTuple):
    """Results of one request, and the groups its token acts for."""

    items: tuple[CallbackItem, ...]
    scope: TokenScope
    #: id of the request, for log lines
    request: str = ""

    @property
    def success_ids(self) -> list[int]:
        """Log ids of the successes, which wait while their runs are being killed, see ``kills``."""
        return [item.log_id for item in self.items if item.handle_code == HandleCode.SUCCESS]


def app_names_of(log_ids: Collection[int], scope: TokenScope) -> dict[int, str]:
    """Return log id -> AppName of its group, for the runs that exist and that the token acts for."""
    with read_scope() as session:
        group_ids = logs.find_group_ids(session, {log_id for log_id in log_ids if _is_log_id(log_id)})
        own_groups = {log_id: group_id for log_id, group_id in group_ids.items() if scope.covers(group_id)}
        routing_groups = groups.find_for_dispatch(session, set(own_groups.values()))
    return {
        log_id: routing_groups[group_id].app_name
        for log_id, group_id in own_groups.items()
        if group_id in routing_groups
    }


def _size(batch: Batch) -> int:
    return len(batch.items)


class CallbackStore:
    """Stores reported results; those of concurrent requests share a transaction of at most BATCH_MAX."""

    def __init__(self) -> None:
        self._writer = BatchWriter("callbacks", _size)

    def store(self, items: tuple[CallbackItem, ...], scope: TokenScope) -> StoreResult:
        """Commit the results of runs within the scope; return their outcome.

        Many results take several transactions. After an error some may be stored: repeated, they are late.
        """
        kills.wait(Batch(items, scope).success_ids)
        if not items:
            return StoreResult(0, [], [], [])
        started_ms = monotonic_ms()
        parts = [items[start : start + BATCH_MAX] for start in range(0, len(items), BATCH_MAX)]
        result = _merge([self._writer.submit(Batch(part, scope), _store) for part in parts])
        if result.held_items:
            await_replacement([item.log_id for item in result.held_items])
            rest = self._writer.submit(Batch(result.held_items, scope), _store_at_last)
            result = _merge([result._replace(held_items=()), rest])
        _log_result(result, started_ms)
        return result

    def store_together(self, batches: Sequence[Batch]) -> list[StoreResult | None]:
        """Commit the results of several requests in this thread.

        None: something was not stored, because a run is being killed or the database has failed.
        """
        started_ms = monotonic_ms()
        numbers = [number for number, batch in enumerate(batches) if not kills.is_held(batch.success_ids)]
        results = write_here([batches[number] for number in numbers], _store, _size)
        answers: list[StoreResult | None] = [None] * len(batches)
        for number, result in zip(numbers, results, strict=True):
            # Results with others that are to wait are stored again, alone: by then they are late.
            if isinstance(result, StoreResult) and not result.held_items:
                answers[number] = result
                request_id.set(batches[number].request)
                _log_result(result, started_ms)
        return answers

    def close(self) -> None:
        """Write the queued results, then end the thread."""
        self._writer.close(CLOSE_TIMEOUT_S)


def _merge(parts: Sequence[StoreResult]) -> StoreResult:
    """Return the outcome of one request, whose results were stored in parts."""
    late = [item for part in parts for item in part.late]
    foreign = {log_id for part in parts for log_id in part.foreign}
    other_runs = [item for part in parts for item in part.other_runs]
    held_items = tuple(item for part in parts for item in part.held_items)
    return StoreResult(sum(part.ended_count for part in parts), late, sorted(foreign), other_runs, held_items)


def _log_result(result: StoreResult, started_ms: Millis) -> None:
    """Count and log the outcome of one request."""
    CALLBACK_DURATION.observe((monotonic_ms() - started_ms) / 1000)
    _count(result)
    for log_id, code, has_code in result.late[:LATE_LOGGED]:
        logger.info("callback ignored log_id=%s code=%s has_code=%s", log_id, code, has_code)
    for log_id, app_name in result.other_runs[:LATE_LOGGED]:
        logger.warning("callback of another run ignored log_id=%s app_name=%s", log_id, QuotedText(app_name))
    if len(result.late) > LATE_LOGGED:
        logger.info("callbacks ignored count=%s", len(result.late))


def _count(result: StoreResult) -> None:
    counts = {
        "stored": result.ended_count,
        "late": len(result.late),
        "foreign": len(result.foreign),
        "other_run": len(result.other_runs),
    }
    for outcome, count in counts.items():
        if count:
            CALLBACKS.add(outcome, count=count)


def _store_at_last(session: Session, batches: Sequence[Batch]) -> list[StoreResult]:
    """Store results as ``_store``, also successes of runs whose kill has not been confirmed in time."""
    return _store(session, batches, yields_to_kill=False)


def _store(session: Session, batches: Sequence[Batch], *, yields_to_kill: bool = True) -> list[StoreResult]:
    """Store the results of several requests in one transaction."""
    at_ms = now_ms()
    foreign = _find_foreign(session, batches)
    item_lists = [
        [item for item in batch.items if item.handle_code != HandleCode.NONE and item.log_id not in log_ids]
        for batch, log_ids in zip(batches, foreign, strict=True)
    ]
    results = [
        complete.callback_result(
            item.log_id,
            item.handle_code,
            item.handle_msg,
            item.log_date_time,
            yields_to_kill=yields_to_kill,
        )
        for items in item_lists
        for item in items
        if _is_log_id(item.log_id)
    ]
    completion = complete.complete(session, results, now_ms=at_ms)
    other_runs = _name_others(session, completion.other_runs)
    usable = [[item for item in items if _run_of(item) not in other_runs] for items in item_lists]
    _write_reports(session, usable, completion)
    ended_ids = set(completion.run_ids)
    return [
        StoreResult(
            sum(item.log_id in ended_ids for item in items),
            [
                (item.log_id, item.handle_code, completion.late[item.log_id])
                for item in items
                if completion.late.get(item.log_id, complete.YIELDED) != complete.YIELDED
            ],
            sorted(log_ids),
            [(item.log_id, other_runs[_run_of(item)]) for item in items_sent if _run_of(item) in other_runs],
            tuple(item for item in items if completion.late.get(item.log_id) == complete.YIELDED),
        )
        for items_sent, items, log_ids in zip(item_lists, usable, foreign, strict=True)
    ]


def _name_others(session: Session, runs: Sequence[OtherRun]) -> dict[tuple[int, int], str]:
    """Return log id and `logDateTime` of the results of other runs -> AppName, empty without a group."""
    if not runs:
        return {}
    groups_by_id = groups.find_for_dispatch(session, {run.job_group for run in runs})
    names = {group_id: group.app_name for group_id, group in groups_by_id.items()}
    return {(run.log_id, run.log_date_time): names.get(run.job_group, "") for run in runs}


def _run_of(item: CallbackItem) -> tuple[int, int]:
    return item.log_id, item.log_date_time


def _write_reports(session: Session, usable: Sequence[Sequence[CallbackItem]], result: Completion) -> None:
    """Write checkpoints and progress, of late results too: that of a killed run brings its checkpoint."""
    ended_ids = {*result.run_ids, *result.late}
    reports = {item.log_id: item for items in usable for item in items if item.has_reports}
    rows = [
        {
            "id": item.log_id,
            # Only the executor reads it again, which needs it as it was.
            "checkpoint": item.checkpoint,
            "progress": mask_text(result.maskers, item.log_id, item.progress),
        }
        for item in reports.values()
        if item.log_id in ended_ids
    ]
    logs.write_reports(session, rows)


def _is_log_id(number: int) -> bool:
    return 0 < number < 2**63


def _find_foreign(session: Session, batches: Sequence[Batch]) -> list[frozenset[int]]:
    """Return, per request, the log ids of runs that its token does not act for; one statement for all."""
    log_ids = {
        item.log_id
        for batch in batches
        if not batch.scope.covers_all
        for item in batch.items
        if _is_log_id(item.log_id)
    }
    if not log_ids:
        return [frozenset()] * len(batches)
    group_ids = logs.find_group_ids(session, log_ids)
    return [
        frozenset(
            item.log_id
            for item in batch.items
            if item.log_id in group_ids and not batch.scope.covers(group_ids[item.log_id])
        )
        for batch in batches
    ]
