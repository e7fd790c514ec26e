"""Statements on `xxl_job_blackout` and `xxl_job_blackout_job`: blackouts, and jobs with their tags."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, func, or_, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.calendars.blackouts import Blackout
from app.domain.text.texts import fold
from app.models.calendar import BlackoutJob, JobBlackout
from app.models.group import Group
from app.models.job import Job
from app.models.tag import JobTag
from app.store.calendars.rules import BLACKOUT, blackout_of
from app.store.pickers.overview import GroupIds


class ListedBlackout(NamedTuple):
    """A blackout with who made it, and the name of its group or job."""

    blackout: Blackout
    author: str
    created_ms: Millis
    #: when a user ended it; None: it was not ended
    ended_ms: Millis | None
    #: title of its group, or name of its job; None: it is of neither, or they are gone
    name: str | None
    #: its group, or that of its job; None as well
    scope_group_id: int | None

    @property
    def id(self) -> int:
        """Id of the blackout."""
        return self.blackout.id


_LISTED = (
    select(
        *BLACKOUT,
        JobBlackout.author,
        JobBlackout.created_ms,
        JobBlackout.ended_ms,
        func.coalesce(Group.title, Job.job_desc),
        func.coalesce(JobBlackout.group_id, Job.job_group),
    )
    .outerjoin(Job, Job.id == JobBlackout.job_id)
    .outerjoin(Group, Group.id == JobBlackout.group_id)
)
_OF_ALL = and_(JobBlackout.group_id.is_(None), JobBlackout.job_id.is_(None))


def find_blackout(session: Session, blackout_id: int) -> ListedBlackout | None:
    """Return a blackout."""
    return next(iter(_rows(session, _LISTED.where(JobBlackout.id == blackout_id))), None)


def list_lasting(session: Session, group_ids: GroupIds, *, now_ms: Millis) -> list[ListedBlackout]:
    """Return those of these groups, their jobs, and of all that are not over, the newest first."""
    query = _LISTED.where(is_lasting(now_ms), *_visible(group_ids))
    return _rows(session, query.order_by(JobBlackout.id.desc()))


def list_newest(
    session: Session, group_ids: GroupIds, *, over_at_ms: Millis | None, before_id: int, limit: int
) -> list[ListedBlackout]:
    """Return the newest, with ids below ``before_id`` (0: all).

    ``over_at_ms``: only those that are over then; None: all.
    """
    query = _LISTED.where(*_visible(group_ids))
    if over_at_ms is not None:
        query = query.where(or_(JobBlackout.until_ms <= over_at_ms, JobBlackout.ended_ms.is_not(None)))
    if before_id:
        query = query.where(JobBlackout.id < before_id)
    return _rows(session, query.order_by(JobBlackout.id.desc()).limit(limit))


def is_lasting(now_ms: Millis | BindParameter[int]) -> ColumnElement[bool]:
    """Return the condition for blackouts that are not over."""
    return and_(
        JobBlackout.ended_ms.is_(None), or_(JobBlackout.until_ms.is_(None), JobBlackout.until_ms > now_ms)
    )


def count_lasting(session: Session, *, now_ms: Millis) -> int:
    """Return how many are not over."""
    return session.scalar(select(func.count()).select_from(JobBlackout).where(is_lasting(now_ms))) or 0


def insert_blackout(session: Session, **columns: Any) -> int:
    """Insert a blackout; return its id."""
    return bulk.insert_with_ids(session, JobBlackout, [columns])[0]


def end_blackout(session: Session, blackout_id: int, *, until_ms: Millis, now_ms: Millis) -> None:
    """End a blackout."""
    statement = update(JobBlackout).where(JobBlackout.id == blackout_id)
    affected(session, statement.values(until_ms=until_ms, ended_ms=now_ms))


def end_of_jobs(session: Session, job_ids: Collection[int], *, now_ms: Millis) -> None:
    """End the blackouts of jobs that are deleted, and note that these have no tags any more."""
    _end(session, JobBlackout.job_id.in_(list(job_ids)), now_ms)
    open_rows = BlackoutJob.job_id.in_(list(job_ids)), BlackoutJob.until_ms.is_(None)
    affected(session, update(BlackoutJob).where(*open_rows).values(until_ms=now_ms))


def end_of_group(session: Session, group_id: int, *, now_ms: Millis) -> None:
    """End the blackouts of a group that is deleted."""
    _end(session, JobBlackout.group_id == group_id, now_ms)


def _end(session: Session, condition: ColumnElement[bool], now_ms: Millis) -> None:
    lasting = update(JobBlackout).where(condition, is_lasting(now_ms))
    past = lasting.where(JobBlackout.from_ms <= now_ms)
    affected(session, past.values(until_ms=now_ms, ended_ms=now_ms))
    affected(session, lasting.values(until_ms=JobBlackout.from_ms, ended_ms=now_ms))


def find_ids_of_group(session: Session, group_id: int) -> list[int]:
    """Return the ids of the jobs of a group."""
    return list(session.scalars(select(Job.id).where(Job.job_group == group_id)))


_WITH_TAG = select(JobTag.job_id).where(JobTag.tag_key == bindparam("key"))


def find_ids_with_tag(session: Session, tag: str) -> list[int]:
    """Return the ids of the jobs that have a tag, ignoring case."""
    return [row[0] for row in bulk.read_rows(session, _WITH_TAG, {"key": fold(tag)})]


class LastingScope(NamedTuple):
    """Tag or group of a blackout that is not over."""

    id: int
    #: empty: it is of a group
    tag: str
    group_id: int | None


_SCOPES = select(JobBlackout.id, JobBlackout.tag, JobBlackout.group_id).where(
    is_lasting(bindparam("now_ms")),
    or_(JobBlackout.tag != "", JobBlackout.group_id.is_not(None)),
)


def find_scopes(session: Session, *, now_ms: Millis) -> list[LastingScope]:
    """Return the tags and groups of blackouts that are not over."""
    return [LastingScope._make(row) for row in bulk.read_rows(session, _SCOPES, {"now_ms": now_ms})]


class Member(NamedTuple):
    """Job that has the tag of a blackout."""

    id: int
    blackout_id: int
    job_id: int


_MEMBERS = select(BlackoutJob.id, BlackoutJob.blackout_id, BlackoutJob.job_id).where(
    among(BlackoutJob.blackout_id), BlackoutJob.until_ms.is_(None)
)


def find_members(session: Session, blackout_ids: Collection[int]) -> list[Member]:
    """Return the jobs that have the tags of blackouts, as it is noted."""
    return [Member._make(row) for row in bulk.read_among(session, _MEMBERS, list(blackout_ids))]


_TAGGED = select(JobTag.job_id, JobTag.tag_key).where(among(JobTag.tag_key))


def find_tagged(session: Session, tags: Collection[str]) -> list[tuple[int, str]]:
    """Return the jobs that have tags, each with the folded tag."""
    rows = bulk.read_among(session, _TAGGED, sorted({fold(tag) for tag in tags}))
    return [(row[0], row[1]) for row in rows]


def add_members(session: Session, pairs: Iterable[tuple[int, int]], *, now_ms: Millis) -> None:
    """Note that jobs have the tag of a blackout from now on; ``pairs``: blackout id and job id."""
    rows = [
        {"blackout_id": blackout_id, "job_id": job_id, "from_ms": now_ms, "until_ms": None}
        for blackout_id, job_id in pairs
    ]
    bulk.insert_many(session, BlackoutJob, rows)


def end_members(session: Session, member_ids: Collection[int], *, now_ms: Millis) -> None:
    """Note that jobs have the tag no more."""
    bulk.update_many(
        session, BlackoutJob, [{"id": member_id, "until_ms": now_ms} for member_id in sorted(member_ids)]
    )


def _visible(group_ids: GroupIds) -> list[ColumnElement[bool]]:
    if group_ids is None:
        return []
    return [or_(_OF_ALL, JobBlackout.group_id.in_(list(group_ids)), Job.job_group.in_(list(group_ids)))]


def _rows(session: Session, query: Select[Any]) -> list[ListedBlackout]:
    count = len(BLACKOUT)
    return [ListedBlackout(blackout_of(row[:count]), *row[count:]) for row in bulk.read_rows(session, query)]
