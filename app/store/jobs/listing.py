"""Statements of the console and the API on jobs; those of the pipeline are in ``scheduling``."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, and_, case, func, not_, or_, select
from sqlalchemy.orm import Session, defer

from app.clock import Millis
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.database.sql.planner_hints import unindexed_on_mysql
from app.domain.enums import TriggerStatus
from app.domain.jobs.children import child_ids_of
from app.domain.lists.orders import UNSORTED, Order
from app.domain.schedules.schedule import RESTING
from app.models.group import Group
from app.models.job import Job
from app.store.base.ordering import SortKey, by_instant, by_text, ordering
from app.store.base.paging import ID_MAX, Page, fetch_page, is_storable
from app.store.jobs import last_runs
from app.store.jobs import scheduling as jobs
from app.store.jobs.filtering import JobFilter, conditions_of

#: limits of generations of child jobs, and of ids per statement; beyond them all jobs are read at once
DESCENDANT_STATEMENTS, DESCENDANT_IDS = 8, 1_000
_IS_PLANNED = and_(Job.trigger_status == TriggerStatus.RUNNING, Job.trigger_next_time > 0)
#: sort keys of the list, by the names of its columns; LAST_RUN depends on the groups visible to the user
ORDERS: dict[str, SortKey] = {
    "id": SortKey(()),
    "desc": by_text(Job.job_desc),
    "executor": SortKey(
        (func.lower(Group.title), Job.job_group), rank=case((Group.id.is_(None), 1), else_=0)
    ),
    "mode": SortKey((Job.glue_type, func.lower(func.coalesce(Job.executor_handler, "")))),
    "owner": by_text(Job.author),
    "status": SortKey((Job.trigger_status,)),
    # The order is that of the column: an instant, "after the current run", or nothing.
    "next": SortKey(
        (case((_IS_PLANNED, Job.trigger_next_time), else_=0),),
        rank=case((not_(_IS_PLANNED), 2), (Job.trigger_next_time >= RESTING, 1), else_=0),
    ),
}
LAST_RUN = "last"
_GROUPS_OF = select(Job.id, Job.job_group).where(among(Job.id))
#: group id and ids of child jobs
Links = tuple[int, list[int]]


class ListedJob(NamedTuple):
    """Columns of a job in the list; loading a Job takes three times as long."""

    id: int
    job_group: int
    job_desc: str
    author: str | None
    schedule_type: str
    schedule_conf: str | None
    time_zone: str
    executor_handler: str | None
    glue_type: str
    trigger_status: int
    trigger_next_time: Millis
    runs_after: str | None
    calendar: str | None


_LISTED = select(*(getattr(Job, name) for name in ListedJob._fields)).where(among(Job.id))


def find_job(session: Session, job_id: int) -> Job | None:
    """Return a job or None."""
    return session.get(Job, job_id)


def find_filling(session: Session, job_ids: Collection[int]) -> dict[int, str | None]:
    """Return the parameters of those of the jobs that fill them in, by id."""
    query = select(Job.id, Job.executor_param).where(Job.id.in_(job_ids), Job.fill_parameter == 1)
    return {row.id: row.executor_param for row in session.execute(query)}


def find_params(session: Session, job_ids: Collection[int]) -> dict[int, str | None]:
    """Return the parameters of jobs, None without one, by id."""
    rows = session.execute(select(Job.id, Job.executor_param).where(Job.id.in_(job_ids)))
    return {row.id: row.executor_param for row in rows}


def list_jobs(
    session: Session, criteria: JobFilter, *, group_ids: Collection[int] | None, start: int, length: int
) -> Page[Job]:
    """Return a page of the jobs of these groups (None: all), newest first unless the filter has an order."""
    page = list_ids(session, criteria, group_ids=group_ids, start=start, length=length)
    job_by_id = jobs.find_jobs(session, page.rows)
    return Page([job_by_id[job_id] for job_id in page.rows if job_id in job_by_id], page.total)


def list_ids(
    session: Session, criteria: JobFilter, *, group_ids: Collection[int] | None, start: int, length: int
) -> Page[int]:
    """Return a page of the ids of these jobs; sorting whole rows would read GLUE sources."""
    conditions, newest_first = conditions_of(session, criteria, group_ids), [Job.id.desc()]
    if criteria.order == UNSORTED and not criteria.by_group:
        query = select(Job.id).where(*conditions).order_by(*newest_first)
        return fetch_page(session, query, start=start, length=length)
    ids = select(Job.id).outerjoin(Group, Group.id == Job.job_group).where(*conditions)
    if is_failing_first(criteria):
        return _list_failing_first(session, ids, criteria.failing_ids, group_ids, start, length)
    keys = ORDERS
    if criteria.order.column == LAST_RUN:
        keys = ORDERS | {LAST_RUN: by_instant(*last_runs.last_run(session, group_ids))}
    order = ordering(criteria.order, keys, row_id=Job.id, default=newest_first)
    if criteria.by_group:
        order = (*ordering(Order("executor"), ORDERS, row_id=Job.job_group, default=()), *order)
    return fetch_page(session, ids.order_by(*order), start=start, length=length)


def is_failing_first(criteria: JobFilter) -> bool:
    """Return whether these jobs begin with the failing ones: in the order of their last runs, ungrouped."""
    return criteria.order == Order(LAST_RUN, descending=True) and not criteria.by_group


def _list_failing_first(
    session: Session,
    ids: Select[tuple[int]],
    failing_ids: Sequence[int],
    group_ids: Collection[int] | None,
    start: int,
    length: int,
) -> Page[int]:
    """Return a page of these jobs: the failing ones as they are, then the others, the last run first."""
    matches = set(session.scalars(ids.where(among(Job.id, failing_ids)))) if failing_ids else set()
    first = [job_id for job_id in failing_ids if job_id in matches]
    total = fetch_page(session, ids, start=0, length=0).total
    rows = first[start : start + length]
    begin, missing = max(0, start - len(first)), length - len(rows)
    if not missing:
        return Page(rows, total)
    others = ids.where(Job.id.not_in(first)) if first else ids
    ran = last_runs.ran_last(session, others, group_ids, begin + missing)[begin : begin + missing]
    if len(ran) < missing:
        keys = {LAST_RUN: by_instant(*last_runs.last_run(session, group_ids))}
        order = ordering(Order(LAST_RUN, descending=True), keys, row_id=Job.id, default=())
        ran = fetch_page(session, others.order_by(*order), start=begin, length=missing).rows
    return Page(rows + ran, total)


def count_of_groups(
    session: Session, criteria: JobFilter, *, group_ids: Collection[int] | None, among_ids: Collection[int]
) -> dict[int, int]:
    """Return group id -> number of jobs that match the filter, of some of these groups."""
    conditions = (*conditions_of(session, criteria, group_ids), Job.job_group.in_(list(among_ids)))
    query = select(Job.job_group, func.count()).where(*conditions).group_by(Job.job_group)
    return {row[0]: row[1] for row in bulk.read_rows(session, query)}


def find_listed(session: Session, job_ids: Collection[int]) -> dict[int, ListedJob]:
    """Return those of the jobs that exist, by id."""
    rows = bulk.read_among(session, _LISTED, list(job_ids))
    return {row[0]: ListedJob._make(row) for row in rows}


def list_before(
    session: Session, criteria: JobFilter, *, group_ids: Collection[int] | None, before_id: int, limit: int
) -> list[Job]:
    """Return the newest of these jobs with ids below ``before_id`` (0: of all), without their sources."""
    query = (
        select(Job)
        .options(defer(Job.glue_source, raiseload=True))
        .where(*conditions_of(session, criteria, group_ids))
    )
    if before_id:
        query = query.where(Job.id < before_id)
    return list(session.scalars(query.order_by(Job.id.desc()).limit(limit)))


def list_of_group(session: Session, group_id: int) -> list[Job]:
    """Return all jobs of a group by id."""
    return list(session.scalars(select(Job).where(Job.job_group == group_id).order_by(Job.id)))


#: columns that define a job, without the progress of its schedule
_DEFINITION = tuple(
    column
    for column in bulk.table_of(Job).columns
    if column.name not in {"trigger_last_time", "trigger_next_time", "last_fire_ms", "update_time"}
)


def find_named(
    session: Session,
    descriptions: Collection[str],
    handlers: Collection[str] = (),
    *,
    group_ids: Collection[int],
) -> list[tuple[int, int, str, str]]:
    """Return id, group, description and handler of the groups' jobs with one of these names, by id.

    Surrounding blanks are ignored; whether case matters depends on the database.
    """
    is_named = or_(
        *(
            func.trim(column).in_([text for text in texts if is_storable(text)])
            for column, texts in ((Job.job_desc, descriptions), (Job.executor_handler, handlers))
            if texts
        )
    )
    query = select(Job.id, Job.job_group, Job.job_desc, Job.executor_handler).where(
        Job.job_group.in_(list(group_ids))
    )
    rows = bulk.read_rows(session, query.where(is_named).order_by(Job.id))
    return [(row[0], row[1], row[2].strip(), (row[3] or "").strip()) for row in rows]


def read_definitions(session: Session, job_ids: Collection[int], *, lock: bool) -> list[dict[str, Any]]:
    """Return the definitions of the jobs, by id; ``lock`` locks their rows until the commit."""
    query = select(*_DEFINITION).where(Job.id.in_(list(job_ids))).order_by(Job.id)
    rows = bulk.read_rows(session, query.with_for_update() if lock else query)
    return [dict(row._mapping) for row in rows]


def find_descendants(session: Session, job_ids: Collection[int]) -> dict[int, Links]:
    """Return job id -> (group id, ids of child jobs) of the jobs and all their descendants that exist.

    One statement reads one generation. After DESCENDANT_STATEMENTS generations, or for one with more than
    DESCENDANT_IDS jobs, all jobs are read at once instead.
    """
    descendants: dict[int, Links] = {}
    all_ids: set[int] = set()
    all_links: dict[int, Links] | None = None
    generation, number = set(job_ids), 0
    while generation:
        all_ids |= generation
        number += 1
        if all_links is None and (number > DESCENDANT_STATEMENTS or len(generation) > DESCENDANT_IDS):
            all_links = _read_links(session, None)
        if all_links is None:
            links = _read_links(session, generation)
        else:
            links = {job_id: all_links[job_id] for job_id in generation if job_id in all_links}
        descendants |= links
        children = {child for _group_id, ids in links.values() for child in ids if child <= ID_MAX}
        generation = children - all_ids
    return descendants


def find_links(session: Session) -> dict[int, Links]:
    """Return job id -> (group id, ids of child jobs) of all jobs."""
    return _read_links(session, None)


def find_parents(session: Session, job_ids: Collection[int]) -> set[int]:
    """Return the jobs that name one of these as a child, which need not exist; reads all parents."""
    child_ids = set(job_ids)
    rows = (
        bulk.read_rows(session, select(Job.id, Job.child_jobid).where(Job.child_jobid != ""))
        if child_ids
        else ()
    )
    return {row[0] for row in rows if not child_ids.isdisjoint(child_ids_of(row[1]))}


def _read_links(session: Session, job_ids: Collection[int] | None) -> dict[int, Links]:
    """Return group and child jobs of these jobs (None: all)."""
    query = select(Job.id, Job.job_group, Job.child_jobid)
    rows = bulk.read_rows(session, query if job_ids is None else query.where(Job.id.in_(list(job_ids))))
    return {row[0]: (row[1], child_ids_of(row[2])) for row in rows}


def count_of_group(session: Session, group_id: int) -> int:
    """Return how many jobs a group has."""
    return session.scalar(select(func.count()).select_from(Job).where(Job.job_group == group_id)) or 0


def count_by_group(session: Session, group_ids: Collection[int]) -> dict[int, int]:
    """Return group id -> number of jobs, of those of the groups that have jobs."""
    query = select(Job.job_group, func.count()).where(Job.job_group.in_(list(group_ids)))
    return {row[0]: row[1] for row in session.execute(query.group_by(Job.job_group))}


def count_with_mail(session: Session, group_ids: Collection[int] | None, *, limit: int) -> int:
    """Return how many jobs of these groups (None: all) have an alarm mail, at most ``limit``."""
    has_mail = select(Job.id).where(Job.alarm_email != "")
    if group_ids is not None:
        has_mail = has_mail.where(unindexed_on_mysql(Job.job_group).in_(list(group_ids)))
    return session.scalar(select(func.count()).select_from(has_mail.limit(limit).subquery())) or 0


def count_jobs(session: Session) -> int:
    """Return how many jobs there are."""
    return session.scalar(select(func.count()).select_from(Job)) or 0


def find_groups_of(session: Session, job_ids: Collection[int]) -> dict[int, int]:
    """Return job id -> group id; missing jobs are left out."""
    return {row[0]: row[1] for row in bulk.read_among(session, _GROUPS_OF, list(job_ids))}
