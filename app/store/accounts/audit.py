"""Statements on `xxl_job_audit`: change history. Rows are only added; the clean-up deletes old ones."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Select, false, func, literal, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.database.sql.planner_hints import unindexed_on_mysql
from app.domain.lists.orders import UNSORTED, Order
from app.models.audit import AuditEntry
from app.models.calendar import JobBlackout, JobCalendar
from app.models.channel import AlarmChannel
from app.models.limit import Limit
from app.models.log import JobLog
from app.models.task import Task
from app.models.user import User
from app.models.variable import Variable
from app.store.base.ordering import SortKey, ordering
from app.store.base.paging import Page, Slice, contains, fetch_page, fetch_slice, is_storable
from app.store.pickers.overview import GroupIds, in_groups

#: counting stops here, since the table is long
COUNT_MAX = 10_000
#: most entries that are read for a filter without an index
SEARCHED_MAX = 50_000
#: entries of several nodes are numbered as they are committed: nearly in the order of their times
NUMBERED_WITHIN = 1_000
#: actions of refusals
REFUSED, REFUSED_LOGIN = "refused.", "login.refused"
#: sort keys; entries are numbered in order of time, and no other column has an index
ORDERS: dict[str, SortKey] = {"time": SortKey(())}


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filter of the change history; empty values and None match all."""

    username: str = ""
    #: prefix of the action, such as ``job.``
    action: str = ""
    #: only refused requests and logins
    refusals: bool = False
    object_type: str = ""
    object_id: int | None = None
    from_ms: Millis | None = None
    to_ms: Millis | None = None
    #: by ``time``; otherwise newest first
    order: Order = UNSORTED


