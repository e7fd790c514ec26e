"""Incidents: broken promises, until they are kept again. Each is reported once.

docs/reference/promises.md, section 4.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, Millis
from app.database.rows import bulk
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.enums import AlarmState, IncidentState, MessageStep, PromiseKind
from app.domain.promises.incidents import Subject, broken_promises, subject_of
from app.domain.promises.judgement import has_succeeded
from app.domain.promises.promise import INSTANT_KINDS, RUNNING_KINDS, SWITCH_OFF, promise_of
from app.domain.text.texts import N_
from app.errors import NotFound
from app.models.promise import Incident
from app.services.auditing import audit
from app.store.jobs import listing as job_lists
from app.store.promises import evidence, incidents, promises

MISSING = N_("incident does not exist")
#: most incidents of one round
ROUND_MAX = 1_000
#: kinds of promises that a late success of the instant makes good
_ENDED_BY_SUCCESS = INSTANT_KINDS | RUNNING_KINDS
#: result of a first message that is not sent, because an alarm about a failed run was
REPORTED_AS_FAILURE = "reported as a failed run"


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken promise."""

    key: str
    job_id: int
    number: int
    definition: str
    #: instant, beginning of the window, or of the first failed run
    logical_ms: Millis
    #: runs of the instant, in the order of their beginning
    log_ids: tuple[int, ...] = ()


def open_incidents(session: Session, breaches: Sequence[Breach], *, now_ms: Millis) -> None:
    """Open an incident for each new key, with its message; a live one gets the promise added, without one.

    For a known key no insert is tried, because on servers that would use up an id.
    """
    known = incidents.find_by_keys(session, {breach.key for breach in breaches})
    for breach in breaches:
        former = known.get(breach.key)
        if former is not None and (
            former.state not in incidents.LIVE or breach.number in broken_promises(former.kinds)
        ):
            continue
        group_id = job_lists.find_groups_of(session, [breach.job_id]).get(breach.job_id)
        if group_id is None:  # It was deleted meanwhile.
            continue
        is_new = former is None and incidents.insert_incident(session, _row(breach, group_id, now_ms))
        incident = incidents.lock_by_key(session, breach.key)
        if incident is None or incident.state not in incidents.LIVE:
            continue
        kinds = json.loads(incident.kinds) | {str(breach.number): json.loads(breach.definition)}
        incident.kinds = json.dumps(kinds)
        known[breach.key] = incident
        if is_new:
            _queue_opening(session, incident, breach, now_ms)


def _row(breach: Breach, group_id: int, now_ms: Millis) -> bulk.Row:
    return {
        "incident_key": breach.key,
        "job_id": breach.job_id,
        "group_id": group_id,
        "state": IncidentState.OPEN.value,
        "logical_ms": breach.logical_ms,
        "opened_ms": now_ms,
        "kinds": "{}",
        "log_id": breach.log_ids[-1] if breach.log_ids else 0,
    }


def _queue_opening(session: Session, incident: Incident, breach: Breach, now_ms: Millis) -> None:
    is_reported = not _is_news(breach) and incidents.has_alarm(session, breach.log_ids)
    state = AlarmState.SILENT if is_reported else AlarmState.PENDING
    outcome = json.dumps({"": REPORTED_AS_FAILURE}) if is_reported else None
    rows = [_message(incident, MessageStep.OPENED, now_ms, now_ms, state) | {"outcome": outcome}]
    if (after_minutes := _escalates_after(session, incident.job_id)) is not None:
        later_ms = now_ms + after_minutes * MINUTE_MS
        rows.append(
            _message(incident, MessageStep.ESCALATED, now_ms, later_ms, AlarmState.PENDING)
            | {"outcome": None}
        )
    session.flush()
    incidents.insert_messages(session, rows)


def _is_news(breach: Breach) -> bool:
    """Whether an incident says more than that its run has failed: a series does, or its consequence."""
    promise = promise_of(json.loads(breach.definition))
    return promise.kind is PromiseKind.FAILS_AT_MOST and (promise.n > 0 or promise.then == SWITCH_OFF)


