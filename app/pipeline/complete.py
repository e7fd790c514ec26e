"""Completion: the single place where runs end, by callback, refusal, kill or resolver.

docs/reference/pipeline.md, section 6. In the caller's transaction it updates the log row (the first result
wins), inserts child fires, the retry fire and the alarm row, and deletes the fire. A batch costs a handful of
statements.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.enums import (
    AlarmReason,
    AlarmState,
    AlarmStatus,
    HandleCode,
    KillReason,
    ScheduleType,
    TriggerCode,
)
from app.domain.parameters.masking import Masker
from app.domain.rounds.kinds import ArrivalOutcome
from app.domain.rounds.round_keys import NONE_FOLLOWS
from app.domain.runs.callback_times import is_of_earlier_run
from app.domain.runs.trace_templates import (
    BAD_CODE,
    BAD_CODE_SAYING,
    fill,
)
from app.domain.runs.trigger_report import join_lines
from app.models.log import JobLog
from app.pipeline.archive_ends import archive_ends
from app.pipeline.children import child_fires, known_children, result_text
from app.pipeline.day_corrections import correct_days
from app.pipeline.delays import set_delayed
from app.pipeline.end_metrics import MeasuredEnd, count_ends
from app.pipeline.ended_fires import end_fires
from app.pipeline.masking import find_maskers, mask_text
from app.pipeline.promise_checks import check_ends
from app.pipeline.retries import (
    NO_SLOT,
    FailedRun,
    given_up_runs,
    is_retried,
    param_to_repeat,
    retry_fires,
    slot_of,
)
from app.pipeline.rounds.ends import End, arrive_ends
from app.store.alarms import alarms
from app.store.base import locks
from app.store.fires import logs
from app.store.fires import queue as fires
from app.store.fires.ended_fires import EndedFire
from app.store.fires.logs import RunState
from app.store.jobs.of_results import JobOfResult, find_of_results

logger = logging.getLogger(__name__)

#: trigger codes of a run that may still get a result
OPEN_CODES = (TriggerCode.NONE, TriggerCode.ACCEPTED, TriggerCode.UNRESOLVED)
#: in place of the code of a late result's row: the run is being killed for a newer one
YIELDED = -1
#: a handle code must fit the column
HANDLE_CODE_MAX = 2**31 - 1


class Source(StrEnum):
    """Source of a result."""

    CALLBACK = "callback"
    REFUSED = "refused"
    KILL = "kill"
    RESOLVER = "resolver"


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one run.

    ``trigger_code`` None keeps the row's, except that 0 becomes 200. ``handle_code`` 0: no handler reported a
    result (refused, unresolved). ``trace`` is appended to `trigger_msg`. ``log_date_time``: as in a callback.
    """

    log_id: int
    source: Source
    handle_code: int = HandleCode.NONE
    handle_msg: str | None = None
    trigger_code: int | None = None
    trace: str | None = None
    log_date_time: int = 0
    #: NotStarted, of a refusal
    not_started: str = ""
    #: a success of a run that is being killed for a newer one does not count yet, nor at all once the kill is
    #: confirmed: it is late, as YIELDED
    yields_to_kill: bool = False


class OtherRun(NamedTuple):
    """Run that the database has lost, reported with a log id that another run has now."""

    log_id: int
    log_date_time: int
    #: executor group of the run that has the id now
    job_group: int


@dataclass(frozen=True, slots=True)
class Completion:
    """Effect of a batch: the runs it ended, and late results: log id -> handle code of the row."""

    run_ids: tuple[int, ...]
    late: dict[int, int]
    #: runs whose results were left out, because another run has their log id now
    other_runs: tuple[OtherRun, ...] = ()
    #: log id -> masker of the executor's texts, of the runs with which secrets were sent
    maskers: Mapping[int, Masker] = field(default_factory=dict)


def callback_result(
    log_id: int,
    handle_code: int,
    handle_msg: str | None,
    log_date_time: int = 0,
    *,
    yields_to_kill: bool = False,
) -> Result:
    """Return the Result of a callback; a code that does not fit the column becomes a failure naming it."""
    if not 0 < handle_code <= HANDLE_CODE_MAX:
        message = (handle_msg or "").rstrip("; ")
        handle_msg = fill(BAD_CODE_SAYING if message else BAD_CODE, code=handle_code, said=message)
        handle_code = HandleCode.FAIL
    return Result(
        log_id,
        Source.CALLBACK,
        handle_code,
        handle_msg,
        log_date_time=log_date_time,
        yields_to_kill=yields_to_kill,
    )


