"""Run operations of users and scripts: list, read the executor's log, kill, clear.

Functions that send a request to an executor open their own transactions before and after it, none across it.
"""

from calendar import monthrange
from datetime import datetime
from enum import IntEnum
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import read_scope, session_scope, transact
from app.domain.access.permissions import Actor, Right, require_admin, require_right
from app.domain.enums import HandleCode, KillReason, TriggerCode
from app.domain.runs.trace_templates import KILLED, KILLED_SAYING, fill
from app.domain.text.texts import N_
from app.errors import Conflict, ExecutorUnreachable, InvalidInput, NotFound
from app.executors.calls import refusal_of
from app.executors.gateway import LOG_TIMEOUT_S
from app.models.base import zone_name
from app.models.log import JobLog
from app.pipeline.complete import Result, Source, complete
from app.pipeline.masking import find_maskers, mask_text
from app.runtime.interruptible_wait import pause
from app.services.auditing import audit
from app.services.executors.callers import Caller
from app.services.run_logs.archived_run import ArchivedRun
from app.services.runs.kills import kills
from app.services.runs.log_sources import (
    LogPiece,
    open_source,
    peer_of,
    read_last,
    read_piece,
    read_source,
)
from app.store.base.paging import Page
from app.store.fires import logs as store_logs
from app.store.jobs import listing as job_lists
from app.store.runs import clearing as log_clearing
from app.store.runs import listing as log_lists
from app.store.runs.clearing import Clearing
from app.store.runs.listing import LogFilter, LogStatus

__all__ = ["LogFilter", "LogStatus"]

MISSING = N_("Log id is invalid")
MISSING_JOB = N_("Job id is invalid")


class ClearType(IntEnum):
    """Which runs to clear. Source: docs/reference/console.md, section 10."""

    OLDER_THAN_1_MONTH = 1
    OLDER_THAN_3_MONTHS = 2
    OLDER_THAN_6_MONTHS = 3
    OLDER_THAN_1_YEAR = 4
    KEEP_1000 = 5
    KEEP_10000 = 6
    KEEP_30000 = 7
    KEEP_100000 = 8
    ALL = 9


MONTHS = {
    ClearType.OLDER_THAN_1_MONTH: 1,
    ClearType.OLDER_THAN_3_MONTHS: 3,
    ClearType.OLDER_THAN_6_MONTHS: 6,
    ClearType.OLDER_THAN_1_YEAR: 12,
}
KEPT = {
    ClearType.KEEP_1000: 1_000,
    ClearType.KEEP_10000: 10_000,
    ClearType.KEEP_30000: 30_000,
    ClearType.KEEP_100000: 100_000,
}


def list_logs(
    session: Session, filter_: LogFilter, *, actor: Actor, start: int, length: int, count_all: bool = False
) -> Page[JobLog]:
    """Return a page of the runs the actor may see; counting stops at 10,000 unless ``count_all``."""
    count_to = None if count_all else log_lists.COUNT_MAX
    return log_lists.list_logs(
        session, filter_, group_ids=actor.group_ids(Right.VIEW), start=start, length=length, count_to=count_to
    )


def list_page(session: Session, filter_: LogFilter, *, actor: Actor, start: int, length: int) -> Page[JobLog]:
    """Return the same for the console: without messages, and counting stops at 1,000 if it reads the rows."""
    group_ids = actor.group_ids(Right.VIEW)
    count_to = log_lists.page_count_max(filter_, group_ids)
    return log_lists.list_logs(
        session,
        filter_,
        group_ids=group_ids,
        start=start,
        length=length,
        count_to=count_to,
        with_messages=False,
    )


def count_later(session: Session, filter_: LogFilter, *, actor: Actor, after_ms: Millis, limit: int) -> int:
    """Return how many runs of the list were triggered in later seconds; counting stops at ``limit``."""
    return log_lists.count_later(
        session, filter_, group_ids=actor.group_ids(Right.VIEW), after_ms=after_ms, limit=limit
    )


