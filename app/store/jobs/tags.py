"""Statements on `xxl_job_tag`: tags of jobs."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import ColumnElement, delete, false, select
from sqlalchemy.orm import Session

from app.database.engine import affected
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.text.texts import fold
from app.models.job import Job
from app.models.tag import JobTag
from app.store.base.paging import contains, is_storable

_OF_JOBS = select(JobTag.job_id, JobTag.tag, JobTag.tag_key).where(among(JobTag.job_id))


def find_tags(session: Session, job_ids: Collection[int]) -> dict[int, tuple[str, ...]]:
    """Return job id -> tags by name, for the jobs that have any; one query."""
    names: dict[int, list[str]] = {}
    rows = bulk.read_among(session, _OF_JOBS, list(job_ids))
    for job_id, tag, _key in sorted(rows, key=lambda row: (row[0], row[2])):
        names.setdefault(job_id, []).append(tag)
    return {job_id: tuple(tags) for job_id, tags in names.items()}


def replace_tags(session: Session, tags: Mapping[int, Sequence[str]]) -> None:
    """Replace the tags of each of the jobs, whose rows the caller has locked."""
    if not tags:
        return
    affected(session, delete(JobTag).where(JobTag.job_id.in_(list(tags))))
    rows = [
        {"job_id": job_id, "tag": tag, "tag_key": fold(tag)}
        for job_id, names in tags.items()
        for tag in names
    ]
    bulk.insert_many(session, JobTag, rows)


def has_tag(tag: str) -> ColumnElement[bool]:
    """Return the condition for jobs with a tag, ignoring case; a text that cannot be stored matches none."""
    key = fold(tag)
    return Job.id.in_(select(JobTag.job_id).where(JobTag.tag_key == key)) if is_storable(key) else false()


def has_tag_with(text: str) -> ColumnElement[bool]:
    """Return the condition for jobs with a tag that contains a text, ignoring case."""
    return Job.id.in_(select(JobTag.job_id).where(contains(JobTag.tag_key, fold(text))))
