"""Incidents and promises as the API lists them, of the groups that a user may view."""

import json
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.enums import PromiseState
from app.domain.jobs.fields import FIELD_OF
from app.domain.jobs.structures import read_structure
from app.domain.promises.promise import effective_promises, read_promises
from app.models.promise import Incident
from app.services.executors import groups
from app.services.jobs import job_list
from app.services.promises.lists import SHOWN, Verdicts, verdicts_of
from app.store.promises import listing, promises
from app.store.promises.listing import IncidentFilter, PromiseFilter, PromiseRow


def list_before(
    session: Session, criteria: IncidentFilter, *, actor: Actor, before_id: int | None, limit: int
) -> list[Incident]:
    """Return the newest incidents with an id below ``before_id`` (None: of all).

    Raises NotFound for a job or group that the actor may not see.
    """
    if criteria.job_id is not None:
        job_list.get_job(session, criteria.job_id, actor=actor, right=Right.VIEW)
    if criteria.group_id is not None:
        groups.get_group(session, criteria.group_id, actor=actor, right=Right.VIEW)
    visible = actor.group_ids(Right.VIEW)
    return listing.find_before(session, criteria, visible, before_id=before_id, limit=limit)


class PromiseRecord(NamedTuple):
    """A promise that holds for a job, and how often it was kept in the last 30 days."""

    #: as the job or its group has it
    promise: dict[str, Any]
    #: ``job`` or ``group``
    source: str
    #: PromiseState
    state: str
    kept: int = 0
    broken: int = 0
    excused: int = 0


def promises_of(session: Session, job_id: int, *, actor: Actor) -> list[PromiseRecord]:
    """Return the promises that hold for a job; raises NotFound for a job that the actor may not see."""
    job_list.get_job(session, job_id, actor=actor, right=Right.VIEW)
    job = promises.find_promising(session, [job_id]).get(job_id)
    if job is None:
        return []
    rows = listing.list_promises(session, PromiseFilter(job_id=job_id), None, start=0, length=SHOWN)
    row_by_definition = {row.definition: row for row in rows}
    own, of_group = (
        json.dumps(read_structure(FIELD_OF["promises"], text)) for text in (job.own, job.of_group)
    )
    return [
        PromiseRecord(
            promise.members,
            "job" if promise in read_promises(own) else "group",
            *_state_and_verdicts(row_by_definition.get(promise.definition)),
        )
        for promise in effective_promises(own, of_group, job.schedule_type)
    ]


def _state_and_verdicts(row: PromiseRow | None) -> tuple[str, int, int, int]:
    if row is None:  # It is not planned yet.
        return PromiseState.NEW.value, *Verdicts()
    return row.state, *verdicts_of([row.days])
