"""Ownership of jobs' fields: which of them code owns, and which of these were changed elsewhere."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.code.document import ALARM_CHANNELS, CODE, ENABLED
from app.domain.code.drift import drift_of
from app.domain.jobs.members import CHILDREN, MEMBER_OF
from app.domain.lists.job_search import CodeState
from app.domain.rounds.runs_after import RUNS_AFTER, predecessors_of
from app.models.job import Job
from app.services.code.state import State
from app.store.alarms import channels
from app.store.jobs import listing as job_lists
from app.store.jobs import tags as job_tags
from app.store.jobs.managed_objects import JOB, find_managed, find_of_objects, list_changed_last

#: most jobs that are searched for differences from their code, in some 20 ms
SEARCHED_MAX = 200
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
    entry = find_managed(session, JOB, job.id)
    if entry is None:
        return None
    state = _read_state(session, [job], entry.fields)
    drift = drift_of(entry.fields, state.job_values(job))
    return Ownership(
        entry.key,
        entry.source,
        entry.applied_ms,
        tuple(name for name in _ORDER if name in entry.fields),
        {name: drift[name] for name in _ORDER if name in drift},
    )


def code_states(session: Session, job_ids: Collection[int]) -> dict[int, CodeState]:
    """Return the states of those of the jobs that are managed as code, by id; at most six statements."""
    owners = find_of_objects(session, JOB, job_ids)
    if not owners:
        return {}
    jobs = [Job(**columns) for columns in job_lists.read_definitions(session, list(owners), lock=False)]
    names = {name for owner in owners.values() for name in owner.fields}
    state = _read_state(session, jobs, names)
    return {
        job.id: CodeState.DRIFTED
        if drift_of(owners[job.id].fields, state.job_values(job))
        else CodeState.MANAGED
        for job in jobs
    }


def newest_states(session: Session) -> dict[int, CodeState]:
    """Return the states of the SEARCHED_MAX jobs managed as code that were changed last, by id."""
    return code_states(session, list_changed_last(session, limit=SEARCHED_MAX))


def drifted_ids(states: Mapping[int, CodeState]) -> frozenset[int]:
    """Return the jobs that differ from their code."""
    return frozenset(job_id for job_id, state in states.items() if state is CodeState.DRIFTED)


def _read_state(session: Session, jobs: Sequence[Job], names: Collection[str]) -> State:
    """Return what the present values of jobs depend on, of the members that code owns."""
    job_ids = [job.id for job in jobs]
    named_ids = {child_id for job in jobs for child_id in job.child_ids} if CHILDREN in names else set()
    if RUNS_AFTER in names:
        named_ids |= {predecessor_id for job in jobs for predecessor_id in predecessors_of(job.runs_after)}
    groups_of = job_lists.find_groups_of(session, named_ids) if named_ids else {}
    rows = channels.find_for(session, group_ids=(), job_ids=job_ids) if ALARM_CHANNELS in names else []
    return State(
        groups={},
        links={job_id: (group_id, ()) for job_id, group_id in groups_of.items()},
        tags=job_tags.find_tags(session, job_ids),
        channels={channel.channel.id: channel for channel in rows},
    )