def complete(
    session: Session, results: Sequence[Result], *, now_ms: Millis, holds_fires: bool = False
) -> Completion:
    """End runs, each at most once, even if called repeatedly; works in the caller's transaction.

    A caller that ``holds_fires`` has locked fires, which a stop locks after its job: so it waits for no job,
    and the next time of a fixed delay that is locked is left to ``tick_delays``.
    """
    log_ids = {result.log_id for result in results}
    job_by_log = find_of_results(session, log_ids)
    delayed_ids = [job.id for job in job_by_log.values() if job.schedule_type == ScheduleType.FIX_DELAY]
    if delayed_ids:
        delayed_ids = [job.id for job in locks.lock_jobs(session, delayed_ids, skip_locked=holds_fires)]
    runs = logs.lock_runs(session, log_ids)
    other_runs = tuple(other_run for result in results if (other_run := _other_run(runs, result)) is not None)
    if other_runs:
        results = [result for result in results if _other_run(runs, result) is None]
    maskers = find_maskers(session, runs.values(), now_ms=now_ms)
    if maskers:
        results = _mask(results, maskers)
    first = {result.log_id: result for result in reversed(results)}
    endings = [
        (runs[log_id], result)
        for log_id, result in first.items()
        if log_id in runs and _is_open(runs[log_id], result)
    ]
    late = {
        log_id: YIELDED if _yields(runs[log_id], result) else runs[log_id].handle_code
        for log_id, result in first.items()
        if log_id in runs and not _is_open(runs[log_id], result)
    }
    if not endings:
        return Completion((), late, other_runs, maskers)
    run_ids = tuple(run.id for run, _ in endings)
    unresolved_ids = {run.id for run, result in endings if result.trigger_code == TriggerCode.UNRESOLVED}
    ended_fires = end_fires(session, [run for run, _ in endings], unresolved_ids, job_by_log)
    sent_ms_by_log = {log_id: fire.sent_ms for log_id, fire in ended_fires.items()}
    ended_runs = [_EndedRun(run, result, sent_ms_by_log.get(run.id, 0)) for run, result in endings]
    _write_logs(session, ended_runs, job_by_log, now_ms)
    correct_days(session, [run for run, _ in endings])
    _write_successors(session, endings, job_by_log, ended_fires, now_ms)
    ends = [(run, _is_failure(result)) for run, result in endings if result.source is not Source.REFUSED]
    archive_ends(session, ends, job_by_log, now_ms=now_ms)
    count_ends(session, [_measure(end, now_ms) for end in ended_runs])
    set_delayed(session, delayed_ids, now_ms=now_ms)
    return Completion(run_ids, late, other_runs, maskers)


def _mask(results: Iterable[Result], maskers: Mapping[int, Masker]) -> list[Result]:
    """Return results without the secrets of their runs; a text that is cut first could hide one."""
    return [
        replace(result, handle_msg=mask_text(maskers, result.log_id, result.handle_msg)) for result in results
    ]


def _other_run(runs: dict[int, RunState], result: Result) -> OtherRun | None:
    """Return the run that a result is of, if that is not the one that has its log id now."""
    run = runs.get(result.log_id)
    if run is None or run.trigger_type is None:  # MySQL may have rounded up the time of a Java admin's run.
        return None
    is_other = is_of_earlier_run(result.log_date_time, run.trigger_time or 0)
    return OtherRun(run.id, result.log_date_time, run.job_group) if is_other else None


class _EndedRun(NamedTuple):
    """A run that ends; ``sent_ms`` 0: unknown, as a Java admin on the same database sent it."""

    run: RunState
    result: Result
    sent_ms: Millis


def _measure(end: _EndedRun, now_ms: Millis) -> MeasuredEnd:
    run, result, sent_ms = end
    return MeasuredEnd(run.job_group, _outcome(result), _duration_ms(result, sent_ms, now_ms))


def _outcome(result: Result) -> str:
    if result.trigger_code == TriggerCode.UNRESOLVED:
        return "unresolved"
    return "failed" if _is_failure(result) else "success"


def _yields(run: RunState, result: Result) -> bool:
    if run.handle_code or not run.is_replaced or _is_failure(result):
        return False
    return result.yields_to_kill or run.killed == KillReason.CONFIRMED


def _is_open(run: RunState, result: Result) -> bool:
    if run.handle_code != HandleCode.NONE or _yields(run, result):
        return False
    if result.source in (Source.REFUSED, Source.RESOLVER):
        return run.trigger_code in (TriggerCode.NONE, TriggerCode.ACCEPTED)
    return run.trigger_code in OPEN_CODES


