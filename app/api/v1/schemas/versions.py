"""Schemas of the versions of a job."""

from typing import Any

from pydantic import Field

from app.api.v1.schemas.base import Instant, Schema


class FieldChange(Schema):
    """Changed field of a job."""

    field: str = Field(description="Member of a job.", examples=["schedule"])
    old: Any = Field(description="Value in the version before.", examples=["0 0 2 * * ?"])
    new: Any = Field(description="Value in this version.", examples=["0 30 2 * * ?"])


class VersionListed(Schema):
    """Version of a job: its fields after a change."""

    number: int = Field(description="1 for the first version of the job; numbers have no gaps.", examples=[3])
    changed_at: Instant = Field(description="When the change was made.")
    username: str = Field(description="Who made it; empty: not known.", examples=["ann"])
    source: str = Field(
        description="Where it came from: `token ci`, `import jobs.json`, `apply infra@1a2b3c`, `restore 2`;"
        " `outside`: another program on the same database; empty: the console, or not known.",
        examples=["token ci"],
    )
    changes: list[FieldChange] | None = Field(
        description="What differs from the version before; null where that is not kept."
    )


class VersionOut(VersionListed):
    """Version of a job with all its fields."""

    fields: dict[str, Any] = Field(
        description="The members of the job without its code and its switch.",
        examples=[{"description": "Nightly report", "schedule": "0 30 2 * * ?"}],
    )
