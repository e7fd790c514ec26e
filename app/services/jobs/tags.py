"""Tags of a job. Callers hold the lock of the job's row; changes are audited like any other field."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.domain.jobs.tags import FIELD, check_tag, check_tags
from app.domain.text.texts import fold
from app.store.jobs import tags as job_tags


def tags_of(session: Session, job_id: int) -> tuple[str, ...]:
    """Return the tags of a job, sorted by name."""
    return job_tags.find_tags(session, [job_id]).get(job_id, ())


def set_tags(session: Session, job_id: int, tags: Sequence[str] | None) -> dict[str, Any]:
    """Replace the tags of a job (None: leave them) and return the audited change. Raises InvalidInput."""
    if tags is None:
        return {}
    before, after = tags_of(session, job_id), check_tags(tags)
    if before == after:
        return {}
    job_tags.replace_tags(session, {job_id: after})
    return {FIELD: [list(before), list(after)]}


def with_tag(session: Session, job_id: int, tag: str, *, is_present: bool) -> list[str]:
    """Return the tags of a job with this tag added (``is_present``) or removed; raises InvalidInput."""
    tag, tags = check_tag(tag), tags_of(session, job_id)
    other_tags = [name for name in tags if fold(name) != fold(tag)]
    if not is_present:
        return other_tags
    return list(tags) if len(other_tags) < len(tags) else [*tags, tag]
