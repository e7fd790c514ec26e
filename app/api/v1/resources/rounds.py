"""API: rounds of jobs that run after others, chains, and the graph of jobs."""

from contextlib import nullcontext

from flask import Response

from app.api.v1.cursors import BIG_ID, cut, read_id_cursor
from app.api.v1.endpoint import Call, Resource
from app.api.v1.long_poll_slots import waits
from app.api.v1.resources.runs import RETRY_AFTER_S
from app.api.v1.run_answers import waiting_answer
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.rounds import (
    ChainOut,
    EdgeOut,
    GraphOut,
    LastRound,
    MissingRuns,
    NodeOut,
    PredecessorOut,
    RoundOut,
    RoundQuery,
)
from app.api.v1.schemas.runs import WaitQuery
from app.domain.access.permissions import Right
from app.domain.runs.trigger_keys import number_text
from app.services.rounds import graph, listing
from app.services.rounds.graph import GraphNode
from app.services.rounds.listing import PredecessorView, RoundFilter, RoundView
from app.services.runs import round_runs
from app.services.runs.round_runs import chain_of

resource = Resource("rounds", "Rounds of jobs that run after others, and what follows what.")


@resource.get("/rounds", query=RoundQuery, answer=Listed[RoundOut])
def list_rounds(call: Call) -> Listed[RoundOut]:
    """List the rounds of jobs that run after others, newest first."""
    query: RoundQuery = call.query
    criteria = RoundFilter(
        query.job_id or 0, query.state or "", chain_of(query.chain) if query.chain else None
    )
    before_id = read_id_cursor(query.cursor, BIG_ID) or 0
    rows = listing.list_rounds(
        call.session, criteria, actor=call.actor, before_id=before_id, limit=query.limit + 1
    )
    page, next_cursor = cut(rows, query.limit, lambda view: (view.id,))
    return Listed[RoundOut](items=[_round_out(view) for view in page], next_cursor=next_cursor)


@resource.get("/rounds/<int:round_id>", answer=RoundOut)
def get_round(call: Call, round_id: int) -> RoundOut:
    """Return a round with what has arrived in it."""
    return _round_out(listing.show_round(call.session, round_id, actor=call.actor))


@resource.post("/rounds/<int:round_id>/run-missing", answer=MissingRuns, status=202, right=Right.OPERATE)
def run_missing(call: Call, round_id: int) -> MissingRuns:
    """Run again all runs that failed, so that the round is not complete; the others stay as they are.

    Needs the right `operate` on the jobs of all of them.
    """
    runs = round_runs.run_missing(call.session, round_id, actor=call.actor, now_ms=call.now_ms)
    return MissingRuns(runs=[waiting_answer(run) for run in runs])


@resource.get("/chains/<chain>", query=WaitQuery, answer=ChainOut, transaction=False)
def get_chain(call: Call, chain: str) -> Response:
    """Return a chain, with `wait` as soon as nothing of it is left.

    `chain` is that of its runs, or the id of the trigger that asked for it. If too many requests wait
    already, it is answered as it is, with Retry-After.
    """
    headers, wait_s = {}, call.query.wait
    place = waits.place(call.caller.holder, threads=call.config.threads) if wait_s else nullcontext(False)
    with place as may_wait:
        view = round_runs.wait_for_chain(
            chain_of(chain), actor=call.actor, timeout_s=wait_s if may_wait else 0
        )
    if wait_s and not may_wait and not view.has_ended:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    answer = ChainOut(
        chain=number_text(view.chain),
        state=view.state,  # type: ignore[arg-type]
        ended=view.has_ended,
        on_their_way=view.on_their_way,
        open_rounds=view.open_rounds,
        not_run_rounds=view.not_run_rounds,
        runs=dict(view.runs),
    )
    return Response(answer.model_dump_json(), headers=headers, content_type="application/json")


@resource.get("/jobs/<int:job_id>/graph", answer=GraphOut)
def get_graph(call: Call, job_id: int) -> GraphOut:
    """Return what leads to a job and what follows it, by `runs_after` and as children; 500 jobs at most."""
    view = graph.graph_of(call.session, job_id, actor=call.actor)
    return GraphOut(
        nodes=[_node_out(node) for node in view.nodes],
        edges=[
            EdgeOut.model_validate(
                {"from": edge.source, "to": edge.target, "kind": edge.kind, "rule": edge.rule}
            )
            for edge in view.edges
        ],
        truncated=view.truncated,
    )


def _round_out(view: RoundView) -> RoundOut:
    return RoundOut.model_validate(
        {
            "id": view.id,
            "job_id": view.job_id,
            "description": view.job_name,
            "group_id": view.group_id,
            "key": view.key,
            "logical_time": view.logical_ms,
            "chain": number_text(view.chain) if view.chain is not None else None,
            "state": view.state,
            "reason": view.reason,
            "opened_at": view.opened_ms,
            "deadline": view.deadline_ms or None,
            "decided_at": view.decided_ms or None,
            "incomplete": view.incomplete,
            "run_id": _id_text(view.log_id),
            "cause_run_id": _id_text(view.cause_log_id),
            "predecessors": [_predecessor_out(predecessor) for predecessor in view.predecessors],
        }
    )


def _predecessor_out(view: PredecessorView) -> PredecessorOut:
    return PredecessorOut.model_validate(
        {
            "job_id": None if view.is_foreign else view.job_id,
            "description": view.name,
            "outcome": view.outcome.value if view.outcome is not None else None,
            "running": view.is_running,
            "run_id": _id_text(view.log_id),
            "retry_at": view.retry_ms,
            "reason": view.reason,
            "succeeded_shards": view.succeeded_shards,
            "shards": view.total_shards,
            "arrived_at": view.at_ms,
        }
    )


def _node_out(node: GraphNode) -> NodeOut:
    last_round = None
    if node.last_round_id is not None:
        last_round = LastRound.model_validate({"id": node.last_round_id, "state": node.last_round_state})
    return NodeOut.model_validate(
        {
            "job_id": node.job_id,
            "description": node.name,
            "group_id": node.group_id,
            "enabled": node.is_on,
            "schedule_type": node.schedule_type,
            "last_round": last_round,
            "last_run_state": node.last_run_state,
            "foreign": node.is_foreign,
        }
    )


def _id_text(log_id: int | None) -> str | None:
    return str(log_id) if log_id is not None else None
