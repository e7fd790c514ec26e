"""Schemas: backfills, runs of a job for past instants."""

from typing import Literal, Self

from pydantic import Field, model_validator

from app.api.v1.schemas.base import Id, Instant, ListQuery, Schema
from app.domain.backfills.kinds import INSTANTS_MAX, RUNNING_MAX

WhichName = Literal["all", "missing", "failed"]
OrderName = Literal["oldest_first", "newest_first"]
ChildrenName = Literal["none", "as_configured", "chain"]
OnFailureName = Literal["stop", "go_on"]
StateName = Literal["running", "paused", "stopping", "cancelling", "done", "failed", "cancelled"]
InstantStateName = Literal["waiting", "running", "succeeded", "failed", "withdrawn"]
StandingName = Literal["succeeded", "running", "failed", "missing", "calendar", "blackout"]

WHICH = (
    "Which instants are run: `missing`: those without any run; `failed`: those with runs of which none has"
    " succeeded; `all`: also those that have succeeded. One that has a run in progress, or that the calendar"
    " or a blackout leaves out, is never run."
)
CHILDREN = (
    "What follows the runs: nothing; child jobs and the rounds of the jobs that run after this one"
    " (`as_configured`); or all that follows the job, transitively, in a chain for each instant (`chain`)."
)
ON_FAILURE = (
    "When a run has failed, after its retries: `stop` starts no more, and the backfill ends as `failed`, from"
    " where it can be resumed."
)
STATE = (
    "`stopping`: a run has failed and others are in progress; `cancelling`: runs are still in progress;"
    " `done`: each instant has its result; `failed`: it has stopped at a failure, and can be resumed."
)
MESSAGE = "What the list of the instants says, in a sentence."


class BackfillIn(Schema):
    """A backfill to make: the instants of the schedule from `from` to `to`, or the given `times`."""

    from_ms: Instant | None = Field(None, alias="from", description="First logical time.")
    to_ms: Instant | None = Field(
        None, alias="to", description="End of the logical times, exclusive, at most now; null: now."
    )
    times: list[Instant] = Field(
        default_factory=list,
        max_length=INSTANTS_MAX,
        description="Logical times that are run whatever the schedule says, instead of `from` and `to`.",
    )
    which: WhichName = Field("all", description=WHICH)
    order: OrderName = "oldest_first"
    max_running: int = Field(1, ge=1, le=RUNNING_MAX, description="Most of its runs at once.")
    children: ChildrenName = Field("none", description=CHILDREN)
    on_failure: OnFailureName = Field("stop", description=ON_FAILURE)

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        has_range = self.from_ms is not None or self.to_ms is not None
        if has_range and self.times:
            raise ValueError("give from and to, or times, not both")
        if self.from_ms is None and not self.times:
            raise ValueError("give from, or times")
        return self


class ListedInstantOut(Schema):
    """An instant of the range, as it is before the backfill."""

    time: Instant = Field(description="Logical time.")
    standing: StandingName = Field(
        description="What there is of it: `running`: a run waits or is in progress; `failed`: runs, of which"
        " none has succeeded; `missing`: no run; `calendar`, `blackout`: it is left out."
    )
    run: bool = Field(description="Whether the backfill runs it.")
    reason: str = Field(description="Day of the calendar, or reason of the blackout, that leaves it out.")


class BackfillMade(Schema):
    """A backfill that was started, or, of a dry run, what one would run."""

    id: int | None = Field(description="null: a dry run.")
    message: str = Field(
        description=MESSAGE,
        examples=["288 instants: 12 already succeeded, 3 left out by the calendar, 273 to run"],
    )
    summary: dict[str, int] = Field(
        description="Number of `instants`, of those `to_run`, and of those of each standing."
    )
    overlapping: list[int] = Field(
        description="Of a dry run: active backfills of the job that run some of the instants; it would be"
        " refused."
    )
    instants: list[ListedInstantOut] = Field(
        description=f"Of a dry run: all instants by time, {INSTANTS_MAX} at most; otherwise empty."
    )


class BackfillOut(Schema):
    """Runs of a job for past instants, and how far they are."""

    id: int
    job_id: int
    description: str = Field(description="Of the job; of one that was deleted, at that time.")
    group_id: int
    state: StateName = Field(description=STATE)
    reason: str = Field(description="Why it was paused or has ended by itself.")
    from_ms: Instant = Field(alias="from", description="First logical time.")
    to_ms: Instant = Field(alias="to", description="End of the logical times, exclusive.")
    which: WhichName = Field(description=WHICH)
    order: OrderName
    max_running: int
    children: ChildrenName = Field(description=CHILDREN)
    on_failure: OnFailureName = Field(description=ON_FAILURE)
    total: int = Field(description="Instants that it runs.")
    ended: int = Field(description="Those whose runs have ended; not those that were withdrawn.")
    counts: dict[InstantStateName, int] = Field(description="How many of them are in each state.")
    attempt: int = Field(description="1, and one more each time it was resumed after a failure.")
    message: str = Field(description=MESSAGE)
    summary: dict[str, int] = Field(
        description="What its list said: number of `instants`, of those `to_run`, and of those of each"
        " standing."
    )
    author: str
    created_at: Instant
    updated_at: Instant = Field(description="Last change of its state or of an instant.")
    ended_at: Instant | None


class BackfillQuery(ListQuery):
    """Which backfills to list."""

    job_id: Id | None = Field(None, description="Backfills of this job.")
    state: StateName | None = Field(None, description="Backfills in this state.")


class BackfillInstantOut(Schema):
    """Instant of a backfill, and what became of it."""

    number: int = Field(description="Its place in the order of the backfill, from 0.")
    time: Instant = Field(description="Logical time.")
    state: InstantStateName = Field(
        description="`running`: its run was queued, is in progress or is to be retried; `withdrawn`: it was"
        " not run, because it or the whole backfill was withdrawn."
    )
    attempt: int = Field(description="Attempt of the backfill that has run it last; 0: none.")
    run_id: str | None = Field(description="Its last run; null: there is none yet.")
    begun_at: Instant | None = Field(description="When its run was queued.")
    ended_at: Instant | None = Field(description="When it, and its retries, had ended.")


class BackfillInstantQuery(ListQuery):
    """Which instants to list."""

    state: InstantStateName | None = Field(None, description="Instants in this state.")


class BackfillCancelIn(Schema):
    """How to cancel a backfill."""

    kill: bool = Field(
        False,
        description="Kill its runs in progress; otherwise they go on, and it is cancelled when they have"
        " ended.",
    )