def _escalates_after(session: Session, job_id: int) -> int | None:
    escalation = promises.escalation_of(session, job_id)
    return escalation.after_minutes if escalation is not None else None


def _message(
    incident: Incident, step: MessageStep, now_ms: Millis, next_ms: Millis, state: AlarmState
) -> bulk.Row:
    return {
        "incident_id": incident.id,
        "job_id": incident.job_id,
        "step": step.value,
        "state": state.value,
        "created_ms": now_ms,
        "next_ms": next_ms,
    }


def end_incidents(session: Session, *, now_ms: Millis, after_id: int = 0) -> int:
    """End the incidents whose promises are kept again, or no longer hold.

    Of at most ROUND_MAX of them, with an id above ``after_id``; return the last one, 0 after all.
    """
    live = incidents.find_live(session, after_id=after_id, limit=ROUND_MAX)
    if not live:
        return 0
    last_kept = promises.find_last_kept(session, {incident.job_id for incident in live})
    with_late_success = _with_late_success(session, live)
    for incident in live:
        keys = [(incident.job_id, number) for number in broken_promises(incident.kinds)]
        times = [last_kept[key] for key in keys if key in last_kept]
        if not times:
            _end(session, incident.id, IncidentState.WITHDRAWN, now_ms)
        elif incident.id in with_late_success or min(times) > incident.logical_ms:
            _end(session, incident.id, IncidentState.KEPT_AGAIN, now_ms)
    return live[-1].id if len(live) == ROUND_MAX else 0


def _with_late_success(session: Session, live: Sequence[Incident]) -> set[int]:
    """Return the ids of the incidents that a success of their instant ends."""
    late = [incident for incident in live if _may_succeed_late(incident)]
    instants = defaultdict[int, set[Millis]](set)
    for incident in late:
        instants[incident.job_id].add(incident.logical_ms)
    chains = evidence.find_chains(session, instants, by_hand=True)
    return {
        incident.id
        for incident in late
        if has_succeeded(chains.get((incident.job_id, incident.logical_ms), ()))
    }


def _may_succeed_late(incident: Incident) -> bool:
    """Whether a success of its instant ends it; a run that was too short is a success already."""
    kinds = {promise.kind for promise in broken_promises(incident.kinds).values()}
    return subject_of(incident.incident_key) is Subject.INSTANT and kinds <= _ENDED_BY_SUCCESS


def _end(session: Session, incident_id: int, state: IncidentState, now_ms: Millis) -> None:
    incident = incidents.lock_incident(session, incident_id)
    if incident is None or incident.state not in incidents.LIVE:
        return
    incident.state, incident.ended_ms = state.value, now_ms
    if state is IncidentState.KEPT_AGAIN:
        message = _message(incident, MessageStep.KEPT_AGAIN, now_ms, now_ms, AlarmState.PENDING)
        session.flush()
        incidents.insert_messages(session, [message])


def acknowledge(session: Session, incident_id: int, *, actor: Actor, now_ms: Millis) -> Incident:
    """Acknowledge an incident: it is not escalated. Once it has ended this changes nothing.

    Raises NotFound, or PermissionDenied without the right to operate its job.
    """
    incident = incidents.lock_incident(session, incident_id)
    if incident is None:
        raise NotFound(MISSING)
    require_right(actor, incident.group_id, Right.OPERATE, missing=MISSING)
    if incident.state == IncidentState.OPEN:
        incident.state = IncidentState.ACKNOWLEDGED.value
        incident.acknowledged_by, incident.acknowledged_ms = actor.username, now_ms
        audit.record(
            session,
            "incident.acknowledge",
            actor=actor,
            now_ms=now_ms,
            target=("job", incident.job_id),
            changes={"incident": incident.id},
        )
    return incident


def visible_incident(session: Session, incident_id: int, actor: Actor) -> Incident:
    """Return an incident that the actor may see; raises NotFound."""
    incident = incidents.find_incident(session, incident_id)
    if incident is None or not actor.may(incident.group_id, Right.VIEW):
        raise NotFound(MISSING)
    return incident
