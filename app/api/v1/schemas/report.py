"""Schemas: nodes, report and change history."""

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Field

from app.api.v1.schemas.base import Instant, ListQuery, Query, Schema

#: a day whose midnight is an instant in every time zone
Day = Annotated[date, Field(ge=date(1970, 1, 2), le=date(9998, 12, 30))]


class NodeOut(Schema):
    """Node: console or workers of a host."""

    name: str
    kind: Literal["console", "workers"]
    alive: bool
    version: str
    started_at: Instant
    heartbeat_at: Instant
    clock_lead_ms: int = Field(description="How far its clock is ahead of that of the database.")
    scanned_at: Instant | None = Field(description="Workers: when the scheduler last completed a scan.")


class DayOut(Schema):
    """Runs that were triggered on a day of the console's time zone."""

    day: date
    succeeded: int
    failed: int
    running: int = Field(description="Without a result when they were counted.")


class ReportOut(Schema):
    """Runs of every day of a range, ascending."""

    time_zone: str
    days: list[DayOut]
    uncounted_until: date | None = Field(
        description="Days until this one are left out: their runs are not counted by group yet."
    )


class ReportQuery(Query):
    """Days of a report."""

    from_: Day | None = Field(None, alias="from", description="First day; otherwise 29 days before the last.")
    to: Day | None = Field(None, description="Last day; otherwise today.")


class SummaryOut(Schema):
    """The installation now, limited to what the token may see."""

    at: Instant
    groups: int
    jobs: int
    enabled_jobs: int = Field(description="Jobs whose schedule is on.")
    online_instances: int = Field(description="Distinct addresses with a heartbeat in the last 40 seconds.")
    waiting: int = Field(description="Runs that are due and have not been sent.")
    oldest_waiting_at: Instant | None = Field(description="When the oldest of them was due.")
    running: int = Field(description="Runs that have been claimed and have no result yet.")
    succeeded_today: int = Field(description="Counted once a minute, like `failed_today`.")
    failed_today: int
    scheduling: bool = Field(description="Whether a scheduler has scanned within 10 seconds.")


class AuditOut(Schema):
    """Entry of the change history: a change, or a refused request."""

    id: int
    at: Instant
    user_id: int | None = Field(description="null: not a user, or unknown.")
    username: str
    address: str = Field(description="Source address of the request.")
    via: str = Field(description="What the user acted through, such as `token deploy`; empty: the console.")
    action: str
    object_type: str
    object_id: int | None
    changes: dict[str, Any] = Field(
        description="Fields, each as `[before, after]` or as a value; secrets are blanked."
    )


class AuditQuery(ListQuery):
    """Filters of the change history."""

    username: str = Field("", description="Part of the name.")
    action: str = Field("", description="Beginning of the action, such as `job.`.")
    refusals: bool = Field(False, description="Only refused requests and logins.")
    object_type: str = ""
    object_id: int | None = Field(None, ge=1, le=2**53, description="Needs `object_type`.")
    from_ms: Instant | None = Field(None, alias="from", description="Made then or later.")
    to_ms: Instant | None = Field(None, alias="to", description="Made until then.")