def list_ids(session: Session, filter_: LogFilter, *, actor: Actor, limit: int) -> list[int]:
    """Return the ids of the first runs of the list, to read them in batches unaffected by new runs."""
    return log_lists.list_ids(session, filter_, group_ids=actor.group_ids(Right.VIEW), limit=limit)


def list_from(
    session: Session, filter_: LogFilter, *, actor: Actor, limit: int
) -> tuple[list[JobLog], tuple[Millis, int] | None]:
    """Return the next runs of the list, without messages, and where the page after them begins."""
    return log_lists.list_from(session, filter_, group_ids=actor.group_ids(Right.VIEW), limit=limit)


def list_existing(session: Session, log_ids: list[int], *, actor: Actor) -> list[JobLog]:
    """Return the runs with these ids that still exist, without their dispatch traces."""
    return log_lists.find_listed(session, log_ids, group_ids=actor.group_ids(Right.VIEW))


def get_log(session: Session, log_id: int, *, actor: Actor, right: Right = Right.VIEW) -> JobLog:
    """Return a run on which the actor has ``right``; raises NotFound if it is missing or not visible."""
    log = log_lists.find_log(session, log_id)
    if log is None:
        raise NotFound(MISSING)
    require_right(actor, log.job_group, right, missing=MISSING)
    return log


def read_log(
    log_id: int,
    from_line_num: int,
    *,
    actor: Actor,
    caller: Caller,
    timeout_s: float = LOG_TIMEOUT_S,
    last_lines: int = 0,
) -> LogPiece:
    """Read lines of a run's log, from the archive or its executor, in LOG_TIMEOUT_S at most.

    With ``last_lines``, the archive, or an executor that can, returns that many of its end; others those from
    the given line. Opens its own transactions. Raises ExecutorUnreachable and TooManyCalls.
    """
    with read_scope() as session:
        log = get_log(session, log_id, actor=actor)
        copy = ArchivedRun.find(session, log_id, caller.archive)

    def fetch(first: int, limit_s: float, count: int = 0) -> LogPiece:
        with read_scope() as session:
            source = open_source(session, log, caller, is_tail=count > 0)
        return read_source(source, first, caller=caller, timeout_s=limit_s, last_lines=count)

    if copy is None or not copy.has_lines:
        return fetch(from_line_num, timeout_s, last_lines)
    if last_lines:
        return read_last(copy, last_lines, fetch, timeout_s=timeout_s)
    return read_piece(copy, from_line_num, fetch, timeout_s=timeout_s)


def kill_log(log_id: int, *, actor: Actor, caller: Caller, now_ms: Millis, settle_ms: Millis = 0) -> str:
    """Kill a run; return the executor's message. The executor ends every run of the job it has.

    ``settle_ms``: time until the run counts as ended: some executors answer before they accept the next one.
    Source: docs/reference/scheduling.md, section 14.
    """
    with read_scope() as session:
        log = get_killable(session, log_id, actor=actor)
        peer = peer_of(session, log, caller, at_ms=now_ms)
        maskers = find_maskers(session, [log], now_ms=now_ms)
    with caller.permit(), kills.hold(log.id):
        reply = caller.gateway.kill(peer, log.job_id)
        if refusal := mask_text(maskers, log.id, refusal_of(reply)):
            raise ExecutorUnreachable(peer.address, refusal)
        message = mask_text(maskers, log.id, reply.msg) or ""
        if settle_ms:
            _await_end(log.id, settle_ms)
        with session_scope() as session:
            text = message.rstrip(": ")
            result_text = fill(KILLED_SAYING if text else KILLED, user=actor.username, said=text)
            result = Result(log.id, Source.KILL, HandleCode.FAIL, result_text)
            late_code = complete(session, [result], now_ms=now_ms).late.get(log.id)
            if late_code == HandleCode.FAIL and not log.killed:
                # pyxxl reports the failure of the killed run before it answers the kill.
                store_logs.mark_killed(session, [log.id])
            audit.record(
                session,
                "log.kill",
                actor=actor,
                now_ms=now_ms,
                target=("log", log.id),
                changes={"job_id": log.job_id},
            )
    return message


