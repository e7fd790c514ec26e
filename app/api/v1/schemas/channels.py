"""Schemas: alarm channels. Secrets are written, never returned."""

from typing import Annotated, Literal

from pydantic import Field

from app.api.v1.schemas.alarms import TargetOut
from app.api.v1.schemas.base import Id, Instant, Partial, Schema
from app.domain.alarms.channel_settings import FIELD_MAX
from app.services.alarms.channel_setup import NAME_MAX, SCOPES_MAX

#: returned in place of a stored secret; sent back, it keeps the secret
BLANKED = "***"
KindName = Literal["mail", "slack", "feishu", "dingtalk", "wecom", "ntfy", "webhook", "apprise"]
Text = Annotated[str, Field(max_length=FIELD_MAX)]
Ids = Annotated[list[Id], Field(max_length=SCOPES_MAX)]


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


class ChannelPatch(Partial):
    """Changes of a channel, whose kind stays. What is not given is kept, each of the settings too."""

    name: str = Field("", max_length=NAME_MAX)
    settings: ChannelSettings = Field(ChannelSettings(), description="null removes an optional one.")
    for_all: bool = Field(
        True, description="Groups or jobs that are given without it limit the channel.", examples=[True]
    )
    group_ids: Ids = []
    job_ids: Ids = []


class ChannelTestOut(Schema):
    """Result of a test message."""

    targets: list[str] = Field(description="What the message goes to.")
    results: list[TargetOut] = Field(description="Of each target; empty for a dry run, which sends nothing.")
    unmailed: list[str] = Field(description="Mail addresses that get nothing: no mail server is configured.")
