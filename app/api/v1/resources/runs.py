"""API: runs, waiting for their end, kills, retries and withdrawals."""

from contextlib import nullcontext

from flask import Response

from app.api.v1.cursors import BIG_ID, INSTANT, read_cursor, write_cursor
from app.api.v1.endpoint import Call, Made, Resource
from app.api.v1.long_poll_slots import waits
from app.api.v1.resources.triggers import MEMBERS, queued
from app.api.v1.run_answers import detail_of, limited_answer, run_answers, unclaimed_answer
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.runs import RetryIn, Run, RunDetail, RunQuery, WaitQuery
from app.database.engine import read_scope
from app.domain.access.permissions import Right
from app.domain.runs.trigger_keys import parse_id
from app.errors import Conflict
from app.services.runs import logs, planned_runs, run_actions, waiting
from app.services.runs.logs import LogFilter, LogStatus
from app.services.runs.round_runs import chain_of, find_run_ids
from app.services.runs.run_lookup import FoundRun, get_run, row_of, wait_for_end
from app.services.runs.waiting import WaitFilter

#: which of the runs that wait a cursor is in
LIMITED, UNCLAIMED, CLAIMED = "limited", "unclaimed", "claimed"
#: places in the order of waiting runs
PLACE = range(-(2**63), 2**63)
#: time and id of the last run of a part
Position = tuple[int, int]
#: when to repeat a request that could not wait, in seconds
RETRY_AFTER_S = 1
STATUSES = {
    "waiting": LogStatus.WAITING,
    "running": LogStatus.RUNNING,
    "succeeded": LogStatus.SUCCESS,
    "failed": LogStatus.ONLY_FAILED,
    "timed_out": LogStatus.TIMED_OUT,
    "killed": LogStatus.KILLED,
    "not_started": LogStatus.NOT_STARTED,
    "unresolved": LogStatus.UNRESOLVED,
    "unsuccessful": LogStatus.FAILED,
}

resource = Resource("runs", "Runs of jobs, their results and logs.", MEMBERS)


@resource.get("/runs", query=RunQuery, answer=Listed[Run])
def list_runs(call: Call) -> Listed[Run]:
    """List the runs that a scheduler has claimed, newest first.

    With `state=waiting` and without times, the runs that wait for their predecessors, for the end of a
    blackout or for a missed run come first, then those that wait for a limit, in the order in which they
    will get slots, then those that were triggered and wait for a scheduler, the last due of them first: their
    ids are those of their triggers. A page of one kind of failure, or of logical times, may be short, or
    empty, and have a `next_cursor` nevertheless: each searches 5000 runs.
    With `logical_from` these are runs that started at most 31 days before it; with `job_id` or `group_id`
    those of this job or group alone.
    """
    query: RunQuery = call.query
    if query.state == "waiting" and query.from_ms is None and query.to_ms is None:
        return _waiting(call, query)
    position = read_cursor(query.cursor, INSTANT, BIG_ID)
    after = None if position is None else (int(position[0]), int(position[1]))
    items, after = _claimed(call, query, after, query.limit)
    return Listed[Run](items=items, next_cursor=write_cursor(*after) if after is not None else None)


def _claimed(
    call: Call, query: RunQuery, after: Position | None, limit: int
) -> tuple[list[Run], Position | None]:
    log_filter = LogFilter(
        group_id=query.group_id or 0,
        job_id=query.job_id or 0,
        status=STATUSES[query.state] if query.state else LogStatus.ALL,
        from_ms=query.from_ms,
        to_ms=query.to_ms,
        after=after,
        logical_from_ms=query.logical_from,
        logical_to_ms=query.logical_to,
        among_ids=find_run_ids(call.session, chain) if (chain := _chain(query)) is not None else None,
    )
    rows, after = logs.list_from(call.session, log_filter, actor=call.actor, limit=limit)
    return run_answers(call.session, rows), after


def _waiting(call: Call, query: RunQuery) -> Listed[Run]:
    """Return a part of the runs that wait: for rounds and limits, for a scheduler, then those not sent."""
    items: list[Run] = []
    first, after = _position(query.cursor)
    parts = list(_PARTS)
    for number, part in enumerate(parts[parts.index(first) :], parts.index(first)):
        runs, after = _PARTS[part](call, query, after, query.limit - len(items))
        items += runs
        if after is not None:
            return Listed[Run](items=items, next_cursor=write_cursor(part, *after))
        if len(items) == query.limit and part != CLAIMED:
            return Listed[Run](items=items, next_cursor=write_cursor(parts[number + 1], *_BEFORE_ALL))
    return Listed[Run](items=items, next_cursor=None)


def _position(cursor: str) -> tuple[str, Position | None]:
    """Return which part of the runs that wait a cursor continues, and where; raises InvalidInput."""
    position = read_cursor(cursor, str, PLACE, BIG_ID)
    if position is None:
        return LIMITED, None
    if position[0] != LIMITED:
        read_cursor(cursor, str, INSTANT, BIG_ID)
    part = str(position[0]) if position[0] in _PARTS else CLAIMED
    return part, (int(position[1]), int(position[2]))


