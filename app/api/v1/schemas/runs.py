"""Schemas: runs, triggers, logs of runs and skips."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from app.api.v1.schemas.base import Id, Instant, ListQuery, Problem, Query, Schema
from app.api.v1.schemas.limits import WaitsFor
from app.domain.archive.kinds import Missing
from app.domain.runs.logical_times import AHEAD_DAYS as LOGICAL_AHEAD_DAYS
from app.services.jobs.triggers import AHEAD_DAYS

State = Literal[
    "waiting", "running", "succeeded", "failed", "timed_out", "killed", "not_started", "unresolved"
]
#: runs of one batch
BATCH_MAX = 1_000
#: longest wait for the end of a run, in seconds
WAIT_MAX_S = 60
#: lines of one answer at most, and usually
LINES_MAX, LINES = 10_000, 1_000
LINE_MAX = 2**31 - 1


LOGICAL_TIME = Field(
    None,
    description=f"What the run stands for, from 1970 to {LOGICAL_AHEAD_DAYS} days from now; null: the second"
    " in which it is due.",
)


Force = Annotated[
    bool,
    Field(
        description="Run it now, whatever the limits of its job have, for which it counts as any other run,"
        " and even if a blackout is on."
    ),
]


class TriggerIn(Schema):
    """How to run a job once."""

    param: str | None = Field(None, description="Parameter of the run; null: the job's own.")
    addresses: list[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]] = Field(
        default_factory=list, description="Instances of its group to choose from; empty: all of them."
    )
    at: Instant | None = Field(None, description=f"When to run, in the next {AHEAD_DAYS} days; null: now.")
    in_s: float | None = Field(
        None, ge=1, le=(AHEAD_DAYS - 1) * 86_400, description="Seconds from now, instead of `at`."
    )
    logical_time: Instant | None = LOGICAL_TIME
    force: Force = False
    chain: bool = Field(
        False,
        description="With all that follows the job, by `runs_after` and as children: their runs have the same"
        " `chain`. Predecessors that do not follow the job are not waited for.",
    )

    @model_validator(mode="after")
    def _check_instant(self) -> Self:
        if self.at is not None and self.in_s is not None:
            raise ValueError("give at or in_s, not both")
        return self


class RetryIn(Schema):
    """How to run the job again."""

    force: Force = False


class RunBlackout(Schema):
    """Blackout whose end a run waits for."""

    until: Instant | None = Field(description="null: it has no end yet.")
    reason: str = Field(examples=["moving to the new data centre"])


class Run(Schema):
    """One run of a job."""

    id: str = Field(
        description="Number of the run. While it waits for the scheduler, and for a broadcast of several"
        " shards, the id of its trigger, which stays valid. `w` and a number: it waits for a limit, its"
        " predecessors, the end of a blackout or the missed run before it, and comes from the schedule, a"
        " parent job, a round or a failure.",
        examples=["4711", "7.1795420800000.9f86d081884c7d659a2feaa0c55ad015", "w812"],
    )
    job_id: int
    group_id: int
    state: State
    trigger_type: str = Field(
        description="`CRON`, `MISFIRE`, `MANUAL`, `API`, `PARENT`, `AFTER`, `BACKFILL` or `RETRY`; empty: not"
        " known.",
        examples=["MANUAL"],
    )
    handler: str = ""
    param: str = Field("", description="Parameter it was sent with; empty while it waits.")
    address: str = Field("", description="Instance it was sent to; empty: none yet, or several.")
    shard: str = Field("", description="Number and count of a shard; empty: no shard.", examples=["0/2"])
    due_at: Instant | None = Field(
        None, description="When it is due, while it waits for the scheduler or a limit."
    )
    scheduled_at: Instant | None = Field(None, description="Instant of the schedule; null: of none.")
    logical_time: Instant | None = Field(
        None,
        description="What it stands for: of a scheduled run its instant, of a retry, a child, a shard and a"
        " run that was run again that of the run before, of others what was given or the second of the"
        " trigger.",
    )
    started_at: Instant | None = Field(None, description="When it was sent.")
    ended_at: Instant | None = Field(None, description="When its result arrived.")
    duration_ms: int | None = Field(None, description="From its sending to its result.")
    retries_left: int = 0
    source_id: str | None = Field(None, description="Run of which this is a child or retry.")
    reason: str = Field(
        "",
        description="Why it failed or waits, in one line; `predecessors`: it waits for those of its job, in"
        " its `round`; `blackout`: for the end of its `blackout`; `missed`: for the missed run before it.",
    )
    round: int | None = Field(None, description="Id of the round that it waits for or follows.")
    backfill: int | None = Field(
        None, description="Id of the backfill that it belongs to, also as a retry; null while it waits."
    )
    chain: str | None = Field(
        None,
        description="Chain that it belongs to: the first 15 digits of the token in the id of the trigger that"
        " asked for it.",
        examples=["9f86d081884c7d6"],
    )
    blackout: RunBlackout | None = Field(None, description="The blackout whose end it waits for.")
    waits_for: WaitsFor | None = Field(None, description="The limit that has no slot for it.")
    position: int | None = Field(
        None, description="While it waits: its place among those that wait for the same limit; 1 is first."
    )
    priority: int | None = Field(None, description="Priority of its job, while it waits for a limit.")


class RunDetail(Run):
    """One run with its messages and the runs that belong to it."""

    message: str = Field("", description="Text that the executor returned with the result.")
    sent_param: str | None = Field(
        None,
        description="What was sent for a parameter with placeholders, secrets as `‹secret NAME›`; null:"
        " `param` is what was sent, or nothing was.",
    )
    trace: str = Field("", description="Steps of its dispatch, one a line.")
    retries: list[str] = Field(default_factory=list, description="Ids of the runs that repeat it.")
    children: list[str] = Field(default_factory=list, description="Ids of the runs of child jobs.")
    shards: list[Run] = Field(default_factory=list, description="Of a broadcast: one for each instance.")


class BatchEntryIn(Schema):
    """A run of a batch."""

    job_id: Id
    param: str | None = Field(None, description="Parameter of the run; null: the job's own.")
    logical_time: Instant | None = LOGICAL_TIME
    force: Force = False


class BatchIn(Schema):
    """Runs to trigger together, due now, each on any instance of the job's group."""

    runs: list[BatchEntryIn] = Field(max_length=BATCH_MAX)


