"""Schemas: promises of a job, and incidents: broken promises with their messages."""

from typing import Literal

from pydantic import Field

from app.api.v1.schemas.alarms import TargetOut
from app.api.v1.schemas.base import Id, Instant, ListQuery, Schema
from app.domain.promises.document import PromiseDocument

IncidentStateName = Literal["open", "acknowledged", "kept_again", "withdrawn"]
MessageStepName = Literal["opened", "escalated", "kept_again"]
MessageStateName = Literal["waiting", "sending", "sent", "undelivered", "partly_delivered", "not_sent"]


class IncidentQuery(ListQuery):
    """Filters of incidents."""

    job_id: Id | None = None
    group_id: Id | None = None
    state: IncidentStateName | None = None


class IncidentOut(Schema):
    """Broken promises of one instant, window or series of failures, until they are kept again."""

    id: int
    job_id: int
    group_id: int = Field(description="Executor group of the job when it was opened.")
    state: IncidentStateName = Field(
        description="`kept_again`: the promises are kept again. `withdrawn`: the job or its promises were"
        " removed."
    )
    key: str = Field(
        description="The same for all messages about it; no other incident ever has it.",
        examples=["i:7:1790000000000"],
    )
    logical_time: Instant = Field(
        description="The instant, or when the window or the first failed run began."
    )
    opened_at: Instant
    ended_at: Instant | None = Field(description="null: it has not ended.")
    acknowledged_by: str | None = Field(description="null: it is not acknowledged.")
    acknowledged_at: Instant | None
    promises: list[PromiseDocument] = Field(description="Those that were broken, as the job has them.")
    run_id: str | None = Field(description="The run that it is about; null: there was none.")


class IncidentMessageOut(Schema):
    """Message about an incident."""

    step: MessageStepName
    state: MessageStateName = Field(
        description="`undelivered`: given up after several attempts, `partly_delivered`: for some of the"
        " targets. `not_sent`: it was no longer needed, or there is nothing to send it to."
    )
    at: Instant = Field(description="Of the last attempt; while it waits, of the next one.")
    targets: list[TargetOut] = Field(description="At the last attempt.")


class IncidentDetails(IncidentOut):
    """An incident with its messages."""

    messages: list[IncidentMessageOut] = Field(description="In the order of their writing.")


class PromiseOut(Schema):
    """A promise that holds for a job, and how often it was kept in the last 30 days."""

    promise: PromiseDocument = Field(description="As the job or the group has it.")
    source: Literal["job", "group"] = Field(description="Whose promise it is.")
    state: Literal["new", "kept", "broken"] = Field(
        description="How it ended the last time; `new`: it has not been evaluated yet."
    )
    kept: int
    broken: int
    excused: int = Field(description="The schedule was off, or excluded the instant.")


class JobPromises(Schema):
    """The promises that hold for a job: its own, and those of its group for the kinds it has none of."""

    job_id: int
    items: list[PromiseOut]
