"""Schemas: named limits of runs at once, and what runs wait for."""

from typing import Annotated, Literal

from pydantic import Field

from app.api.v1.schemas.base import Id, Instant, ListQuery, Partial, Schema
from app.domain.limits.rules import WEIGHT_MAX

Slots = Annotated[int, Field(ge=1, le=WEIGHT_MAX, description="How many runs at once, with their weights.")]


class LimitQuery(ListQuery):
    """Filters of limits: there is none."""


class LimitOut(Schema):
    """Named limit that jobs share."""

    VOLATILE = frozenset({"jobs", "max_weight", "used", "waiting", "sharing", "holders"})

    name: str = Field(examples=["reporting database"])
    slots: int = Field(description="How many runs at once, counted with their weights.", examples=[3])
    group_id: int | None = Field(description="Only jobs of this executor group may use it; null: all.")
    jobs: int = Field(description="How many jobs share it, also those that the token may not see.")
    max_weight: int = Field(description="Most slots that a run of one of them takes.")
    used: int = Field(description="Slots in use.")
    waiting: int = Field(description="Runs that wait for it.")


class SharingJob(Schema):
    """Job that shares a limit."""

    job_id: int
    description: str
    weight: int = Field(description="Slots that a run takes.")


class SlotHolder(Schema):
    """Run that has slots of a limit."""

    run_id: str | None = Field(description="null: it has no row yet, or the token may not see it.")
    job_id: int | None = Field(description="null: the token may not see it.")
    weight: int = Field(description="Slots it has.")
    since: Instant | None = Field(description="When it got them; null: before its job had a limit.")
    held: bool = Field(description="It has ended as unresolved, and may still be running.")


class LimitDetail(LimitOut):
    """Named limit with its jobs and the runs that have its slots."""

    sharing: list[SharingJob] = Field(description="Jobs that the token may see, 200 at most.")
    holders: list[SlotHolder] = Field(description="Runs that have its slots, 200 at most.")


class LimitIn(Partial):
    """A named limit to make or change."""

    slots: Slots
    group_id: Id | None = Field(
        None,
        description="Only jobs of this executor group may use it; null: all, for administrators. Left out: as"
        " it is, of a new one null.",
    )


class WaitsFor(Schema):
    """Limit that a run waits for, as it is now."""

    kind: Literal["named", "job", "group"] = Field(description="A named limit, that of its job or its group.")
    limit: str | None = Field(description="Name of a named limit; null: another one.")
    key: str = Field("", description="Value of `limit_key`, for which the job's runs are counted.")
    reason: Literal["full", "behind", "replacing"] = Field(
        description="`full`: too few slots are free; `behind`: runs before it wait for them; `replacing`: the"
        " runs in progress are being killed."
    )
    used: int
    slots: int
    runs: list[str] = Field(description="Ids of some of the runs that have the slots.")
