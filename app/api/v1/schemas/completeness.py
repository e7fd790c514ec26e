"""Schemas: completeness of schedules."""

from typing import Annotated

from pydantic import Field

from app.api.v1.schemas.base import ID_MAX, Instant, Query, Schema
from app.api.v1.schemas.report import Day

#: id of a group or a job; 0: all
OptionalId = Annotated[int, Field(0, ge=0, le=ID_MAX)]


class CompletenessQuery(Query):
    """Interval and jobs of a report."""

    from_: Day | Instant | None = Field(
        None, alias="from", description="Day or instant with which it begins; otherwise today."
    )
    to: Day | Instant | None = Field(
        None, description="Its last day, or the instant before which it ends; otherwise now."
    )
    group_id: OptionalId = 0
    job_id: OptionalId = 0


class TallyOut(Schema):
    """Numbers of instants, and of the last runs for them.

    `expected` is the sum of `on_time`, `late`, `not_started`, `skipped`, `waiting` and `unexplained`.
    """

    expected: int
    on_time: int = Field(description="Sent at most 1 s after their instants.")
    late: int
    not_started: dict[str, int] = Field(description="By reason: no executor took them.")
    skipped: dict[str, int] = Field(description="By reason.")
    waiting: int
    unexplained: int = Field(description="There is no row of any kind for them.")
    unexpected: int = Field(description="Scheduled runs of other instants, and second ones.")
    unknown: int = Field(description="Scheduled runs from before the history of their job.")
    java: int = Field(description="Started by a Java admin on the same database.")
    finished: int
    failed: int
    unresolved: int
    running: int


class JobTallyOut(TallyOut):
    """Numbers of a job."""

    job_id: int
    group_id: int


class CompletenessOut(TallyOut):
    """Numbers of an interval, in all and by job, those that are not complete first."""

    from_at: Instant
    to_at: Instant = Field(description="Instants of the last five seconds are left out.")
    time_zone: str
    jobs: list[JobTallyOut]
    jobs_left_out: int = Field(description="Further jobs, beyond the first 1,000.")


class VerifyQuery(Query):
    """Day of a verification."""

    day: Day
    job_id: OptionalId = 0


class VerifyOut(Schema):
    """Verification of a day: its seal, and a count of its instants anew."""

    day: Day
    sealed: bool
    intact: bool = Field(
        description="Whether the seals up to this day and its totals are as they were sealed."
    )
    unexplained: int
    unexpected: int
    recounted: int = Field(description="Jobs whose rows are all there, so that they were counted anew.")
    different: list[int] = Field(description="Ids of jobs of which the new count differs from the totals.")
