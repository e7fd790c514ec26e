"""Sample promises: some jobs with what they owe, a month of verdicts, incidents in each state."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, Millis
from app.domain.completeness.days import day_of
from app.domain.enums import AlarmState, IncidentState, MessageStep
from app.domain.promises.promise import promise_of
from app.models.group import Group
from app.models.job import Job
from app.models.promise import Incident, IncidentMessage, JobPromise

DAYS = 30
#: index of a job -> its promises, each with how often it was broken in the days
OWED: dict[int, list[tuple[dict[str, Any], int]]] = {
    0: [
        ({"kind": "starts_within", "s": 60}, 2),
        ({"kind": "takes_at_most", "s": 300}, 0),
        ({"kind": "fails_at_most", "n": 2, "then": "switch_off"}, 1),
    ],
    1: [({"kind": "finishes_by", "at": "06:00"}, 1)],
    3: [({"kind": "takes_usual_times", "times": 2.5}, 0), ({"kind": "finishes_within", "s": 1_800}, 0)],
    7: [({"kind": "succeeds_every", "s": 600}, 3)],
}
DEFAULT = {"kind": "starts_within", "s": 120}


def add_promises(session: Session, groups: Sequence[Group], jobs: Sequence[Job], now_ms: Millis) -> int:
    """Add promises and incidents; return the id of an open incident with messages."""
    zone = ZoneInfo("Asia/Shanghai")
    days = [(day_of(now_ms, zone) - timedelta(days=back)).isoformat() for back in range(DAYS - 1, -1, -1)]
    groups[0].promises = json.dumps([DEFAULT])
    groups[0].escalation = json.dumps({"channel": "on-call", "after_minutes": 15})
    for index, owed in OWED.items():
        jobs[index].promises = json.dumps([definition for definition, _broken in owed])
        for number, (definition, broken) in enumerate(owed, 1):
            numbers = {day: [40, int(place < broken), 0] for place, day in enumerate(reversed(days))}
            is_broken = index == 1
            session.add(
                JobPromise(
                    job_id=jobs[index].id,
                    number=number,
                    kind=definition["kind"],
                    definition=promise_of(definition).definition,
                    since_ms=now_ms - DAYS * DAY_MS,
                    planned_until_ms=now_ms,
                    days=json.dumps(dict(sorted(numbers.items()))),
                    kept_ms=now_ms - (DAY_MS if is_broken else MINUTE_MS),
                    broken_ms=now_ms - (HOUR_MS if is_broken else 2 * DAY_MS) if broken else 0,
                )
            )
    return _incidents(session, jobs, now_ms)


def _incidents(session: Session, jobs: Sequence[Job], now_ms: Millis) -> int:
    rows = [
        _incident(jobs[0], now_ms - 3 * DAY_MS, {"1": OWED[0][0][0]}, IncidentState.KEPT_AGAIN),
        _incident(jobs[7], now_ms - 26 * HOUR_MS, {"1": OWED[7][0][0]}, IncidentState.KEPT_AGAIN, "w"),
        _incident(jobs[0], now_ms - 5 * HOUR_MS, {"3": OWED[0][2][0]}, IncidentState.ACKNOWLEDGED, "r"),
        _incident(jobs[1], now_ms - HOUR_MS, {"1": OWED[1][0][0]}, IncidentState.OPEN),
        _incident(
            jobs[0], now_ms - 8 * MINUTE_MS, {"1": OWED[0][0][0], "2": OWED[0][1][0]}, IncidentState.OPEN
        ),
    ]
    session.add_all(rows)
    session.flush()
    answers = json.dumps(
        {"mail lina@example.com": "ok", "channel ops-hook": "the webhook answered with the status 500"}
    )
    for incident in rows:
        _message(session, incident, MessageStep.OPENED, AlarmState.PARTLY, incident.opened_ms, answers)
    sent = json.dumps({"channel on-call": "ok"})
    _message(
        session, rows[3], MessageStep.ESCALATED, AlarmState.SENT, rows[3].opened_ms + 15 * MINUTE_MS, sent
    )
    _message(session, rows[4], MessageStep.ESCALATED, AlarmState.PENDING, rows[4].opened_ms + DAY_MS, None)
    return rows[4].id


def _incident(
    job: Job, at_ms: Millis, kinds: dict[str, Any], state: IncidentState, sort: str = "i"
) -> Incident:
    opened_ms = at_ms + MINUTE_MS
    is_over = state is IncidentState.KEPT_AGAIN
    is_acknowledged = state is IncidentState.ACKNOWLEDGED
    return Incident(
        incident_key=f"{sort}:{job.id}:{at_ms}",
        job_id=job.id,
        group_id=job.job_group,
        state=state.value,
        logical_ms=at_ms,
        opened_ms=opened_ms,
        kinds=json.dumps(kinds),
        acknowledged_by="lina" if is_acknowledged else "",
        acknowledged_ms=opened_ms + 4 * MINUTE_MS if is_acknowledged else 0,
        ended_ms=opened_ms + 22 * MINUTE_MS if is_over else 0,
    )


def _message(
    session: Session,
    incident: Incident,
    step: MessageStep,
    state: AlarmState,
    at_ms: Millis,
    outcome: str | None,
) -> None:
    session.add(
        IncidentMessage(
            incident_id=incident.id,
            job_id=incident.job_id,
            step=step.value,
            state=state.value,
            created_ms=incident.opened_ms,
            next_ms=at_ms,
            outcome=outcome,
        )
    )
