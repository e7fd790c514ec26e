"""What a job runs after, as JSON: what the API and jobs as code may contain.

Imported where such a value is read or described, because pydantic takes a while to load.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.domain.rounds.kinds import AtDeadline, RoundKind, RoundRule, ShardRule
from app.domain.rounds.runs_after import DEADLINE_MAX_S, DEADLINE_S, JOBS_MAX

#: most characters of the key of a job, with its AppName
KEY_MAX = 250
#: an id; an import uses negative ones for jobs that have none yet
JobId = Annotated[int, Field(strict=True, ge=-(2**31), lt=2**31)]


class JobRunsAfter(BaseModel):
    """Predecessors of a job, and when it runs after them."""

    model_config = ConfigDict(extra="forbid")

    jobs: list[JobId] = Field(
        min_length=1, max_length=JOBS_MAX, description="The predecessors: jobs after which this job runs."
    )
    rule: RoundRule = Field(
        RoundRule.ALL_SUCCEEDED,
        description="When it runs: all predecessors have succeeded, or have ended in whatever way, or any or"
        " `k` of them have succeeded.",
    )
    k: int = Field(1, strict=True, ge=1, le=JOBS_MAX, description="Of the rule `k_of_n`.")
    round: RoundKind = Field(
        RoundKind.LOGICAL_TIME,
        description="Which of their runs belong together: those of the same logical time, of the same day in"
        " the time zone of the job, or those since its own last round.",
    )
    shards: ShardRule = Field(ShardRule.ALL, description="How many shards of a predecessor have to succeed.")
    shards_k: int = Field(1, strict=True, ge=1, le=10_000, description="Of the shard rule `at_least`.")
    deadline_s: int = Field(
        DEADLINE_S,
        strict=True,
        ge=0,
        le=DEADLINE_MAX_S,
        description="Seconds after which a round that is not complete ends; 0: none.",
    )
    at_deadline: AtDeadline = Field(
        AtDeadline.DROP,
        description="What becomes of it then: the job does not run, runs all the same, or goes on waiting.",
    )


class RunsAfterKeys(JobRunsAfter):
    """Predecessors of a job in jobs as code, by their keys."""

    jobs: list[Annotated[str, Field(min_length=1, max_length=KEY_MAX)]] = Field(  # type: ignore[assignment]
        min_length=1,
        max_length=JOBS_MAX,
        description="Keys of the predecessors: jobs after which this job runs; `<AppName>/<key>` in another"
        " group.",
    )