def _await_end(log_id: int, settle_ms: Millis) -> None:
    """Let the executor report the end of a killed run, by whatever result, before the next one is sent."""
    transact(lambda session: store_logs.mark_killed(session, [log_id], KillReason.CONFIRMED))
    pause(settle_ms / 1000)


def get_killable(session: Session, log_id: int, *, actor: Actor) -> JobLog:
    """Return a run that the actor may kill; raises Conflict if it is not running."""
    log = get_log(session, log_id, actor=actor, right=Right.OPERATE)
    if job_lists.find_job(session, log.job_id) is None:
        raise NotFound(MISSING_JOB)
    if log.trigger_code != TriggerCode.ACCEPTED:
        raise Conflict(N_("The run was not started, so it cannot be killed"))
    if log.handle_code != HandleCode.NONE:
        raise Conflict(N_("The run has ended already"))
    return log


def clear_logs(group_id: int, job_id: int, kind: int, *, actor: Actor, now_ms: Millis) -> int:
    """Delete runs of a group and a job (0: any); return how many. Executors keep their log files.

    Opens its own transactions.
    """
    with read_scope() as session:
        clearing = clearing_of(session, group_id, job_id, kind, actor=actor, now_ms=now_ms)
    count, is_done = 0, False
    while not is_done:
        row_count, is_done = transact(lambda session: log_clearing.clear_batch(session, clearing))
        count += row_count
    with session_scope() as session:
        changes = {
            "job_group": clearing.group_id,
            "job_id": job_id,
            "kind": ClearType(kind).name,
            "rows": count,
        }
        audit.record(
            session, "log.clear", actor=actor, now_ms=now_ms, target=("job", job_id), changes=changes
        )
    return count


def clearing_of(
    session: Session, group_id: int, job_id: int, kind: int, *, actor: Actor, now_ms: Millis
) -> Clearing:
    """Return the rows to clear for a ClearType; raises InvalidInput, NotFound or PermissionDenied."""
    if kind not in list(ClearType):
        raise InvalidInput("type", N_("The log rows to clear are invalid; use a type from 1 to 9"))
    return _clearing(ClearType(kind), _scope_to_clear(session, group_id, job_id, actor), job_id, now_ms)


def _scope_to_clear(session: Session, group_id: int, job_id: int, actor: Actor) -> int:
    """Return the group to restrict the clearing to (0: none); needs the right on the job's own group."""
    if job_id > 0:
        job = job_lists.find_job(session, job_id)
        if job is None:
            raise NotFound(MISSING_JOB)
        require_right(actor, job.job_group, Right.OPERATE, missing=MISSING_JOB)
        if group_id <= 0 and not actor.is_admin:
            return job.job_group
    if group_id > 0:
        require_right(actor, group_id, Right.OPERATE, missing=N_("Executor id is invalid"))
    if group_id <= 0 and job_id <= 0:
        require_admin(actor)
    return max(group_id, 0)


def _clearing(kind: ClearType, group_id: int, job_id: int, now_ms: Millis) -> Clearing:
    if kind in MONTHS:
        return Clearing(group_id, job_id, before_ms=months_before(now_ms, MONTHS[kind]))
    return Clearing(group_id, job_id, keep=KEPT.get(kind))


def months_before(now_ms: Millis, months: int) -> Millis:
    """Return the same local time some calendar months ago, on the last day of a month that is too short."""
    zone = ZoneInfo(zone_name())
    now = datetime.fromtimestamp(now_ms / 1000, zone)
    year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
    day = min(now.day, monthrange(year, month + 1)[1])
    return int(now.replace(year=year, month=month + 1, day=day).timestamp() * 1000)
