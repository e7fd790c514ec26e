"""Steps of jobs that run after others: their rounds, instants that wait for them, and the monitor's look."""

import json
from typing import Any

from app.clock import Millis
from app.database.engine import session_scope, transact
from app.domain.schedules.planning import DueFire
from app.models.fire import Fire
from app.models.job import Job
from app.models.round import After, Arrival, Round
from app.pipeline.claim import ClaimBatch, claim
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.limits.claim_limited import claim_limited
from app.pipeline.rounds.gate import release
from app.pipeline.rounds.watch import tick_rounds
from tests.pipeline.steps import as_due, call_back, claimer
from tests.support.factories import T0, all_rows, make_fire, make_job


def follow(*predecessors: Job, job: Job | None = None, **rule: Any) -> Job:
    """Let a job (default: a new one without a schedule) run after these."""
    job = job or make_job(schedule_type="NONE")
    with session_scope() as session:
        value = {"jobs": [each.id for each in predecessors], **rule}
        session.get_one(Job, job.id).runs_after = json.dumps(value)
        for each in predecessors:
            session.get_one(Job, each.id).has_followers = 1
            session.add(After(job_id=job.id, predecessor_id=each.id))
    return job


def claim_due(now_ms: Millis = T0) -> list[ClaimedRun]:
    """Claim all due fires as a dispatcher does, until nothing is left to claim; return the runs."""
    by, claimed = claimer(), list[ClaimedRun]()
    due: list[DueFire] = as_due(all_rows(Fire, state="PENDING"))
    while due:
        batch: ClaimBatch = transact(lambda session, due=due: claim(session, due, by, now_ms=now_ms))
        limited = batch.limited_fires
        later = (
            transact(lambda session, due=limited: claim_limited(session, due, by, now_ms=now_ms))
            if limited
            else ClaimBatch()
        )
        claimed += [*batch.claims, *later.claims]
        due = [*batch.new_fires, *later.new_fires]
    return claimed


def look(now_ms: Millis = T0) -> None:
    """Let the monitor look at the rounds, and release what waits for those that are decided."""
    while tick_rounds(now_ms) == 0:
        pass
    release(now_ms=now_ms)


def run(job: Job, code: int = 200, *, now_ms: Millis = T0, **fire: Any) -> int:
    """Run a job to its end, for the instant T0; return the log id."""
    values = {"due_time": T0, "trigger_type": "CRON"} | fire
    made = make_fire(job, **values)
    (claimed,) = [each for each in claim_due(now_ms) if each.fire_id == made.id]
    assert call_back(claimed.log_id, code, now_ms=now_ms)
    return claimed.log_id


def following(job: Job) -> list[Fire]:
    """Return the fires of a job that follow rounds."""
    return all_rows(Fire, job_id=job.id, trigger_type="AFTER")


def states(job: Job) -> list[tuple[str, str, str]]:
    """Return key, state and reason of the rounds of a job."""
    return [(row.round_key, row.state, row.reason) for row in all_rows(Round, job_id=job.id)]


def outcomes(job: Job) -> dict[tuple[int, int], str]:
    """Return predecessor and shard -> outcome, in all rounds of a job."""
    ids = {row.id for row in all_rows(Round, job_id=job.id)}
    return {(row.predecessor_id, row.shard): row.outcome for row in all_rows(Arrival) if row.round_id in ids}
