"""Promises and escalations as JSON: what a job, a group and jobs as code may contain.

Imported where such a value is read or described, because pydantic takes a while to load.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.domain.promises.promise import CLOCK, ESCALATION_MAX, NUMBER_MAX, PROMISES_MAX, SECONDS_MAX


class _Members(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Seconds(_Members):
    """Promise of a number of seconds."""

    kind: Literal["starts_within", "finishes_within", "succeeds_every", "takes_at_most", "takes_at_least"] = (
        Field(
            description="`starts_within`: an executor takes the run within this time after it was due."
            " `finishes_within`: it succeeds within this time. `succeeds_every`: some run succeeds at least"
            " this often. `takes_at_most`, `takes_at_least`: how long a run takes."
        )
    )
    s: int = Field(ge=1, le=SECONDS_MAX, description="Seconds.")
    then: Literal["alarm"] = Field("alarm", description="What follows if it is broken.")


class FinishesBy(_Members):
    """Promise of a wall-clock time."""

    kind: Literal["finishes_by"] = Field(
        description="The run succeeds by a wall-clock time in the time zone of the job."
    )
    at: str = Field(
        pattern=CLOCK.pattern,
        description="The first such time after the run was due; `06:00+1d`: a day after it.",
    )
    then: Literal["alarm"] = Field("alarm", description="What follows if it is broken.")


class UsualTimes(_Members):
    """Promise of a multiple of the usual duration."""

    kind: Literal["takes_usual_times"] = Field(
        description="A run takes at most a multiple of the median of the last successes in that hour of day."
    )
    times: float = Field(ge=1.1, le=NUMBER_MAX, strict=False, description="The multiple.")
    then: Literal["alarm"] = Field("alarm", description="What follows if it is broken.")


class Failures(_Members):
    """Promise of a longest series of failures."""

    kind: Literal["fails_at_most"] = Field(
        description="At most this many scheduled times in a row end without a success."
    )
    n: int = Field(ge=0, le=NUMBER_MAX, description="How many may fail in a row.")
    then: Literal["alarm", "switch_off"] = Field(
        "alarm", description="What follows if it is broken; `switch_off` switches the schedule off, too."
    )


PromiseDocument = Annotated[Seconds | FinishesBy | UsualTimes | Failures, Field(discriminator="kind")]
Promises = Annotated[list[PromiseDocument], Field(max_length=PROMISES_MAX)]


class Escalation(_Members):
    """Further channel for incidents that are not acknowledged."""

    channel: str = Field(min_length=1, max_length=64, description="Name of an alarm channel.")
    after_minutes: int = Field(
        ge=1,
        le=ESCALATION_MAX,
        description="Minutes after which an incident that is still open is sent there.",
    )
