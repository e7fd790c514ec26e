"""Lists of incidents and promises for pages: bounded, with numbers counted by the database. Reads only."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.enums import IncidentState, PromiseState
from app.models.job import Job
from app.models.promise import Incident, JobPromise
from app.store.base.paging import Slice, fetch_slice
from app.store.pickers.overview import GroupIds, in_groups
from app.store.promises.incidents import LIVE

#: most incidents that are read for one part of a list; those that have not ended have an index
SEARCHED_MAX = 50_000
#: where counting of incidents stops
COUNTED_MAX = 1_000
_STATE = case(
    (and_(JobPromise.kept_ms == 0, JobPromise.broken_ms == 0), literal(PromiseState.NEW.value)),
    (JobPromise.broken_ms > JobPromise.kept_ms, literal(PromiseState.BROKEN.value)),
    else_=literal(PromiseState.KEPT.value),
)
#: the order of their list
_RANK = case({PromiseState.BROKEN.value: 0, PromiseState.NEW.value: 1}, value=_STATE, else_=2)


@dataclass(frozen=True, slots=True)
class IncidentFilter:
    """Filter of incidents; None and an empty collection match all."""

    states: Collection[IncidentState] = ()
    job_id: int | None = None
    group_id: int | None = None


def list_before(
    session: Session, criteria: IncidentFilter, group_ids: GroupIds, *, before_id: int | None, limit: int
) -> Slice[Incident]:
    """Return the incidents with an id below ``before_id`` (None: of all), newest first.

    Of jobs that were in these groups (None: in any) when their incidents were opened.
    """
    query = _newest_first(criteria, group_ids, before_id)
    is_indexed = criteria.job_id is not None or (criteria.states and {*criteria.states} <= {*LIVE})
    if is_indexed:
        return fetch_slice(session, query, limit=limit)
    newest = before_id or (session.scalar(select(func.max(Incident.id))) or 0) + 1
    first = max(newest - SEARCHED_MAX, 0)
    query = query.where(Incident.id >= first)
    return fetch_slice(session, query, limit=limit, searched_to=first or None)


def find_before(
    session: Session, criteria: IncidentFilter, group_ids: GroupIds, *, before_id: int | None, limit: int
) -> list[Incident]:
    """Return the same as ``list_before``, but search all incidents."""
    return list(session.scalars(_newest_first(criteria, group_ids, before_id).limit(limit)))


def _newest_first(
    criteria: IncidentFilter, group_ids: GroupIds, before_id: int | None
) -> Select[tuple[Incident]]:
    query = select(Incident).where(*_conditions(criteria, group_ids)).order_by(Incident.id.desc())
    return query if before_id is None else query.where(Incident.id < before_id)


def count_live(
    session: Session, criteria: IncidentFilter, group_ids: GroupIds, *, most: int | None = COUNTED_MAX
) -> dict[str, int]:
    """Return state -> number of the incidents that have not ended.

    ``most``: where counting stops, over all states; None: it does not.
    """
    live = IncidentFilter([IncidentState(state) for state in LIVE], criteria.job_id, criteria.group_id)
    rows = select(Incident.state).where(*_conditions(live, group_ids)).limit(most).subquery()
    counts = select(rows.c.state, func.count()).group_by(rows.c.state)
    return {row[0]: row[1] for row in session.execute(counts)}


def _conditions(criteria: IncidentFilter, group_ids: GroupIds) -> list[ColumnElement[bool]]:
    conditions = [*in_groups(Incident.group_id, group_ids)]
    if criteria.states:
        conditions.append(Incident.state.in_([str(state) for state in criteria.states]))
    if criteria.job_id is not None:
        conditions.append(Incident.job_id == criteria.job_id)
    if criteria.group_id is not None:
        conditions.append(Incident.group_id == criteria.group_id)
    return conditions


@dataclass(frozen=True, slots=True)
class PromiseFilter:
    """Filter of promises; empty values match all."""

    job_id: int | None = None
    group_id: int | None = None
    kind: str = ""
    #: PromiseState
    state: str = ""


class PromiseRow(NamedTuple):
    """A promise with its job."""

    job_id: int
    job_desc: str
    group_id: int
    number: int
    definition: str
    state: str
    since_ms: Millis
    kept_ms: Millis
    broken_ms: Millis
    #: as stored
    days: str | None


def list_promises(
    session: Session, criteria: PromiseFilter, group_ids: GroupIds, *, start: int, length: int
) -> list[PromiseRow]:
    """Return a page of the promises of jobs in groups (None: in any): broken ones first, then by job."""
    order = (_RANK, JobPromise.job_id, JobPromise.number)
    ids = _of_jobs(select(JobPromise.id), criteria, group_ids)
    if criteria.state:
        ids = ids.where(_STATE.in_([criteria.state]))
    # Rows are wide: only their ids are sorted.
    page = session.scalars(ids.order_by(*order).offset(start).limit(length)).all()
    if not page:
        return []
    columns = (Job.id, Job.job_desc, Job.job_group, JobPromise.number, JobPromise.definition, _STATE)
    times = (JobPromise.since_ms, JobPromise.kept_ms, JobPromise.broken_ms, JobPromise.days)
    query = select(*columns, *times).join(Job, Job.id == JobPromise.job_id).where(JobPromise.id.in_(page))
    return [PromiseRow._make(row) for row in session.execute(query.order_by(*order))]


def count_promises(session: Session, criteria: PromiseFilter, group_ids: GroupIds) -> dict[str, int]:
    """Return state -> number of promises, whatever state the filter has."""
    rows = _of_jobs(select(_STATE.label("state")), criteria, group_ids).subquery()
    counts = select(rows.c.state, func.count()).group_by(rows.c.state)
    return {row[0]: row[1] for row in session.execute(counts)}


def count_kinds(session: Session) -> dict[tuple[str, str], int]:
    """Return kind and state -> number of all promises; every state of a kind that some job promises."""
    rows = select(JobPromise.kind, _STATE.label("state")).subquery()
    query = select(rows.c.kind, rows.c.state, func.count()).group_by(rows.c.kind, rows.c.state)
    numbers = {(kind, state): count for kind, state, count in session.execute(query)}
    kinds = {kind for kind, _state in numbers}
    return {
        (kind, state.value): numbers.get((kind, state.value), 0) for kind in kinds for state in PromiseState
    }


def _of_jobs(query: Select[Any], criteria: PromiseFilter, group_ids: GroupIds) -> Select[Any]:
    query = query.select_from(JobPromise).join(Job, Job.id == JobPromise.job_id)
    query = query.where(*in_groups(Job.job_group, group_ids))
    if criteria.job_id is not None:
        query = query.where(JobPromise.job_id == criteria.job_id)
    if criteria.group_id is not None:
        query = query.where(Job.job_group == criteria.group_id)
    return query.where(JobPromise.kind == criteria.kind) if criteria.kind else query
