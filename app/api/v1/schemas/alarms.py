"""Schemas: alarms and mutes."""

from typing import Literal

from pydantic import Field, model_validator

from app.api.v1.schemas.base import Id, Instant, ListQuery, Schema
from app.domain.alarms.muting import REASON_MAX

AlarmReasonName = Literal["failed", "unresolved", "recovered"]
AlarmStateName = Literal[
    "waiting", "sending", "sent", "recovered", "undelivered", "partly_delivered", "no_channel", "muted"
]


class TargetOut(Schema):
    """A target of an alarm, and whether it accepted the message."""

    target: str = Field(description="Mail address, channel, or URL without its secrets.")
    problem: str | None = Field(description="Why the message was not accepted; null: it was.")


class AlarmOut(Schema):
    """Alarm of a run that failed or is unresolved, or the message that its job has recovered."""

    id: int
    job_id: int
    run_id: str
    reason: AlarmReasonName = Field(description="`recovered`: the run succeeded after alarms of its job.")
    state: AlarmStateName = Field(
        description="`recovered`: sent, and the job has succeeded since. `undelivered`: given up after"
        " several attempts, `partly_delivered`: for some of the targets. `no_channel`: there is nothing to"
        " send it to."
    )
    attempts: int
    created_at: Instant
    targets: list[TargetOut] = Field(description="At the last attempt.")
    mute_id: int | None = Field(description="Mute that holds it back until it ends.")


class AlarmQuery(ListQuery):
    """Filters of alarms."""

    job_id: Id | None = None
    group_id: Id | None = None
    state: AlarmStateName | None = None
    from_ms: Instant | None = Field(None, alias="from", description="Raised then or later.")
    to_ms: Instant | None = Field(None, alias="to", description="Raised until then.")


class MuteOut(Schema):
    """Mute of a job or of an executor group: no alarms until it ends. Runs are not affected."""

    id: int
    job_id: int | None = Field(description="null: a whole group is muted.")
    group_id: int | None = Field(description="null: a single job is muted.")
    name: str = Field(description="Of the job or group.")
    since: Instant
    until: Instant | None = Field(description="null: until it is deleted.")
    username: str = Field(description="Who muted it.")
    reason: str


class MuteIn(Schema):
    """A mute of a job or of a group; one that is muted already gets the new end and reason."""

    job_id: Id | None = Field(None, examples=[7])
    group_id: Id | None = None
    until: Instant | None = Field(None, description="null: until it is deleted.")
    reason: str = Field("", max_length=REASON_MAX, examples=["The warehouse is being maintained"])

    @model_validator(mode="after")
    def _names_one(self) -> "MuteIn":
        if (self.job_id is None) == (self.group_id is None):
            raise ValueError("give either job_id or group_id")
        return self
