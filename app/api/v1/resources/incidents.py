"""API: promises of jobs, and incidents: their broken promises."""

from typing import Any

from app.api.v1.cursors import BIG_ID, cut, read_id_cursor
from app.api.v1.endpoint import Call, Resource
from app.api.v1.schemas.alarms import TargetOut
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.incidents import (
    IncidentDetails,
    IncidentMessageOut,
    IncidentOut,
    IncidentQuery,
    JobPromises,
    MessageStateName,
    PromiseOut,
)
from app.domain.access.permissions import Right
from app.domain.enums import AlarmState, IncidentState
from app.domain.promises.incidents import broken_promises
from app.models.promise import Incident, IncidentMessage
from app.services.alarms import alarm_list
from app.services.alarms.channels import OK
from app.services.promises import incident_list, incidents
from app.store.promises import incidents as incident_store
from app.store.promises.listing import IncidentFilter

resource = Resource("incidents", "Promises of jobs, and incidents: promises that were broken.")
_STATES: dict[str, MessageStateName] = {
    AlarmState.PENDING: "waiting",
    AlarmState.SENDING: "sending",
    AlarmState.SENT: "sent",
    AlarmState.FAILED: "undelivered",
    AlarmState.PARTLY: "partly_delivered",
}


@resource.get("/incidents", answer=Listed[IncidentOut], query=IncidentQuery)
def list_incidents(call: Call) -> Listed[IncidentOut]:
    """List the incidents, newest first."""
    query: IncidentQuery = call.query
    states = [] if query.state is None else [IncidentState(query.state)]
    rows = incident_list.list_before(
        call.session,
        IncidentFilter(states, query.job_id, query.group_id),
        actor=call.actor,
        before_id=read_id_cursor(query.cursor, BIG_ID),
        limit=query.limit + 1,
    )
    page, next_cursor = cut(rows, query.limit, lambda row: (row.id,))
    return Listed[IncidentOut](items=[IncidentOut(**_members(row)) for row in page], next_cursor=next_cursor)


@resource.get("/incidents/<int:incident_id>", answer=IncidentDetails)
def get_incident(call: Call, incident_id: int) -> IncidentDetails:
    """Return an incident with its messages."""
    return _details(call, incidents.visible_incident(call.session, incident_id, call.actor))


@resource.post("/incidents/<int:incident_id>/acknowledge", answer=IncidentDetails, right=Right.OPERATE)
def acknowledge_incident(call: Call, incident_id: int) -> IncidentDetails:
    """Acknowledge an incident: it is not escalated. One that is acknowledged or has ended stays as it is."""
    incident = incidents.acknowledge(call.session, incident_id, actor=call.actor, now_ms=call.now_ms)
    return _details(call, incident)


@resource.get("/jobs/<int:job_id>/promises", answer=JobPromises)
def list_promises(call: Call, job_id: int) -> JobPromises:
    """Return the promises that hold for a job, and how often each was kept in the last 30 days."""
    rows = incident_list.promises_of(call.session, job_id, actor=call.actor)
    return JobPromises(job_id=job_id, items=[PromiseOut(**row._asdict()) for row in rows])


def _details(call: Call, incident: Incident) -> IncidentDetails:
    messages = incident_store.messages_of(call.session, [incident.id])
    return IncidentDetails(**_members(incident), messages=[_message(row) for row in messages])


def _members(incident: Incident) -> dict[str, Any]:
    return {
        "id": incident.id,
        "job_id": incident.job_id,
        "group_id": incident.group_id,
        "state": incident.state,
        "key": incident.incident_key,
        "logical_time": incident.logical_ms,
        "opened_at": incident.opened_ms,
        "ended_at": incident.ended_ms or None,
        "acknowledged_by": incident.acknowledged_by or None,
        "acknowledged_at": incident.acknowledged_ms or None,
        "promises": [promise.members for promise in broken_promises(incident.kinds).values()],
        "run_id": str(incident.log_id) if incident.log_id else None,
    }


def _message(message: IncidentMessage) -> IncidentMessageOut:
    return IncidentMessageOut(
        step=message.step,  # type: ignore[arg-type]
        state=_STATES.get(message.state, "not_sent"),
        at=message.next_ms,
        targets=[
            TargetOut(target=target, problem=None if result == OK else result)
            for target, result in alarm_list.results_of(message)
            if target
        ],
    )