def _write_logs(
    session: Session, runs: Sequence[_EndedRun], job_by_id: dict[int, JobOfResult], now_ms: Millis
) -> None:
    rows, rows_with_trace, killed_ids = [], [], []
    children = known_children(
        session, [job_by_id.get(run.job_id) for run, result, _ in runs if not _is_failure(result)]
    )
    for run, result, sent_ms in runs:
        code = (
            result.trigger_code
            if result.trigger_code is not None
            else max(run.trigger_code, TriggerCode.ACCEPTED)
        )
        job = job_by_id.get(run.job_id)
        row = {
            "id": run.id,
            "trigger_code": code,
            "handle_code": result.handle_code,
            "handle_time": now_ms if result.handle_code != HandleCode.NONE else None,
            "duration_ms": _duration_ms(result, sent_ms, now_ms),
            "handle_msg": result_text(
                result.handle_code,
                result.handle_msg,
                job if run.chain != NONE_FOLLOWS else None,
                children,
            ),
            "alarm_status": _alarm_status(run, result, job),
        }
        if result.source is Source.KILL and not run.is_replaced:
            killed_ids.append(run.id)
        if result.trace is None:
            rows.append(row)
        else:
            trace = join_lines(run.trigger_msg, result.trace)
            rows_with_trace.append(row | {"trigger_msg": trace, "not_started": result.not_started})
    bulk.update_many(session, JobLog, rows)
    bulk.update_many(session, JobLog, rows_with_trace)
    logs.mark_killed(session, killed_ids)


def _duration_ms(result: Result, sent_ms: Millis, now_ms: Millis) -> Millis | None:
    """Return the time from the last send to the result; None if unknown, also if the clock was set back."""
    is_known = result.handle_code != HandleCode.NONE and 0 < sent_ms <= now_ms
    return now_ms - sent_ms if is_known else None


def _is_failure(result: Result) -> bool:
    return result.handle_code != HandleCode.SUCCESS


def _alarm_status(run: RunState, result: Result, job: JobOfResult | None) -> int:
    if not _is_failure(result) or run.alarm_status != AlarmStatus.NOT_EXAMINED:
        return run.alarm_status
    return AlarmStatus.NOT_NEEDED if job is None or run.is_replaced else AlarmStatus.LOCKED


def _write_successors(
    session: Session,
    endings: Sequence[tuple[RunState, Result]],
    job_by_id: dict[int, JobOfResult],
    ended_fires: Mapping[int, EndedFire],
    now_ms: Millis,
) -> None:
    """Insert child fires, retry fires, those that follow by rounds, checks of promises, and alarms."""
    new_fires: list[fires.NewFire] = []
    new_alarms: list[bulk.Row] = []
    retries: list[FailedRun] = []
    ends: list[End] = []
    given_up = given_up_runs(session, [run for run, result in endings if _is_failure(result)])
    for run, result in endings:
        job = job_by_id.get(run.job_id)
        if job is None:
            continue
        if not _is_failure(result):
            new_fires += child_fires(run, job, now_ms)
            ends.append(End(run, ArrivalOutcome.SUCCEEDED))
            continue
        is_unresolved = result.trigger_code == TriggerCode.UNRESOLVED
        fire = ended_fires.get(run.id)
        ends.append(End(run, ArrivalOutcome.UNRESOLVED if is_unresolved else ArrivalOutcome.FAILED))
        if run.id not in given_up and is_retried(run, job, is_unresolved=is_unresolved):
            ends[-1] = End(run, ArrivalOutcome.RETRYING)
            param = param_to_repeat(session, run, fire)
            slot = slot_of(fire) if is_unresolved else NO_SLOT
            retries.append(FailedRun(run._replace(executor_param=param), job, slot))
        if run.alarm_status == AlarmStatus.NOT_EXAMINED and not run.is_replaced:
            reason = AlarmReason.UNRESOLVED if is_unresolved else AlarmReason.FAILED
            pending = {"state": AlarmState.PENDING.value, "created_ms": now_ms, "next_ms": now_ms}
            new_alarms.append({"log_id": run.id, "job_id": job.id, "reason": reason, **pending})
    fires.insert_unless_known(session, new_fires + retry_fires(session, retries, now_ms), now_ms=now_ms)
    arrive_ends(session, ends, job_by_id, now_ms=now_ms)
    check_ends(session, [run for run, _ in endings if not run.is_replaced], job_by_id, now_ms=now_ms)
    alarms.insert_alarms(session, new_alarms)
