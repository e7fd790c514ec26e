"""Schemas of GLUE code."""

from typing import Annotated

from pydantic import Field

from app.api.v1.schemas.base import Instant, Schema
from app.domain.jobs.fields import SOURCE_MAX

Remark = Annotated[
    str, Field(min_length=4, max_length=100, description="What changed.", examples=["first version"])
]


class CodeIn(Schema):
    """Code of a job to save as a new version."""

    source: str = Field(max_length=SOURCE_MAX, description="The code.", examples=["echo $1"])
    remark: Remark


class CodeOut(Schema):
    """Present code of a job."""

    job_id: int
    run_mode: str = Field(description="Language of the code.", examples=["GLUE_SHELL"])
    source: str = Field(description="The code.", examples=["echo $1"])
    remark: str = Field(description="Remark on its version.")
    updated_at: Instant | None = Field(description="When it was saved. Executors get it with their next run.")


class CodeVersion(Schema):
    """Saved version of a job's code, without the code."""

    id: int
    run_mode: str = Field(description="Language of the code.", examples=["GLUE_SHELL"])
    remark: str = Field(description="What changed.")
    author: str = Field(description="Who saved it; empty: unknown.")
    saved_at: Instant | None = Field(description="When it was saved.")


class CodeVersionSource(CodeVersion):
    """Saved version of a job's code."""

    source: str = Field(description="The code.", examples=["echo $1"])
