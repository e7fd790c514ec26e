"""Import findings: what an import does with each job of the file, and the fields it changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.domain.enums import (
    BlockStrategy,
    Delivery,
    GlueType,
    MisfireStrategy,
    RouteStrategy,
    ScheduleType,
)
from app.domain.jobs.children import child_ids_text, parse_child_ids
from app.domain.jobs.tags import FIELD as TAGS
from app.domain.jobs.tags import tags_text
from app.models.job import Job
from app.services.jobs.rules import JobDraft
from app.services.jobs.transfer.job_file import CHILDREN, NUMBERS, TEXTS, TIMES, write_time

#: field -> values it can have
OPTIONS: dict[str, type[StrEnum]] = {
    "scheduleType": ScheduleType,
    "misfireStrategy": MisfireStrategy,
    "executorRouteStrategy": RouteStrategy,
    "executorBlockStrategy": BlockStrategy,
    "delivery": Delivery,
    "glueType": GlueType,
}
#: attribute that a file can change -> its name in the file
NAMES = {attribute: name for name, attribute in (TEXTS | TIMES | NUMBERS).items()}


class Kind(StrEnum):
    """What an import does with a job."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Change:
    """A field before and after; of sources only their lengths."""

    field: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding about a job of the file."""

    #: position in the file, from 1
    number: int
    app_name: str
    name: str
    kind: Kind
    #: id of the stored job; 0: none
    job_id: int = 0
    changes: tuple[Change, ...] = ()
    #: of an error: the field, the problem, and the possible values
    field: str = ""
    problem: str = ""
    options: tuple[str, ...] = ()
    #: field and problem of further errors
    more: tuple[tuple[str, str], ...] = ()


def draft_of(job: Job) -> JobDraft:
    """Return a stored job as a draft, without its source and tags."""
    values: dict[str, Any] = {attribute: getattr(job, attribute) or "" for attribute in TEXTS.values()}
    values |= {attribute: getattr(job, attribute) for attribute in (*NUMBERS.values(), *TIMES.values())}
    return JobDraft(job_group=job.job_group, child_jobid=child_ids_text(job.child_ids), **values)


def differences(before: JobDraft, after: JobDraft, new_jobs: Mapping[int, int]) -> list[Change]:
    """Return the fields that differ.

    ``new_jobs`` is provisional id -> id in the file, for child jobs that have no id yet.
    """
    changes = []
    for attribute, name in NAMES.items():
        old, new = getattr(before, attribute), getattr(after, attribute)
        if old != new:
            old, new = (write_time(old), write_time(new)) if name in TIMES else (str(old), str(new))
            changes.append(Change(name, old, new))
    if before.child_jobid != after.child_jobid:
        children = [
            f"*{new_jobs[child]}" if child in new_jobs else str(child)
            for child in parse_child_ids(after.child_jobid)
        ]
        changes.append(Change(CHILDREN, before.child_jobid, ",".join(children)))
    if before.tags != after.tags:
        changes.append(Change(TAGS, tags_text(before.tags or ()), tags_text(after.tags or ())))
    return changes
