"""Named limits of a job as JSON: what the API and jobs as code may contain.

Imported where such a value is read or described, because pydantic takes a while to load.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.domain.limits.rules import USES_MAX, WEIGHT_MAX


class LimitShare(BaseModel):
    """Share of a job in a named limit."""

    model_config = ConfigDict(extra="forbid", strict=True)

    limit: str = Field(min_length=1, max_length=64, description="Name of the limit.")
    weight: int = Field(1, ge=1, le=WEIGHT_MAX, description="Slots that a run of the job takes.")


JobLimits = Annotated[list[LimitShare], Field(max_length=USES_MAX)]
