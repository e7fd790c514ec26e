"""Schemas of executor groups, their instances, and drains."""

from typing import Annotated, Literal

from pydantic import Field

from app.api.v1.schemas.base import Id, Instant, ListQuery, Partial, Schema
from app.domain.promises.document import Escalation, Promises

AddressKind = Literal["auto", "manual"]
Address = Annotated[
    str, Field(min_length=1, max_length=255, pattern="^[^,]+$", examples=["http://10.0.0.5:9999"])
]
AppName = Annotated[
    str,
    Field(
        min_length=4,
        max_length=64,
        description="Name under which executors register; jobs of the group run on them.",
        examples=["my-app"],
    ),
]
Title = Annotated[str, Field(min_length=1, max_length=64, description="Name in lists.", examples=["Reports"])]
Kind = Annotated[
    AddressKind,
    Field(description="`auto`: the addresses of the registered executors. `manual`: only those entered."),
]
Addresses = Annotated[
    list[Address],
    Field(description="Addresses of a `manual` group; an `auto` group gets them by itself."),
]
Token = Annotated[
    str | None,
    Field(
        max_length=255,
        description="The group's own access token, never shown again; null or empty: the server's. While a"
        " token is replaced, the former one stays valid until the changeover is ended.",
        json_schema_extra={"writeOnly": True, "format": "password"},
    ),
]
AlarmUrls = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    Field(
        description="Apprise URLs that get the group's alarms beside the alarm channels; never shown again.",
        json_schema_extra={"writeOnly": True},
    ),
]
GroupPromises = Annotated[
    Promises,
    Field(description="What its jobs promise unless they have a promise of the same kind; ten at most."),
]
GroupEscalation = Annotated[
    Escalation | None,
    Field(
        description="Further channel for incidents of its jobs that are not acknowledged, unless the job has"
        " its own; null: none."
    ),
]

MaxRunning = Annotated[
    int, Field(ge=0, le=10_000, description="Most runs of its jobs at once, on all instances; 0: no limit.")
]
GroupArchive = Annotated[
    Literal["", "off", "failed", "all"],
    Field(description="Of which runs of its jobs logs are archived; empty: as the installation says."),
]
LogDays = Annotated[
    int,
    Field(ge=0, le=36_500, description="Days that archived logs are kept; 0: as the installation says."),
]
RunDays = Annotated[
    int,
    Field(
        ge=0, le=36_500, description="Days that runs are kept, three at least; 0: as the installation says."
    ),
]


class GroupQuery(ListQuery):
    """Filters of the list of executor groups."""

    app_name: str = Field("", description="Groups with this text in their AppName, in any case.")
    q: str = Field("", description="Groups with this text in their title, in any case.")


class OfGroupQuery(ListQuery):
    """Filter of lists of instances and of drains."""

    group_id: Id | None = Field(None, description="Those of this executor group.")


class GroupIn(Schema):
    """A new executor group."""

    app_name: AppName
    title: Title
    address_type: Kind = "auto"
    addresses: Addresses = []
    access_token: Token = None
    alarm_urls: AlarmUrls = []
    promises: GroupPromises = []
    escalation: GroupEscalation = None
    max_running: MaxRunning = 0
    log_archive: GroupArchive = ""
    log_days: LogDays = 0
    run_days: RunDays = 0


class GroupPatch(Partial):
    """Members of an executor group to change; the others keep their values."""

    app_name: AppName = ""
    title: Title = ""
    address_type: Kind = "auto"
    addresses: Addresses = []
    access_token: Token = None
    alarm_urls: AlarmUrls = []
    promises: GroupPromises = []
    escalation: GroupEscalation = None
    max_running: MaxRunning = 0
    log_archive: GroupArchive = ""
    log_days: LogDays = 0
    run_days: RunDays = 0


class InstanceCounts(Schema):
    """Numbers of instances of a group."""

    listed: int = Field(description="In the address list: new runs are sent to them unless they are drained.")
    online: int = Field(description="With a heartbeat in the last 40 seconds.")
    drained: int = Field(description="Drained: no new runs are sent to them.")


class GroupOut(Schema):
    """An executor group. Its access token and alarm URLs are never returned."""

    VOLATILE = frozenset({"jobs", "instances", "last_heartbeat_at"})

    id: int = Field(examples=[1])
    app_name: str = Field(description="Name under which executors register.", examples=["my-app"])
    title: str = Field(description="Name in lists.", examples=["Reports"])
    address_type: AddressKind = Field(description="Whether the registry or users maintain the addresses.")
    addresses: list[str] = Field(
        description="Addresses that runs are sent to.", examples=[["http://10.0.0.5:9999"]]
    )
    jobs: int = Field(description="Number of its jobs.")
    instances: InstanceCounts
    last_heartbeat_at: Instant | None = Field(description="Last heartbeat of any instance; null: unknown.")
    has_own_token: bool = Field(description="Whether executors send a token of the group, not the server's.")
    token_changeover_since: Instant | None = Field(
        description="Since when the group's former token is valid as well; null: it is not."
    )
    promises: GroupPromises
    escalation: GroupEscalation
    max_running: int = Field(description="Most runs of its jobs at once, on all instances; 0: no limit.")
    log_archive: str = Field(
        description="Of which runs of its jobs logs are archived; empty: as the installation says."
    )
    log_days: int = Field(description="Days that archived logs are kept; 0: as the installation says.")
    run_days: int = Field(description="Days that runs are kept; 0: as the installation says.")
    updated_at: Instant | None = Field(description="When the group was changed last.")


class InstanceLoad(Schema):
    """Runs of an instance."""

    running: int
    waiting: int = Field(description="On their way, or behind a run of the same job.")


class InstanceOut(Schema):
    """One address of an executor group."""

    group_id: int
    app_name: str
    address: str = Field(examples=["http://10.0.0.5:9999"])
    state: str = Field(
        description="`online`: it sends heartbeats. `silent`: it is listed and should. `entered`: entered by"
        " hand, so its state is unknown. `offline`: not listed, no run is sent to it.",
        examples=["online"],
    )
    is_registered: bool
    is_listed: bool = Field(description="In the address list of the group.")
    is_drained: bool
    last_heartbeat_at: Instant | None = Field(description="Last heartbeat; null: unknown.")
    boot_id: str | None = Field(description="Changes with every start of our own client; null: unknown.")
    capabilities: list[str] = Field(description="What its client reports.", examples=[["durable-dedup"]])
    load: InstanceLoad


class DrainIn(Schema):
    """An instance to drain."""

    group_id: Id
    address: Address


class DrainOut(Schema):
    """Drained instance: no new run is sent to it until the drain is deleted."""

    id: int
    group_id: int
    address: str = Field(examples=["http://10.0.0.5:9999"])
    since: Instant = Field(description="When it was drained.")
    drained_by: str = Field(description="Who drained it.", examples=["ann"])
