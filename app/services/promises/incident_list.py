"""Incident list: incidents of the groups that a user may view, and the promises of a job."""

import json
from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right
from app.domain.jobs.fields import FIELD_OF
from app.domain.jobs.structures import read_structure
from app.domain.promises.judgement import read_days
from app.domain.promises.promise import effective, promise_of, read_kinds, read_promises
from app.models.promise import Incident, JobPromise
from app.services.executors import groups
from app.services.jobs import jobs
from app.store.promises import incidents, promises


def list_before(
    session: Session,
    *,
    actor: Actor,
    states: Collection[str] = (),
    job_id: int | None = None,
    group_id: int | None = None,
    before_id: int | None,
    limit: int,
) -> list[Incident]:
    """Return the newest incidents with an id below ``before_id`` (None: of all).

    Raises NotFound for a job or group that the actor may not see.
    """
    visible = actor.group_ids(Right.VIEW)
    if job_id is not None:
        jobs.get_job(session, job_id, actor=actor, right=Right.VIEW)
    if group_id is not None:
        groups.get_group(session, group_id, actor=actor, right=Right.VIEW)
        visible = frozenset({group_id})
    return incidents.list_incidents(
        session, group_ids=visible, states=states, job_id=job_id, before_id=before_id, limit=limit
    )


def broken_promises(incident: Incident) -> list[dict[str, Any]]:
    """Return the promises that an incident is about, as jobs have them."""
    return [promise_of(members).members for members in read_kinds(incident.kinds).values()]


class PromiseRecord(NamedTuple):
    """A promise that holds for a job, and how often it was kept in the last 30 days."""

    #: as the job or its group has it
    promise: dict[str, Any]
    #: ``job`` or ``group``
    source: str
    #: ``new``, ``kept`` or ``broken``
    state: str
    kept: int = 0
    broken: int = 0
    excused: int = 0


def promises_of(session: Session, job_id: int, *, actor: Actor) -> list[PromiseRecord]:
    """Return the promises that hold for a job; raises NotFound for a job that the actor may not see."""
    jobs.get_job(session, job_id, actor=actor, right=Right.VIEW)
    job = promises.find_promising(session, [job_id]).get(job_id)
    if job is None:
        return []
    rows = promises.list_promises(session, group_ids=None, job_id=job_id)
    stored = {row.promise.definition: row.promise for row in rows}
    own, of_group = (
        json.dumps(read_structure(FIELD_OF["promises"], text)) for text in (job.own, job.of_group)
    )
    return [
        PromiseRecord(
            promise.members,
            "job" if promise in read_promises(own) else "group",
            *_numbers(stored.get(promise.definition)),
        )
        for promise in effective(own, of_group, job.schedule_type)
    ]


def _numbers(row: JobPromise | None) -> tuple[str, int, int, int]:
    if row is None:  # It was given a moment ago.
        return "new", 0, 0, 0
    days = read_days(row.days).values()
    kept, broken, excused = (sum(day[verdict] for day in days) for verdict in range(3))
    return promises.state_of(row.kept_ms, row.broken_ms), kept, broken, excused