class BatchOut(Schema):
    """What became of the runs of a batch."""

    items: list[RunDetail | Problem] = Field(
        description="In the order of the request: the run, or why it was refused; `errors` name its place,"
        " such as `runs.3.job_id`, counted from 0."
    )


class RunSelection(ListQuery):
    """Which runs are meant."""

    job_id: Id | None = Field(None, description="Runs of this job.")
    group_id: Id | None = Field(None, description="Runs of the jobs of this executor group.")
    state: Literal[State, "unsuccessful"] | None = Field(
        None, description="Runs in this state; `unsuccessful`: all that ended without success."
    )
    from_ms: Instant | None = Field(None, alias="from", description="Runs that started then or later.")
    to_ms: Instant | None = Field(None, alias="to", description="Runs that started then or earlier.")


class RunQuery(RunSelection):
    """Which runs to list."""

    logical_from: Instant | None = Field(None, description="Runs whose logical time is then or later.")
    logical_to: Instant | None = Field(None, description="Runs whose logical time is then or earlier.")
    chain: str = Field("", description="Runs of this chain: as runs have it, or the id of its trigger.")


class WaitQuery(Query):
    """How long to wait for a run."""

    wait: int = Field(
        0,
        ge=0,
        le=WAIT_MAX_S,
        description="Seconds to wait for its end; it is answered as soon as it ends.",
    )


class LogQuery(Query):
    """Which lines of a log to read."""

    from_line: int = Field(1, ge=1, le=LINE_MAX, description="First line, counted from 1.")
    limit: int = Field(
        LINES,
        ge=1,
        le=LINES_MAX,
        description="Lines of one answer; not with `follow`. Long logs are read fastest with the largest: an"
        " answer costs a piece of up to 512 KiB from the executor, however few of its lines it has.",
    )
    follow: bool = Field(
        False,
        description="Stream the lines until the run has ended, as `application/x-ndjson`, or as"
        ' `text/event-stream` if that is accepted: `{"line": 1, "text": "…"}`, `{"heartbeat": true}`'
        ' every 15 s without a line, `{"error": "…"}` while the executor cannot be reached, and last'
        ' `{"end": true, "state": "succeeded", "next_line": 2}`; `end` is false after an hour, when'
        " another request continues at `next_line`. Of a broadcast there is only the end, with `shards`: the"
        " ids of the runs to follow instead.",
    )


class MissingOut(Schema):
    """Lines of a log that were not kept or could not be fetched."""

    from_line: int
    to_line: int | None = Field(description="Null: all from the first one on, if there are any.")
    reason: str = Field(examples=[reason.value for reason in Missing])
    text: str


class LogLines(Schema):
    """Lines of the log of a run."""

    from_line: int = Field(description="Number of the first line; later than requested behind missing lines.")
    next_line: int = Field(description="Where the next request continues.")
    lines: list[str]
    end: bool = Field(description="Whether the log has ended: no line will follow.")
    state: State
    message: str = Field(description="Why there is no line, where the executor says so.")
    archived_lines: int = Field(
        description="Lines up to this one are read from the log archive; 0: all from the executor."
    )
    missing: list[MissingOut] = Field(description="What is known to be missing of the log.")


class SkipOut(Schema):
    """Consecutive scheduled times of a job that were not fired, or a run that a limit kept from starting."""

    id: int
    job_id: int
    first_at: Instant
    last_at: Instant
    count: int = Field(description="How many, counted up to 10000, or up to 3000 for a cron of five fields.")
    reason: str = Field(
        examples=[
            "misfire",
            "stopped",
            "edited",
            "invalid",
            "restored",
            "lost",
            "limit",
            "withdrawn",
            "predecessor",
            "deadline",
        ]
    )
    round: int | None = Field(None, description="Round of a run that its predecessors prevented.")
    trigger_type: str = Field(
        description="`MANUAL`, `PARENT`, `AFTER`, `BACKFILL` or `RETRY`: a run that was due then; empty:"
        " times of the schedule."
    )
    recorded_at: Instant


class SkipQuery(ListQuery):
    """Which skips to list."""

    job_id: Id | None = Field(None, description="Skips of this job.")
    from_ms: Instant | None = Field(None, alias="from", description="With scheduled times then or later.")
    to_ms: Instant | None = Field(None, alias="to", description="With scheduled times then or earlier.")
