"""Sample rounds: a job after two others, with rounds that wait, have started and were not run; a gate."""

import json
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Millis
from app.domain.enums import FireState
from app.domain.rounds.kinds import ArrivalOutcome, RoundReason, RoundState
from app.domain.rounds.runs_after import DEADLINE_S
from app.models.base import local_datetime
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.round import After, Arrival, Round

#: logs of the predecessors that the samples name
LOGS = 3
_DEADLINE_MS = DEADLINE_S * SECOND_MS


def add_rounds(session: Session, jobs: Sequence[Job], now_ms: Millis) -> int:
    """Let two jobs run after others, one of them with a schedule; return the id of an open round."""
    job, settled, stock = jobs[6], jobs[1], jobs[9]
    _follow(session, job, [settled, stock], round="day", deadline_s=4 * 3_600)
    _follow(session, jobs[3], [settled], round="day")
    day_ms = (now_ms - 30 * MINUTE_MS) // MINUTE_MS * MINUTE_MS
    first, second = _logs(session, settled), _logs(session, stock)
    for number, (state, reason, outcome) in enumerate(
        (
            (RoundState.STARTED, "", ArrivalOutcome.SUCCEEDED),
            (RoundState.NOT_RUN, RoundReason.PREDECESSOR, ArrivalOutcome.FAILED),
            (RoundState.STARTED, "", None),
            (RoundState.OPEN, "", ArrivalOutcome.RETRYING),
        ),
        -3,
    ):
        at_ms = day_ms + number * DAY_MS
        key = f"d:{local_datetime(at_ms):%Y-%m-%d}"
        each = _round(job, key, at_ms, state, deadline_ms=at_ms + 4 * HOUR_MS)
        each.reason = str(reason)
        if state is not RoundState.OPEN:
            each.decided_ms = at_ms + 20 * MINUTE_MS if outcome is not None else each.deadline_ms
            each.incomplete = int(outcome is None)
            each.log_id = first[0] if state is RoundState.STARTED else None
            each.cause_log_id = second[0] if reason else None
        session.add(each)
        session.flush()
        session.add(_arrival(each, settled, ArrivalOutcome.SUCCEEDED, first[0], at_ms + 9 * MINUTE_MS))
        if outcome is not None:
            session.add(_arrival(each, stock, outcome, second[0], at_ms + 12 * MINUTE_MS))
    retry = Fire(job_id=stock.id, fire_key=f"retry:{second[0]}", due_time=now_ms + 5 * MINUTE_MS)
    retry.trigger_type, retry.state, retry.logical_ms = "RETRY", FireState.PENDING.value, day_ms
    gate = _round(
        jobs[3],
        f"d:{local_datetime(day_ms):%Y-%m-%d}",
        day_ms,
        RoundState.OPEN,
        deadline_ms=day_ms + _DEADLINE_MS,
    )
    session.add_all([retry, gate])
    session.flush()
    waiting = Fire(job_id=jobs[3].id, fire_key=f"cron:{jobs[3].id}:{day_ms}", due_time=day_ms)
    waiting.trigger_type, waiting.state, waiting.round_id = "CRON", FireState.GATED.value, gate.id
    session.add(waiting)
    return each.id


def _follow(session: Session, job: Job, predecessors: Sequence[Job], **rule: object) -> None:
    job.runs_after = json.dumps({"jobs": [each.id for each in predecessors], **rule})
    for each in predecessors:
        each.has_followers = 1
        session.add(After(job_id=job.id, predecessor_id=each.id))


def _logs(session: Session, job: Job) -> list[int]:
    query = select(JobLog.id).where(JobLog.job_id == job.id).order_by(JobLog.id.desc())
    return list(session.scalars(query.limit(LOGS)))


def _round(job: Job, key: str, at_ms: Millis, state: RoundState, *, deadline_ms: Millis) -> Round:
    made = Round(job_id=job.id, round_key=key, logical_ms=at_ms, state=state.value)
    made.opened_ms, made.deadline_ms = at_ms + MINUTE_MS, deadline_ms
    return made


def _arrival(of: Round, job: Job, outcome: ArrivalOutcome, log_id: int, at_ms: Millis) -> Arrival:
    return Arrival(round_id=of.id, predecessor_id=job.id, outcome=outcome.value, log_id=log_id, at_ms=at_ms)
