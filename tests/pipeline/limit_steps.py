"""Steps of runs of jobs with limits: claimed as a dispatcher does, found again on the waiting list."""

from typing import Any

from app.clock import Millis
from app.database.engine import session_scope, transact
from app.models.fire import Fire
from app.models.job import Job
from app.models.limit import Limit, LimitUse
from app.pipeline.claim import ClaimBatch
from app.pipeline.limits.claim_limited import claim_limited, find_ready
from tests.pipeline.steps import claim_fires, claimer
from tests.support.factories import T0, all_rows


def claim_all(now_ms: Millis = T0, **changes: Any) -> ClaimBatch:
    """Claim all due fires as a dispatcher does; return what became of those with limits."""
    by = claimer(**changes)
    first = claim_fires([fire for fire in all_rows(Fire) if fire.state == "PENDING"], by, now_ms=now_ms)
    assert not first.claims
    return transact(lambda session: claim_limited(session, first.limited_fires, by, now_ms=now_ms))


def look(now_ms: Millis = T0) -> ClaimBatch:
    """Claim the waiting fires that have slots by now."""
    ready = find_ready()
    return transact(lambda session: claim_limited(session, ready, claimer(), now_ms=now_ms))


def share(limit: Limit, job: Job, weight: int = 1) -> None:
    with session_scope() as session:
        session.get_one(Job, job.id).limits = f'[{{"limit":"{limit.name}","weight":{weight}}}]'
        session.add(LimitUse(job_id=job.id, limit_id=limit.id, weight=weight))


def waiting() -> list[Fire]:
    """Return the waiting fires in their order."""
    return sorted(all_rows(Fire, state="WAITING"), key=lambda fire: (fire.deadline_ms, fire.id))
