"""API: runs, waiting for their end, kills, retries and withdrawals."""

from contextlib import nullcontext

from flask import Response

from app.api.v1.cursors import BIG_ID, INSTANT, read_cursor, write_cursor
from app.api.v1.endpoint import Call, Made, Resource
from app.api.v1.long_poll_slots import waits
from app.api.v1.resources.triggers import MEMBERS, queued
from app.api.v1.run_answers import detail_of, run_answers, unclaimed_answer
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.runs import Run, RunDetail, RunQuery, WaitQuery
from app.database.engine import read_scope
from app.domain.access.permissions import Right
from app.domain.runs.trigger_keys import parse_id
from app.domain.text.texts import N_
from app.errors import Conflict
from app.services.runs import logs, planned, run_actions
from app.services.runs.logs import LogFilter, LogStatus
from app.services.runs.run_lookup import FoundRun, get_run, wait_for_end

#: which of the runs that wait a cursor is in
UNCLAIMED, CLAIMED = "unclaimed", "claimed"
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

    With `state=waiting` and without times, the runs that were triggered and wait for a scheduler come first,
    the last due of them first: their ids are those of their triggers. A page of one kind of failure, or of
    logical times, may be short, or empty, and have a `next_cursor` nevertheless: each searches 5000 runs.
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
    )
    rows, after = logs.list_from(call.session, log_filter, actor=call.actor, limit=limit)
    return run_answers(call.session, rows), after


def _waiting(call: Call, query: RunQuery) -> Listed[Run]:
    """Return a part of the runs that wait: first those without a claim, then those that are not sent."""
    kind, *position = read_cursor(query.cursor, str, INSTANT, BIG_ID) or (UNCLAIMED,)
    after = (int(position[0]), int(position[1])) if position else None
    items: list[Run] = []
    if kind == UNCLAIMED:
        runs, after = planned.list_unclaimed(
            call.session,
            actor=call.actor,
            group_id=query.group_id or 0,
            job_id=query.job_id or 0,
            before=after,
            limit=query.limit,
            logical=(query.logical_from, query.logical_to),
        )
        items = [unclaimed_answer(run) for run in runs]
        if after is not None:
            return Listed[Run](items=items, next_cursor=write_cursor(UNCLAIMED, *after))
        if len(items) == query.limit:
            return Listed[Run](items=items, next_cursor=write_cursor(CLAIMED, INSTANT[-1], BIG_ID[-1]))
    claimed, after = _claimed(call, query, after, query.limit - len(items))
    return Listed[Run](
        items=[*items, *claimed],
        next_cursor=write_cursor(CLAIMED, *after) if after is not None else None,
    )


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


@resource.post("/runs/<run_id>/retry", answer=RunDetail, status=202, right=Right.OPERATE)
def retry_run(call: Call, run_id: str) -> Made:
    """Run the job again with the parameter of this run; a shard on its own instance."""
    return queued(run_actions.retry_run(call.session, run_id, actor=call.actor, now_ms=call.now_ms))


@resource.delete("/runs/<run_id>", right=Right.OPERATE)
def withdraw_run(call: Call, run_id: str) -> None:
    """Withdraw a run that was triggered and that no scheduler has claimed."""
    trigger = parse_id(run_id)
    if trigger is None:
        get_run(call.session, run_id, actor=call.actor, right=Right.OPERATE)
        raise Conflict(N_("The run has started already; it can be killed, but not withdrawn"))
    planned.withdraw(call.session, trigger, actor=call.actor, now_ms=call.now_ms)