def insert_entries(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Insert entries in order, after the changes of the session."""
    session.flush()
    bulk.insert_whole(session, AuditEntry, rows)


def list_of_object(session: Session, object_type: str, object_id: int, *, limit: int) -> list[AuditEntry]:
    """Return the newest entries about one object."""
    query = select(AuditEntry).where(AuditEntry.object_type == object_type, AuditEntry.object_id == object_id)
    return list(session.scalars(query.order_by(AuditEntry.id.desc()).limit(limit)))


def find_users_at(session: Session, action: str, instants: Collection[Millis]) -> dict[Millis, str]:
    """Return instant -> name of the user of the entry of an action at that instant."""
    at = select(AuditEntry.at_ms, AuditEntry.username).where(AuditEntry.at_ms.in_(list(instants)))
    rows = bulk.read_rows(session, at.where(AuditEntry.action == action)) if instants else ()
    return {row[0]: row[1] for row in rows}


def find_newest(
    session: Session, action: str, object_type: str, object_ids: Collection[int]
) -> list[AuditEntry]:
    """Return the newest entry of an action for each object that has one."""
    newest = (
        select(func.max(AuditEntry.id))
        .where(
            AuditEntry.object_type == object_type,
            AuditEntry.object_id.in_(list(object_ids)),
            AuditEntry.action == action,
        )
        .group_by(AuditEntry.object_id)
    )
    return list(session.scalars(select(AuditEntry).where(AuditEntry.id.in_(newest))))


def find_recent(
    session: Session, actions: Sequence[str], *, since_ms: Millis, limit: int
) -> list[AuditEntry]:
    """Return the newest entries of some actions since an instant, newest first."""
    query = select(AuditEntry).where(AuditEntry.at_ms >= since_ms, AuditEntry.action.in_(actions))
    return list(session.scalars(query.order_by(AuditEntry.at_ms.desc(), AuditEntry.id.desc()).limit(limit)))


def find_names(session: Session, kind: str, ids: Collection[int]) -> dict[int, str]:
    """Return id -> name of the users, channels, variables or limits that exist; the others have none."""
    columns = {
        "user": (User.id, User.username),
        "channel": (AlarmChannel.id, AlarmChannel.name),
        "variable": (Variable.id, Variable.name),
        "limit": (Limit.id, Limit.name),
        "calendar": (JobCalendar.id, JobCalendar.name),
        "blackout": (JobBlackout.id, literal("")),
        "task": (Task.id, literal("")),
    }
    id_column, name = columns[kind]
    return {
        row[0]: row[1]
        for row in bulk.read_rows(session, select(id_column, name).where(id_column.in_(list(ids))))
    }


def find_runs(session: Session, log_ids: Collection[int], *, group_ids: GroupIds) -> set[int]:
    """Return the runs that exist, of these groups (None: of any)."""
    query = select(JobLog.id).where(JobLog.id.in_(list(log_ids)), *in_groups(JobLog.job_group, group_ids))
    return {row[0] for row in bulk.read_rows(session, query)}


def list_entries(session: Session, criteria: AuditFilter, *, start: int, length: int) -> Page[AuditEntry]:
    """Return a page of entries, newest first unless the filter orders otherwise.

    ``is_capped``: there may be more, because counting or searching has stopped.
    """
    first, last, is_cut = _window(session, criteria, None)
    query = select_entries(criteria, first, last)
    page = fetch_page(session, query, start=start, length=length, count_to=COUNT_MAX)
    return replace(page, is_capped=page.is_capped or is_cut)


def list_before(
    session: Session, criteria: AuditFilter, *, before_id: int | None, limit: int
) -> Slice[AuditEntry]:
    """Return the newest entries with an id below ``before_id`` (None: of all), newest first."""
    first, last, is_cut = _window(session, criteria, before_id)
    query = select_entries(replace(criteria, order=UNSORTED), first, last)
    return fetch_slice(session, query, limit=limit, searched_to=first if is_cut else None)


def select_entries(criteria: AuditFilter, first: int, last: int) -> Select[tuple[AuditEntry]]:
    """Select the entries of a filter among these ids, in its order."""
    order = ordering(criteria.order, ORDERS, row_id=AuditEntry.id, default=[AuditEntry.id.desc()])
    is_in_range = AuditEntry.id.between(first, last)
    return select(AuditEntry).where(is_in_range, *_conditions(criteria)).order_by(*order)


def _conditions(criteria: AuditFilter) -> Iterator[ColumnElement[bool]]:
    if criteria.username:
        yield contains(AuditEntry.username, criteria.username)
    if criteria.action:
        storable = is_storable(criteria.action)
        begins = AuditEntry.action.startswith(criteria.action, autoescape=True) if storable else false()
        yield or_(begins, AuditEntry.action == "logout") if criteria.action == "login" else begins
    if criteria.refusals:
        is_request = AuditEntry.action.startswith(REFUSED, autoescape=True)
        yield or_(is_request, AuditEntry.action == REFUSED_LOGIN)
    if criteria.object_type and criteria.object_id is not None:
        yield AuditEntry.object_type == criteria.object_type
        yield AuditEntry.object_id == criteria.object_id
    elif criteria.object_type:
        yield unindexed_on_mysql(AuditEntry.object_type) == criteria.object_type
    if criteria.from_ms is not None:
        yield unindexed_on_mysql(AuditEntry.at_ms) >= criteria.from_ms
    if criteria.to_ms is not None:
        yield unindexed_on_mysql(AuditEntry.at_ms) <= criteria.to_ms


def _window(session: Session, criteria: AuditFilter, before_id: int | None) -> tuple[int, int, bool]:
    """Return first and last id to search, below ``before_id``, and whether entries are left out.

    Ids follow the time, so that a range of ids stands for a range of time; with a condition that no index
    serves, at most ``SEARCHED_MAX`` entries at the beginning of the list are read.
    """
    first, last = (
        session.scalar(_edge(criteria.from_ms, is_first=True)),
        session.scalar(_edge(criteria.to_ms, is_first=False)),
    )
    if first is None or last is None:
        return 1, 0, False
    if criteria.from_ms is not None:
        first -= NUMBERED_WITHIN
    if criteria.to_ms is not None:
        last += NUMBERED_WITHIN
    if before_id is not None:
        last = min(last, before_id - 1)
    is_of_object = bool(criteria.object_type) and criteria.object_id is not None
    reads_rows = bool(criteria.username or criteria.action or criteria.refusals or criteria.object_type)
    if is_of_object or not reads_rows or last - first < SEARCHED_MAX:
        return first, last, False
    is_ascending = criteria.order != UNSORTED and not criteria.order.descending
    return (first, first + SEARCHED_MAX, True) if is_ascending else (last - SEARCHED_MAX, last, True)


def _edge(at_ms: Millis | None, *, is_first: bool) -> Select[tuple[int]]:
    """Select the first id since an instant, or the last one until it; None: of all."""
    query = select(AuditEntry.id).limit(1)
    if at_ms is None:
        return query.order_by(AuditEntry.id if is_first else AuditEntry.id.desc())
    if is_first:
        return query.where(AuditEntry.at_ms >= at_ms).order_by(AuditEntry.at_ms, AuditEntry.id)
    return query.where(AuditEntry.at_ms <= at_ms).order_by(AuditEntry.at_ms.desc(), AuditEntry.id.desc())
