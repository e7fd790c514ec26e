"""Rows of promises and incidents, for the tests of their pages."""

import json
from typing import Any

from app.clock import HOUR_MS, MINUTE_MS, Millis, now_ms
from app.domain.enums import AlarmState, IncidentState, MessageStep
from app.models.promise import Incident, IncidentMessage, JobPromise
from tests.support.factories import save

STARTS = {"kind": "starts_within", "s": 60}


def make_promise(job_id: int, definition: dict[str, Any] | None = None, **values: Any) -> JobPromise:
    """Commit a promise that holds for a job, kept last."""
    given = definition or STARTS
    row = {"number": 1, "since_ms": now_ms() - HOUR_MS, "planned_until_ms": now_ms(), "kept_ms": 1}
    return save(
        JobPromise(
            job_id=job_id,
            kind=given["kind"],
            definition=json.dumps(given, separators=(",", ":")),
            **(row | values),
        )
    )


def make_incident(
    job_id: int, group_id: int, definition: dict[str, Any] | None = None, **values: Any
) -> Incident:
    """Commit an open incident of an instant five minutes ago."""
    at_ms: Millis = values.pop("logical_ms", now_ms() - 5 * MINUTE_MS)
    row = {
        "incident_key": f"i:{job_id}:{at_ms}",
        "state": IncidentState.OPEN.value,
        "logical_ms": at_ms,
        "opened_ms": at_ms + MINUTE_MS,
        "kinds": json.dumps({"1": definition or STARTS}),
    }
    return save(Incident(job_id=job_id, group_id=group_id, **(row | values)))


def make_message(incident: Incident, step: MessageStep, state: AlarmState, **values: Any) -> IncidentMessage:
    """Commit a message about an incident."""
    row = {"created_ms": incident.opened_ms, "next_ms": incident.opened_ms}
    return save(
        IncidentMessage(
            incident_id=incident.id,
            job_id=incident.job_id,
            step=step.value,
            state=state.value,
            **(row | values),
        )
    )
