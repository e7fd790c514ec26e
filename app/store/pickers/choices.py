"""Picker search: the first jobs, groups or users that match a text.

An exact id comes first; the others follow newest first (jobs) or by name.
"""

from collections.abc import Collection

from sqlalchemy import ColumnElement, case, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.database.rows import bulk
from app.models.group import Group
from app.models.job import Job
from app.models.user import User
from app.store.base.paging import contains, to_id
from app.store.pickers.overview import GroupIds, in_groups


def search_jobs(
    session: Session, text: str, *, group_ids: GroupIds, group_id: int = 0, skip_id: int = 0, limit: int
) -> list[tuple[int, int, str]]:
    """Return id, group and description of matching jobs of these groups (None: all).

    The text is matched against id, description and handler.
    """
    query = select(Job.id, Job.job_group, Job.job_desc).where(
        Job.id != skip_id, *in_groups(Job.job_group, group_ids)
    )
    if group_id:
        query = query.where(Job.job_group == group_id)
    if text:
        query = query.where(_matches(text, Job.id, Job.job_desc, Job.executor_handler)).order_by(
            _exact_first(text, Job.id)
        )
    return [
        (row[0], row[1], row[2])
        for row in bulk.read_rows(session, query.order_by(Job.id.desc()).limit(limit))
    ]


def find_job_texts(session: Session, job_ids: Collection[int], *, group_ids: GroupIds) -> dict[int, str]:
    """Return id -> description of the jobs that are in these groups (None: in any)."""
    query = select(Job.id, Job.job_desc).where(
        Job.id.in_(list(job_ids)), *in_groups(Job.job_group, group_ids)
    )
    return {row[0]: row[1] for row in bulk.read_rows(session, query)}


def newest_handlers(session: Session, group_id: int, *, limit: int) -> list[str]:
    """Return the handlers of the newest jobs of a group, one for each job that has one."""
    query = select(Job.executor_handler).where(Job.job_group == group_id).order_by(Job.id.desc()).limit(limit)
    return [row[0] for row in bulk.read_rows(session, query) if row[0]]


def search_groups(
    session: Session, text: str, *, group_ids: GroupIds, limit: int
) -> list[tuple[int, str, str]]:
    """Return id, title and appname of matching groups among these (None: all).

    The text is matched against id, title and appname.
    """
    query = select(Group.id, Group.title, Group.app_name).where(*in_groups(Group.id, group_ids))
    if text:
        query = query.where(_matches(text, Group.id, Group.title, Group.app_name)).order_by(
            _exact_first(text, Group.id)
        )
    rows = bulk.read_rows(
        session, query.order_by(func.lower(Group.title), Group.app_name, Group.id).limit(limit)
    )
    return [(row[0], row[1], row[2]) for row in rows]


def search_users(session: Session, text: str, *, limit: int) -> list[str]:
    """Return matching user names."""
    query = select(User.username).order_by(User.username, User.id).limit(limit)
    if text:
        query = query.where(contains(User.username, text))
    return [row[0] for row in bulk.read_rows(session, query)]


def _matches(
    text: str, id_column: InstrumentedAttribute[int], *columns: InstrumentedAttribute[str | None]
) -> ColumnElement[bool]:
    return or_(id_column == to_id(text), *(contains(column, text) for column in columns))


def _exact_first(text: str, id_column: InstrumentedAttribute[int]) -> ColumnElement[int]:
    return case((id_column == to_id(text), 0), else_=1)