def _limited(
    call: Call, query: RunQuery, after: Position | None, limit: int
) -> tuple[list[Run], Position | None]:
    runs, after = waiting.list_waiting(
        call.session,
        actor=call.actor,
        group_id=query.group_id or 0,
        criteria=WaitFilter(
            job_id=query.job_id or 0,
            logical=(query.logical_from, query.logical_to),
            chain=_chain(query),
        ),
        after=after,
        limit=limit,
    )
    return [limited_answer(run) for run in runs], after


def _unclaimed(
    call: Call, query: RunQuery, after: Position | None, limit: int
) -> tuple[list[Run], Position | None]:
    runs, after = planned_runs.list_unclaimed(
        call.session,
        actor=call.actor,
        group_id=query.group_id or 0,
        job_id=query.job_id or 0,
        before=after,
        limit=limit,
        logical=(query.logical_from, query.logical_to),
        chain=_chain(query),
    )
    return [unclaimed_answer(run) for run in runs], after


def _chain(query: RunQuery) -> int | None:
    return chain_of(query.chain) if query.chain else None


#: parts of the runs that wait, in their order
_PARTS = {LIMITED: _limited, UNCLAIMED: _unclaimed, CLAIMED: _claimed}
#: position before the first run of a part that is listed from the last one
_BEFORE_ALL = (INSTANT[-1], BIG_ID[-1])


@resource.get("/runs/<run_id>", query=WaitQuery, answer=RunDetail, transaction=False)
def get_run_by_id(call: Call, run_id: str) -> Response:
    """Return a run, with `wait` as soon as it has ended.

    If too many requests wait already, or too many of this token, the run is answered as it is, with
    Retry-After.
    """
    headers, wait_s = {}, call.query.wait
    place = waits.place(call.caller.holder, threads=call.config.threads) if wait_s else nullcontext(False)
    with place as may_wait:
        run = wait_for_end(run_id, actor=call.actor, timeout_s=wait_s if may_wait else 0)
    if wait_s and not may_wait and not run.has_ended:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    with read_scope() as session:
        answer = detail_of(session, run, actor=call.actor)
    return Response(answer.model_dump_json(), headers=headers, content_type="application/json")


@resource.post(
    "/runs/<run_id>/kill", answer=RunDetail, right=Right.OPERATE, transaction=False, calls_executors=True
)
def kill_run(call: Call, run_id: str) -> RunDetail:
    """Kill a run, of a broadcast all shards that are running. An executor ends all runs of the job it has."""
    if call.dry_run:
        run_actions.find_killable(run_id, actor=call.actor)
    else:
        run_actions.kill_run(run_id, actor=call.actor, caller=call.executors, now_ms=call.now_ms)
    with read_scope() as session:
        run: FoundRun = get_run(session, run_id, actor=call.actor)
        return detail_of(session, run, actor=call.actor)


@resource.post("/runs/<run_id>/retry", body=RetryIn, answer=RunDetail, status=202, right=Right.OPERATE)
def retry_run(call: Call, run_id: str, body: RetryIn) -> Made:
    """Run the job again with the parameter of this run; a shard on its own instance."""
    return queued(
        run_actions.retry_run(call.session, run_id, actor=call.actor, now_ms=call.now_ms, force=body.force)
    )


@resource.post("/runs/<run_id>/start", answer=RunDetail, right=Right.OPERATE)
def start_run(call: Call, run_id: str) -> RunDetail:
    """Start a run now that waits for a limit, the end of a blackout, its predecessors or a missed run."""
    _require_no_row(call, run_id)
    waiting.start_now(call.session, run_id, actor=call.actor, now_ms=call.now_ms)
    return detail_of(call.session, get_run(call.session, run_id, actor=call.actor), actor=call.actor)


@resource.post("/runs/<run_id>/release", answer=RunDetail, right=Right.OPERATE)
def release_run(call: Call, run_id: str) -> RunDetail:
    """Release the slots of a run that has ended as unresolved; it may still be running."""
    run = get_run(call.session, run_id, actor=call.actor, right=Right.OPERATE)
    waiting.release_slot(call.session, row_of(run).id, actor=call.actor, now_ms=call.now_ms)
    return detail_of(call.session, run, actor=call.actor)


@resource.delete("/runs/<run_id>", right=Right.OPERATE)
def withdraw_run(call: Call, run_id: str) -> None:
    """Withdraw a run that waits for a limit, predecessors, a blackout or a missed run, or was not claimed."""
    _require_no_row(call, run_id)
    waiting.withdraw_run(call.session, run_id, actor=call.actor, now_ms=call.now_ms)


def _require_no_row(call: Call, run_id: str) -> None:
    """Raise Conflict for the id of a row, as its run has started, and NotFound if there is no such run."""
    if parse_id(run_id) is None and waiting.fire_id_of(run_id) is None:
        get_run(call.session, run_id, actor=call.actor, right=Right.OPERATE)
        raise Conflict(waiting.STARTED)
