"""Schemas: blackouts, times in which nothing may start."""

from typing import Literal

from pydantic import Field

from app.api.v1.schemas.base import Id, Instant, ListQuery, Schema
from app.domain.calendars.blackouts import DURATION_MAX_S
from app.services.calendars.blackout_rules import DURATION_MIN_S

StateName = Literal["on", "coming", "over"]
AfterwardsName = Literal["skip", "run_once"]
AFTERWARDS = (
    "What becomes of the instants that it has covered: `run_once` runs the latest one of each job at the end."
)

CRON = "When the windows of a recurring one begin; null: it is on once."


class BlackoutQuery(ListQuery):
    """Which blackouts to list."""

    state: StateName | None = Field(
        None, description="`on`: now; `coming`: it, or its next window, is to come; `over`; left out: all."
    )


class Window(Schema):
    """A time in which a blackout is on."""

    from_ms: Instant = Field(alias="from")
    to_ms: Instant | None = Field(alias="to", description="Exclusive; null: it has no end yet.")


class BlackoutOut(Schema):
    """Time in which no run of some jobs starts, once or again and again."""

    VOLATILE = frozenset({"state", "window", "name"})

    id: int
    state: StateName = Field(
        description="`on`: now; `coming`: it, or the next window of a recurring one, is to come."
    )
    window: Window | None = Field(
        description="The time in which it is on, or else the next one; null: it is over."
    )
    from_ms: Instant = Field(alias="from", description="Beginning; of a recurring one that of its windows.")
    to_ms: Instant | None = Field(
        alias="to", description="End, exclusive, also of one that a user has ended; null: it has none yet."
    )
    cron: str | None = Field(
        description="When the windows of a recurring one begin; null: it is on once.",
        examples=["0 0 2 ? * SUN"],
    )
    duration_s: int | None = Field(description="Length of a window.", examples=[7200])
    time_zone: str | None = Field(description="Zone of `cron`.", examples=["Asia/Shanghai"])
    group_id: int | None = Field(description="It concerns the jobs of this executor group.")
    job_id: int | None = Field(description="It concerns this job.")
    tag: str | None = Field(
        description="It concerns the jobs with this tag. null, as the other two: it concerns all jobs."
    )
    name: str | None = Field(description="Title of the executor group, or description of the job.")
    afterwards: AfterwardsName = Field(description=AFTERWARDS)
    reason: str = Field(examples=["moving to the new data centre"])
    author: str
    created_at: Instant
    ended_at: Instant | None = Field(description="When a user ended it; null: none did.")


class BlackoutIn(Schema):
    """A blackout to make: from `from` to `to`, or windows by `cron` and `duration_s`."""

    from_ms: Instant | None = Field(
        None, alias="from", description="In whole seconds, rounded down; null or past: now."
    )
    to_ms: Instant | None = Field(
        None, alias="to", description="In whole seconds, rounded up; null: until it is ended."
    )
    cron: str | None = Field(
        None,
        description="When the windows of a recurring one begin; null: it is on once.",
        examples=["0 0 2 ? * SUN"],
    )
    duration_s: int | None = Field(
        None,
        description=f"Length of a window, {DURATION_MIN_S} to {DURATION_MAX_S}; the next one begins later.",
    )
    time_zone: str | None = Field(None, description="Zone of `cron`; null: that of the installation.")
    group_id: Id | None = Field(None, description="Only the jobs of this executor group.")
    job_id: Id | None = Field(None, description="Only this job.")
    tag: str | None = Field(
        None, description="Only jobs with this tag. null, as the other two: all jobs, for administrators."
    )
    afterwards: AfterwardsName = Field("skip", description=AFTERWARDS)
    reason: str = Field(description="Why, of 1 to 200 characters; runs that are refused show it.")
