"""Sample alarms: failures of the last days with the answers of two channels, one of them broken; a mute."""

import json
import random
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.domain.enums import AlarmReason, AlarmState
from app.models.alarm import Alarm
from app.models.channel import AlarmChannel
from app.models.job import Job
from app.models.log import JobLog
from app.models.mute import Mute
from app.services.alarms.deliveries import LEASE_MS
from app.services.alarms.targets import destinations_of

#: the second channel accepts nothing from then on
BROKEN_MS: Millis = 7 * 60 * MINUTE_MS
ERROR = "the webhook answered with the status 500"


def add_alarms(session: Session, jobs: Sequence[Job], now_ms: Millis) -> None:
    """Add alarms of the failed runs, some older ones without a run, a recovery, and a mute."""
    slack, webhook = (
        next(iter(destinations_of(channel)))
        for channel in session.scalars(select(AlarmChannel).order_by(AlarmChannel.id))
    )
    chance, alarms = random.Random(5), list[Alarm]()
    for number in range(60):
        at_ms = now_ms - 6 * DAY_MS + number * 2 * 60 * MINUTE_MS
        job = chance.choice(jobs[:6])
        results = {slack: "ok", webhook: "ok"}
        alarms.append(_alarm(job.id, 1_000_000 + number, at_ms, results, AlarmState.CLOSED))
    failed = select(JobLog).where(JobLog.failed == 1).order_by(JobLog.id)
    for number, log in enumerate(session.scalars(failed)):
        at_ms = (log.trigger_time or now_ms) + MINUTE_MS
        is_broken = at_ms > now_ms - BROKEN_MS
        results = {slack: "ok", webhook: ERROR if is_broken else "ok"}
        state = AlarmState.PARTLY if is_broken else AlarmState.SENT
        if number % 7 == 3:
            results, state = {"muted": "by lina until unmuted: OPS-2214"}, AlarmState.MUTED
        elif number % 5 == 1:
            state = AlarmState.CLOSED
        alarms.append(_alarm(log.job_id, log.id, at_ms, results, state))
    at_ms = now_ms - 9 * MINUTE_MS
    recovery = _alarm(jobs[0].id, 1_100_000, at_ms, {slack: "ok"}, AlarmState.CLOSED, AlarmReason.RECOVERED)
    session.add_all(sorted([*alarms, recovery], key=lambda alarm: alarm.created_ms))
    session.add(
        Mute(
            job_id=jobs[2].id,
            since_ms=now_ms - 90 * MINUTE_MS,
            until_ms=now_ms + 22 * 60 * MINUTE_MS,
            username="lina",
            reason="OPS-2214",
        )
    )


def _alarm(
    job_id: int,
    log_id: int,
    at_ms: Millis,
    results: dict[str, str],
    state: AlarmState,
    reason: AlarmReason = AlarmReason.FAILED,
) -> Alarm:
    return Alarm(
        job_id=job_id,
        log_id=log_id,
        reason=reason.value,
        state=state.value,
        created_ms=at_ms,
        next_ms=at_ms,
        lease_until=at_ms + LEASE_MS,
        outcome=json.dumps(results, ensure_ascii=False),
    )
