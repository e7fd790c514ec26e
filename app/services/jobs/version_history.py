"""Version history of a job: versions with their changes, and restoring one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.domain.access.permissions import Actor, Right
from app.domain.code.change_sources import RESTORE, source_text
from app.domain.jobs.members import MEMBER_OF, draft_values, read_members
from app.domain.text.texts import N_
from app.errors import NotFound
from app.models.code import JobVersion
from app.models.job import Job
from app.services.jobs import jobs, versions
from app.services.jobs.rules import JobDraft
from app.services.jobs.tags import tags_of
from app.store.jobs import versions as store

MISSING = N_("The job has no such version")

#: member -> (old, new)
Changes = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """Version of a job; ``fields`` have their names and JSON values in the API."""

    number: int
    at_ms: Millis
    #: empty: not known
    username: str
    #: empty: the console, or not known
    source: str
    fields: Mapping[str, Any]
    #: from the version before; None where that is not kept, or not visible
    changes: Changes | None

    @property
    def is_outside(self) -> bool:
        """Whether another program on the same database made the change."""
        return self.source == versions.OUTSIDE and not self.username


def list_versions(
    session: Session, job_id: int, *, actor: Actor, limit: int, before: int | None = None
) -> tuple[list[KeptVersion], bool]:
    """Return the newest versions, below number ``before`` if given, and whether there are older ones.

    Versions from before the job was moved out of a group that the actor cannot see are left out.
    """
    job = jobs.get_job(session, job_id, actor=actor)
    rows = store.list_newest(session, job_id, limit=limit + 1, before=before)
    first = _first_visible(session, job, actor)
    pairs = [(row, json.loads(row.fields)) for row in rows if row.number >= first]
    earlier = [fields for _row, fields in pairs[1:]]
    history = [_kept_version(row, fields, prior) for (row, fields), prior in zip_longest(pairs, earlier)]
    return history[:limit], len(history) > limit


def get_version(session: Session, job_id: int, number: int, *, actor: Actor) -> KeptVersion:
    """Return a version; raises NotFound if there is none that the actor may see."""
    history, _more = list_versions(session, job_id, actor=actor, limit=1, before=number + 1)
    if not history or history[0].number != number:
        raise NotFound(MISSING)
    return history[0]


def present_fields(session: Session, job: Job) -> dict[str, Any]:
    """Return the fields that the job has now."""
    return read_members(job, tags_of(session, job.id))


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the fields of ``new`` that differ, in the order of the members, as name -> (old, new)."""
    names = [name for name in MEMBER_OF if name in new]
    return {name: (old.get(name), new[name]) for name in names if old.get(name) != new[name]}


def restore_version(
    session: Session, job_id: int, number: int, *, actor: Actor, clock: Clock, readable_by_java: bool = False
) -> None:
    """Give the job the fields of a version, as a new one, with all checks of an edit; raises InvalidInput.

    ``readable_by_java``: refuse a schedule that a Java admin on the same database cannot read.
    """
    job = jobs.get_job(session, job_id, actor=actor, right=Right.EDIT)
    version = get_version(session, job_id, number, actor=actor)
    old_members = {name: value for name, value in version.fields.items() if name in MEMBER_OF}
    members = present_fields(session, job) | old_members
    draft = JobDraft(**draft_values(members), readable_by_java=readable_by_java)
    sources = (source_text(RESTORE, number), versions.source_of(actor))
    with versions.changes_from(", ".join(filter(None, sources))):
        jobs.update_job(session, job_id, draft, actor=actor, clock=clock)


def _kept_version(row: JobVersion, fields: Mapping[str, Any], prior: Mapping[str, Any] | None) -> KeptVersion:
    changes = difference(prior, fields) if prior is not None else None
    return KeptVersion(row.number, row.at_ms, row.username, row.source, fields, changes)


def _first_visible(session: Session, job: Job, actor: Actor) -> int:
    """Return the number of the first version since the job was in a group that the actor cannot see."""
    if actor.is_admin:
        return 0
    for number, fields in store.list_elsewhere(session, job.id, job.job_group):
        if not actor.may(json.loads(fields).get("group_id", 0), Right.VIEW):
            return number + 1
    return 0
