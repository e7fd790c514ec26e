"""Sample jobs that run after others over two executors, with rounds and a child job."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.clock import HOUR_MS, MINUTE_MS, Millis
from app.domain.rounds.kinds import AtDeadline, RoundReason, RoundRule, RoundState
from app.models.job import Job
from app.models.round import After, Round

#: index of a job -> indexes of the jobs it runs after, and how
AFTER: dict[int, tuple[tuple[int, ...], dict[str, Any]]] = {
    8: ((3,), {"at_deadline": AtDeadline.RUN}),
    5: ((6, 8), {"rule": RoundRule.ALL_ENDED}),
}
#: index of a job -> state of its last round
ROUNDS = {8: RoundState.OPEN, 5: RoundState.NOT_RUN}
#: index of a job that has another one as a child
PARENT, CHILD = 1, 2


def add_following(session: Session, jobs: Sequence[Job], now_ms: Millis) -> None:
    """Have some of the jobs run after others."""
    for index, (before, values) in AFTER.items():
        ids = [jobs[each].id for each in before]
        jobs[index].runs_after = json.dumps({"jobs": ids, **values})
        session.add_all(After(job_id=jobs[index].id, predecessor_id=job_id) for job_id in ids)
        for each in before:
            jobs[each].has_followers = 1
    jobs[PARENT].child_jobid = str(jobs[CHILD].id)
    for index, state in ROUNDS.items():
        is_open = state is RoundState.OPEN
        opened_ms = now_ms - (25 * MINUTE_MS if is_open else 20 * HOUR_MS)
        session.add(
            Round(
                job_id=jobs[index].id,
                round_key=f"t:{opened_ms}",
                logical_ms=opened_ms,
                state=state,
                reason=RoundReason.PREDECESSOR if state is RoundState.NOT_RUN else "",
                opened_ms=opened_ms,
                decided_ms=0 if is_open else opened_ms + HOUR_MS,
            )
        )
