"""Schemas of schedules."""

from typing import Annotated, Literal

from pydantic import Field

from app.api.v1.schemas.base import Instant, Query, Schema
from app.domain.schedules.schedule import MAX_CONF_LENGTH

#: most instants of one answer
COUNT_MAX = 100
Count = Annotated[int, Field(ge=1, le=COUNT_MAX, description="How many.", examples=[5])]


class ScheduleIn(Schema):
    """A schedule to try."""

    schedule_type: Literal["CRON", "FIX_RATE", "FIX_DELAY", "AT"] = Field(examples=["CRON"])
    schedule: str = Field(
        min_length=1, max_length=MAX_CONF_LENGTH, description="As in a job.", examples=["0 30 2 * * ?"]
    )
    time_zone: str = Field("", max_length=64, description="As in a job.", examples=["Europe/Berlin"])
    not_before: Instant | None = Field(None, description="No times before this instant.")
    not_after: Instant | None = Field(None, description="No times after this instant.")
    count: Count = 5


class NextTime(Schema):
    """Planned time."""

    at: Instant
    local: str = Field(description="Local time in the zone.", examples=["2026-11-24T02:30:00+01:00"])


class NextTimes(Schema):
    """The next planned times, fewer than asked for if the schedule ends; of a fixed delay at most one."""

    time_zone: str = Field(description="Zone of the local times.", examples=["Europe/Berlin"])
    items: list[NextTime]


class NextTimesQuery(Query):
    """Parameters of next times."""

    count: Count = 5
