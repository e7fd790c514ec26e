"""Schemas: alarms, mutes and alarm channels. Secrets are written, never returned."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from app.api.v1.schemas.base import Id, Instant, ListQuery, Partial, Schema
from app.domain.alarms.channel_settings import FIELD_MAX
from app.domain.alarms.muting import REASON_MAX
from app.services.alarms.channel_setup import NAME_MAX, SCOPES_MAX

AlarmReasonName = Literal["failed", "unresolved", "recovered"]
AlarmStateName = Literal[
    "waiting", "sending", "sent", "recovered", "undelivered", "partly_delivered", "no_channel", "muted"
]
#: returned in place of a stored secret; sent back, it keeps the secret
BLANKED = "***"
KindName = Literal["mail", "slack", "feishu", "dingtalk", "wecom", "ntfy", "webhook", "apprise"]
Text = Annotated[str, Field(max_length=FIELD_MAX)]
Ids = Annotated[list[Id], Field(max_length=SCOPES_MAX)]


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


class ChannelSettings(Partial):
    """Settings of a channel; those of its kind. Secrets are returned as `***`."""

    addresses: Text | None = Field(default=None, description="`mail`: addresses, separated by commas.")
    url: Text | None = Field(
        default=None,
        description="`slack`, `feishu`, `dingtalk`, `wecom`, `webhook`: URL of the webhook."
        " `apprise`: Apprise URL. A secret.",
    )
    secret: Text | None = Field(default=None, description="`dingtalk`: secret of the signature; optional.")
    server: Text | None = Field(default=None, description="`ntfy`: address of the server.")
    topic: Text | None = Field(default=None, description="`ntfy`: topic.")
    token: Text | None = Field(default=None, description="`ntfy`: access token, a secret; optional.")


class ChannelOut(Schema):
    """Alarm channel: where alarms are sent."""

    id: int
    name: str
    kind: str = Field(description="As in a new channel, or one of a newer version.")
    settings: ChannelSettings
    for_all: bool = Field(description="Whether it gets the alarms of all jobs.")
    group_ids: list[int] = Field(description="Groups it gets the alarms of.")
    job_ids: list[int] = Field(description="Jobs it gets the alarms of.")
    daily: bool = Field(description="Whether it gets a message about the day before at 08:00.")
    updated_at: Instant


class ChannelIn(Partial):
    """A new channel."""

    name: str = Field(max_length=NAME_MAX, examples=["On call"])
    kind: KindName = Field(examples=["mail"])
    settings: ChannelSettings = Field(examples=[{"addresses": "ops@example.com"}])
    for_all: bool = Field(
        True,
        description="Whether it gets the alarms of all jobs; by default unless groups or jobs are given.",
    )
    group_ids: Ids = Field([], description="Groups it gets the alarms of.")
    job_ids: Ids = Field([], description="Jobs it gets the alarms of.")
    daily: bool = Field(False, description="Whether it gets a message about the day before at 08:00.")


class ChannelPatch(Partial):
    """Changes of a channel, whose kind stays. What is not given is kept, each of the settings too."""

    name: str = Field("", max_length=NAME_MAX)
    settings: ChannelSettings = Field(ChannelSettings(), description="null removes an optional one.")
    for_all: bool = Field(
        True, description="Groups or jobs that are given without it limit the channel.", examples=[True]
    )
    group_ids: Ids = []
    job_ids: Ids = []
    daily: bool = False


class ChannelTestOut(Schema):
    """Result of a test message."""

    targets: list[str] = Field(description="What the message goes to.")
    results: list[TargetOut] = Field(description="Of each target; empty for a dry run, which sends nothing.")
    unmailed: list[str] = Field(description="Mail addresses that get nothing: no mail server is configured.")
