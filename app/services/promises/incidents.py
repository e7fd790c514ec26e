"""Incidents: broken promises, until they are kept again. Each is reported once.

docs/reference/promises.md, section 4.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, Millis
from app.database.rows import bulk
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.enums import AlarmState, IncidentState, MessageStep, PromiseKind
from app.domain.promises.incidents import Subject, broken_promises, subject_of
from app.domain.promises.judgement import has_succeeded
from app.domain.promises.promise import INSTANT_KINDS, RUNNING_KINDS, SWITCH_OFF, promise_of, read_kinds
from app.domain.text.texts import N_
from app.errors import NotFound
from app.models.promise import Incident
from app.services.auditing import audit
from app.store.promises import evidence, incidents, promises
from app.store.promises.promises import EscalatingJob

MISSING = N_("incident does not exist")
#: highest id that the column can have
ID_MAX = 2**63 - 1
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
    incident_by_key = incidents.find_by_keys(session, {breach.key for breach in breaches})
    by_key = defaultdict[str, list[Breach]](list)
    for breach in breaches:
        former = incident_by_key.get(breach.key)
        if former is not None and (
            former.state not in incidents.LIVE or breach.number in broken_promises(former.kinds)
        ):
            continue
        by_key[breach.key].append(breach)
    if not by_key:
        return
    jobs = promises.find_escalating(session, {of_key[0].job_id for of_key in by_key.values()})
    # Nodes that insert the same keys do so in the same order. The job of a key may have been deleted.
    new = [key for key in sorted(by_key) if key not in incident_by_key and by_key[key][0].job_id in jobs]
    incidents.insert_incidents(session, [_row(by_key[key], jobs, now_ms) for key in new])
    live = [row for row in incidents.lock_by_keys(session, by_key) if row.state in incidents.LIVE]
    for incident in live:
        kinds = read_kinds(incident.kinds)
        if not (broken := _kinds(by_key[incident.incident_key])).items() <= kinds.items():
            incident.kinds = json.dumps(kinds | broken)
    session.flush()
    new_breaches = {key: by_key[key] for key in new}
    _queue_openings(
        session, [row for row in live if row.incident_key in new_breaches], new_breaches, jobs, now_ms
    )


def _kinds(of_key: Sequence[Breach]) -> dict[str, Any]:
    return {str(breach.number): json.loads(breach.definition) for breach in of_key}


def _row(of_key: Sequence[Breach], jobs: Mapping[int, EscalatingJob], now_ms: Millis) -> bulk.Row:
    breach = of_key[0]
    return {
        "incident_key": breach.key,
        "job_id": breach.job_id,
        "group_id": jobs[breach.job_id].group_id,
        "state": IncidentState.OPEN.value,
        "logical_ms": breach.logical_ms,
        "opened_ms": now_ms,
        "kinds": json.dumps(_kinds(of_key)),
        "log_id": breach.log_ids[-1] if breach.log_ids else 0,
    }


def _queue_openings(
    session: Session,
    new_incidents: Sequence[Incident],
    by_key: Mapping[str, Sequence[Breach]],
    jobs: Mapping[int, EscalatingJob],
    now_ms: Millis,
) -> None:
    """Queue the messages about new incidents; another node that has opened one has queued them, too."""
    log_ids = {log_id for of_key in by_key.values() for breach in of_key for log_id in breach.log_ids}
    reported_ids = incidents.find_reported(session, log_ids)
    rows = list[bulk.Row]()
    for incident in new_incidents:
        is_silent = _is_reported(by_key[incident.incident_key], reported_ids)
        state = AlarmState.SILENT if is_silent else AlarmState.PENDING
        outcome = json.dumps({"": REPORTED_AS_FAILURE}) if is_silent else None
        rows.append(_message(incident, MessageStep.OPENED, now_ms, now_ms, state) | {"outcome": outcome})
        if (escalation := jobs[incident.job_id].escalation) is not None:
            later_ms = now_ms + escalation.after_minutes * MINUTE_MS
            rows.append(
                _message(incident, MessageStep.ESCALATED, now_ms, later_ms, AlarmState.PENDING)
                | {"outcome": None}
            )
    incidents.insert_messages(session, rows)


def _is_reported(of_key: Sequence[Breach], reported_ids: Collection[int]) -> bool:
    """Whether the failure of a run is reported already, and the incident says no more than that."""
    has_failed = any(log_id in reported_ids for breach in of_key for log_id in breach.log_ids)
    return has_failed and not any(map(_is_news, of_key))


def _is_news(breach: Breach) -> bool:
    """Whether an incident says more than that its run has failed: a series does, or its consequence."""
    promise = promise_of(json.loads(breach.definition))
    return promise.kind is PromiseKind.FAILS_AT_MOST and (promise.n > 0 or promise.then == SWITCH_OFF)


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
    withdrawn, kept_again = set[int](), set[int]()
    for incident in live:
        keys = [(incident.job_id, number) for number in broken_promises(incident.kinds)]
        times = [last_kept[key] for key in keys if key in last_kept]
        if not times:
            withdrawn.add(incident.id)
        elif incident.id in with_late_success or min(times) > incident.logical_ms:
            kept_again.add(incident.id)
    _end(session, withdrawn, IncidentState.WITHDRAWN, now_ms)
    _end(session, kept_again, IncidentState.KEPT_AGAIN, now_ms)
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


def _end(session: Session, incident_ids: Collection[int], state: IncidentState, now_ms: Millis) -> None:
    if not incident_ids:
        return
    live = [row for row in incidents.lock_incidents(session, incident_ids) if row.state in incidents.LIVE]
    for incident in live:
        incident.state, incident.ended_ms = state.value, now_ms
    session.flush()
    if state is IncidentState.KEPT_AGAIN:
        step, waiting = MessageStep.KEPT_AGAIN, AlarmState.PENDING
        incidents.insert_messages(session, [_message(row, step, now_ms, now_ms, waiting) for row in live])


def acknowledge(session: Session, incident_id: int, *, actor: Actor, now_ms: Millis) -> Incident:
    """Acknowledge an incident: it is not escalated. Once it has ended this changes nothing.

    Raises NotFound, or PermissionDenied without the right to operate its job.
    """
    incident = incidents.lock_incident(session, incident_id) if incident_id <= ID_MAX else None
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
    incident = incidents.find_incident(session, incident_id) if incident_id <= ID_MAX else None
    if incident is None or not actor.may(incident.group_id, Right.VIEW):
        raise NotFound(MISSING)
    return incident
