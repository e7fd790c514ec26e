"""Day rule of a job as JSON: what the API and jobs as code may contain.

Imported where such a value is read or described, because pydantic takes a while to load.
"""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.domain.calendars.day_rule import NAME_MAX, NTH_MAX, On, Otherwise


def _nth(value: int) -> int:
    if value != -1 and not 1 <= value <= NTH_MAX:
        raise ValueError(f"must be 1 to {NTH_MAX}, or -1 for the last")
    return value


class JobCalendarRule(BaseModel):
    """On which days a schedule runs."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=NAME_MAX, description="Name of the calendar.")
    on: On = Field(On.WORKDAYS, description="The days on which the schedule runs.")
    otherwise: Otherwise = Field(
        Otherwise.SKIP,
        description="What becomes of an instant on another day: it is skipped, or moved to the next or the"
        " previous day on which the schedule runs, at the same time of day.",
    )
    nth: Annotated[int, AfterValidator(_nth)] | None = Field(
        None,
        strict=True,
        description="Of these days of a month only this one: 1 the first, -1 the last; the expression gives"
        " the times of day. null: all.",
    )
