"""Filters of the list of jobs as conditions of its statements."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, false, or_, select
from sqlalchemy.orm import Session

from app.database.sql.in_list import among
from app.database.sql.planner_hints import unindexed_on_mysql
from app.domain.lists.job_search import CodeState, LastRun
from app.domain.lists.orders import UNSORTED, Order
from app.models.group import Group
from app.models.job import Job
from app.store.base.paging import contains, is_small, is_storable, to_id
from app.store.jobs import favourites, managed_objects, states
from app.store.jobs import tags as job_tags


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Filter of the job list; empty texts, group 0 and status -1 mean all."""

    group_id: int = 0
    status: int = -1
    description: str = ""
    handler: str = ""
    author: str = ""
    tag: str = ""
    #: only favourites of this user; 0: all
    starred_by: int = 0
    app_name: str = ""
    schedule_type: str = ""
    #: each has to occur in the description, handler, owner or a tag, or to be the id
    words: tuple[str, ...] = ()
    #: a LastRun; empty: all
    last: str = ""
    #: a CodeState; empty: all
    code: str = ""
    #: only these jobs, such as those that differ from their code; None: all
    job_ids: frozenset[int] | None = None
    #: the failing jobs, the one that failed last first, for filters and orders that need them
    failing_ids: Sequence[int] = ()
    #: sorted by executor first
    by_group: bool = False
    order: Order = UNSORTED


def conditions_of(
    session: Session, criteria: JobFilter, group_ids: Collection[int] | None
) -> list[ColumnElement[bool]]:
    """Return the conditions for the jobs of these groups (None: of all) that match a filter."""
    conditions: list[ColumnElement[bool]] = [_has_word(word) for word in criteria.words]
    if group_ids is not None:
        group = unindexed_on_mysql(Job.job_group) if _reads_rows(criteria) else Job.job_group
        conditions.append(group.in_(list(group_ids)))
    if criteria.group_id > 0:
        conditions.append(Job.job_group == criteria.group_id)
    if criteria.status >= 0:
        conditions.append(is_small(Job.trigger_status, criteria.status))
    for column, text in (
        (Job.job_desc, criteria.description),
        (Job.executor_handler, criteria.handler),
        (Job.author, criteria.author),
    ):
        if text:
            conditions.append(contains(column, text))
    if criteria.app_name:
        is_app = Group.app_name == criteria.app_name if is_storable(criteria.app_name) else false()
        conditions.append(Job.job_group.in_(select(Group.id).where(is_app)))
    if criteria.schedule_type:
        conditions.append(Job.schedule_type == criteria.schedule_type)
    if criteria.tag:
        conditions.append(job_tags.has_tag(criteria.tag))
    if criteria.starred_by:
        conditions.append(favourites.is_favourite_of(criteria.starred_by))
    if criteria.code == CodeState.MANAGED:
        conditions.append(managed_objects.is_managed())
    if criteria.job_ids is not None:
        conditions.append(Job.id.in_(list(criteria.job_ids)))
    return conditions + _conditions_of_runs(session, criteria, group_ids)


def _conditions_of_runs(
    session: Session, criteria: JobFilter, group_ids: Collection[int] | None
) -> list[ColumnElement[bool]]:
    """Return the conditions for jobs whose last run is in this state."""
    match criteria.last:
        case LastRun.FAILING:
            return [among(Job.id, criteria.failing_ids)]
        case LastRun.RUNNING:
            return [Job.id.in_(list(states.find_running(session, group_ids)))]
        case LastRun.NEVER:
            return [states.never_ran(group_ids)]
    return []


def _has_word(word: str) -> ColumnElement[bool]:
    texts = (contains(column, word) for column in (Job.job_desc, Job.executor_handler, Job.author))
    return or_(*texts, job_tags.has_tag_with(word), Job.id == to_id(word))


def _reads_rows(criteria: JobFilter) -> bool:
    """Whether sorting needs columns of the job that no index on its group has.

    MariaDB takes half as long to read all jobs in order as to look up half of them in that index.
    """
    return criteria.order.column not in {"", "id", "executor", "last"}
