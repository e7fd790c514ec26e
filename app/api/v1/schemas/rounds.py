"""Schemas: rounds, chains and the graph of jobs."""

from typing import Literal

from pydantic import Field

from app.api.v1.schemas.base import Id, Instant, ListQuery, Schema
from app.api.v1.schemas.runs import RunDetail, State

RoundStateName = Literal["open", "started", "not_run"]
Outcome = Literal["succeeded", "failed", "retrying", "unresolved", "not_run", "excused"]
CHAIN = "Chain, as runs have it, or the id of the trigger that asked for it."


class PredecessorOut(Schema):
    """What became of a predecessor in a round."""

    job_id: int | None = Field(description="null: a job of a group that the token may not see.")
    description: str | None = Field(description="null: not visible, or the job was deleted.")
    outcome: Outcome | None = Field(
        description="null: nothing has arrived, or not enough shards. `retrying`: it failed and is run again;"
        " `not_run`: its run was skipped; `excused`: it has no instant that belongs to the round, or does not"
        " belong to the chain."
    )
    running: bool = Field(description="Whether a run of it that belongs to the round is in progress.")
    run_id: str | None = Field(
        description="Its last run, or the one because of which it did not run; null: none, or not visible."
    )
    retry_at: Instant | None = Field(description="When its retry is due.")
    reason: str = Field(description="Why it did not run: the reason of the skip or of its own round.")
    succeeded_shards: int
    shards: int = Field(description="Number of shards of its last run.")
    arrived_at: Instant | None = Field(description="When its last run ended.")


class RoundOut(Schema):
    """Round: runs of the predecessors of a job that belong together, and the run that follows them."""

    id: int
    job_id: int
    description: str = Field(description="Of the job.")
    group_id: int
    key: str = Field(
        description="What belongs together: `t:` and a logical time in milliseconds, `d:` and a day, `s:` and"
        " the id of the round before, or `c:` and the number of a chain.",
        examples=["d:2030-01-31"],
    )
    logical_time: Instant = Field(description="What the run that follows stands for.")
    chain: str | None = Field(description="Chain that the round belongs to.")
    state: RoundStateName = Field(
        description="`started`: the run that follows was queued; `not_run`: there is none."
    )
    reason: Literal["", "predecessor", "deadline", "edited", "excused", "restored"] = Field(
        description="Why it was not run."
    )
    opened_at: Instant
    deadline: Instant | None = Field(description="End of the wait.")
    decided_at: Instant | None
    incomplete: bool = Field(description="It started at its deadline, without all that it waited for.")
    run_id: str | None = Field(description="First run of the job in it.")
    cause_run_id: str | None = Field(
        description="Run because of which it was not run; null: none, or not visible."
    )
    predecessors: list[PredecessorOut]


class RoundQuery(ListQuery):
    """Which rounds to list."""

    job_id: Id | None = Field(None, description="Rounds of this job.")
    state: RoundStateName | None = Field(None, description="Rounds in this state.")
    chain: str = Field("", description=CHAIN)


class MissingRuns(Schema):
    """Runs of a round that were queued again."""

    runs: list[RunDetail]


class ChainOut(Schema):
    """Chain: a run by hand with all that follows it."""

    chain: str
    state: State = Field(
        description="`waiting` or `running` while anything of it is left; then the worst state of its runs,"
        " without those that were repeated. A round that was not run counts as `not_started`."
    )
    ended: bool = Field(description="Whether no run of it is on its way and no round of it is open.")
    on_their_way: int = Field(description="Runs that wait or are in progress.")
    open_rounds: int
    not_run_rounds: int
    runs: dict[str, int] = Field(description="How many runs are in each state, of those that are visible.")


class LastRound(Schema):
    """Last round of a job."""

    id: int
    state: RoundStateName


class NodeOut(Schema):
    """Job of a graph."""

    job_id: int = Field(description="Negative: a job of a group that the token may not see.")
    description: str | None
    group_id: int | None
    enabled: bool
    schedule_type: str
    last_round: LastRound | None
    last_run_state: State | None
    foreign: bool = Field(description="Whether the token may not see it.")


class EdgeOut(Schema):
    """Job that leads to another one."""

    source: int = Field(alias="from")
    to: int
    kind: Literal["after", "child"] = Field(description="By `runs_after`, or as a child.")
    rule: str | None = Field(description="Rule of `runs_after`; null: of a child.")


class GraphOut(Schema):
    """What leads to a job, and what follows it."""

    nodes: list[NodeOut]
    edges: list[EdgeOut]
    truncated: bool = Field(description="There are more than 500 jobs; these are the nearest.")
