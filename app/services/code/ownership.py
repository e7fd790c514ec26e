"""Ownership of a job's fields: which of them code owns, and which of these were changed elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.code.document import ALARM_CHANNELS, CODE, ENABLED
from app.domain.code.drift import drifted
from app.domain.jobs.members import CHILDREN, MEMBER_OF
from app.models.job import Job
from app.services.code.state import State
from app.store.alarms import channels
from app.store.jobs import listing as job_lists
from app.store.jobs import tags as job_tags
from app.store.jobs.managed import JOB, find_managed

#: members of a job in a document, in the order of the form
_ORDER = (*MEMBER_OF, ENABLED, ALARM_CHANNELS, CODE)


@dataclass(frozen=True, slots=True)
class Ownership:
    """What code owns of a job."""

    key: str
    #: folder and commit of the last apply, as it named them
    source: str
    applied_ms: Millis
    #: the owned members
    members: tuple[str, ...]
    #: those that differ now, as member -> (in code, now)
    drift: Mapping[str, tuple[Any, Any]]


def ownership_of(session: Session, job: Job) -> Ownership | None:
    """Return what code owns of a job; None if the job is not managed as code."""
    managed = find_managed(session, JOB, job.id)
    if managed is None:
        return None
    drift = drifted(managed.fields, _read_state(session, job, managed.fields).job_values(job))
    return Ownership(
        managed.key,
        managed.source,
        managed.applied_ms,
        tuple(name for name in _ORDER if name in managed.fields),
        {name: drift[name] for name in _ORDER if name in drift},
    )


def _read_state(session: Session, job: Job, fields: Mapping[str, Any]) -> State:
    """Return what the present values of the owned ``fields`` depend on."""
    children = job_lists.find_groups_of(session, job.child_ids) if CHILDREN in fields else {}
    rows = channels.find_for(session, group_ids=(), job_ids=[job.id]) if ALARM_CHANNELS in fields else []
    return State(
        groups={},
        links={child_id: (group_id, ()) for child_id, group_id in children.items()},
        tags=job_tags.find_tags(session, [job.id]),
        channels={channel.channel.id: channel for channel in rows},
    )
