"""Backfills as users see them: insert, find, list, delete."""

from collections import defaultdict
from collections.abc import Collection, Sequence

from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk
from app.domain.backfills.kinds import ACTIVE, InstantState
from app.models.backfill import Backfill, BackfillInstant
from app.models.job import Job
from app.store.base.paging import Page, fetch_page
from app.store.pickers.overview import GroupIds


def insert_backfill(session: Session, row: bulk.Row, logical_times: Sequence[Millis]) -> int:
    """Store a backfill with its instants, in their order; return its id."""
    [backfill_id] = bulk.insert_with_ids(session, Backfill, [row])
    instants = [
        {"backfill_id": backfill_id, "logical_ms": at_ms, "number": number}
        for number, at_ms in enumerate(logical_times)
    ]
    bulk.insert_many(session, BackfillInstant, instants)
    return backfill_id


def find_backfill(session: Session, backfill_id: int) -> Backfill | None:
    """Return a backfill."""
    return session.get(Backfill, backfill_id, populate_existing=True)


def find_overlaps(session: Session, job_id: int, logical_times: Collection[Millis]) -> dict[int, int]:
    """Return backfill id -> how many of these logical times it runs, of the active backfills of a job."""
    if not logical_times:
        return {}
    times, counts = {*logical_times}, defaultdict[int, int](int)
    query = (
        select(BackfillInstant.backfill_id, BackfillInstant.logical_ms)
        .join(Backfill, Backfill.id == BackfillInstant.backfill_id)
        .where(
            Backfill.job_id == job_id,
            Backfill.state.in_(ACTIVE),
            BackfillInstant.state.in_([InstantState.WAITING.value, InstantState.RUNNING.value]),
            BackfillInstant.logical_ms >= min(times),
            BackfillInstant.logical_ms <= max(times),
        )
    )
    for backfill_id, logical_ms in bulk.read_rows(session, query):
        counts[backfill_id] += logical_ms in times
    return {backfill_id: count for backfill_id, count in counts.items() if count}


def find_left(session: Session, backfill_id: int) -> list[Millis]:
    """Return the logical times of a backfill that have not succeeded."""
    query = select(BackfillInstant.logical_ms).where(
        BackfillInstant.backfill_id == backfill_id,
        BackfillInstant.state.in_([InstantState.WAITING.value, InstantState.FAILED.value]),
    )
    return [row[0] for row in bulk.read_rows(session, query)]


def list_backfills(
    session: Session,
    group_ids: GroupIds,
    *,
    job_id: int = 0,
    states: Collection[str] = (),
    start: int,
    length: int,
) -> Page[Backfill]:
    """Return a page of the backfills of these groups (None: of all), the newest first."""
    query = _list_query(group_ids, job_id, states)
    return fetch_page(session, query, start=start, length=length)


def find_page(
    session: Session,
    group_ids: GroupIds,
    *,
    job_id: int = 0,
    states: Collection[str] = (),
    before_id: int = 0,
    limit: int,
) -> list[Backfill]:
    """Return the newest backfills of these groups (None: of all), with ids below ``before_id`` (0: all)."""
    query = _list_query(group_ids, job_id, states)
    if before_id:
        query = query.where(Backfill.id < before_id)
    return list(session.scalars(query.limit(limit)))


def _list_query(group_ids: GroupIds, job_id: int, states: Collection[str]) -> Select[tuple[Backfill]]:
    """Return the query for the backfills of groups: a job may have moved to another one since."""
    query = select(Backfill).order_by(Backfill.id.desc())
    if group_ids is not None:
        group_id = func.coalesce(Job.job_group, Backfill.job_group)
        query = query.outerjoin(Job, Job.id == Backfill.job_id).where(group_id.in_(list(group_ids)))
    if job_id:
        query = query.where(Backfill.job_id == job_id)
    if states:
        query = query.where(Backfill.state.in_(list(states)))
    return query


def count_active(session: Session) -> dict[str, int]:
    """Return state -> number of the backfills that have it, of the states of active ones."""
    query = select(Backfill.state, func.count()).where(Backfill.state.in_(ACTIVE)).group_by(Backfill.state)
    counts = {row[0]: row[1] for row in bulk.read_rows(session, query)}
    return {state.value: counts.get(state.value, 0) for state in ACTIVE}


def count_instants(session: Session, backfill_ids: Collection[int]) -> dict[int, dict[str, int]]:
    """Return backfill id -> state -> number of its instants."""
    counts = defaultdict[int, dict[str, int]](dict)
    query = (
        select(BackfillInstant.backfill_id, BackfillInstant.state, func.count())
        .where(BackfillInstant.backfill_id.in_(list(backfill_ids)))
        .group_by(BackfillInstant.backfill_id, BackfillInstant.state)
    )
    for backfill_id, state, count in bulk.read_rows(session, query) if backfill_ids else ():
        counts[backfill_id][state] = count
    return dict(counts)


def list_instants(
    session: Session, backfill_id: int, *, states: Collection[str] = (), start: int, length: int
) -> Page[BackfillInstant]:
    """Return a page of the instants of a backfill, in its order."""
    query = select(BackfillInstant).where(BackfillInstant.backfill_id == backfill_id)
    if states:
        query = query.where(BackfillInstant.state.in_(list(states)))
    return fetch_page(session, query.order_by(BackfillInstant.number), start=start, length=length)


def find_instants(
    session: Session, backfill_id: int, *, states: Collection[str] = (), after: int = -1, limit: int
) -> list[BackfillInstant]:
    """Return the instants of a backfill after a place in its order."""
    query = select(BackfillInstant).where(
        BackfillInstant.backfill_id == backfill_id, BackfillInstant.number > after
    )
    if states:
        query = query.where(BackfillInstant.state.in_(list(states)))
    return list(session.scalars(query.order_by(BackfillInstant.number).limit(limit)))


def delete_ended(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete backfills that ended before a time, with their instants; return how many."""
    old = select(Backfill.id).where(Backfill.state.not_in(ACTIVE), Backfill.ended_ms < before_ms)
    ids = list(session.scalars(old.order_by(Backfill.ended_ms).limit(limit)))
    # One that a user resumes meanwhile stays, with its instants.
    statements = (
        delete(Backfill).where(Backfill.id == backfill_id, Backfill.state.not_in(ACTIVE))
        for backfill_id in ids
    )
    removed_ids = [
        backfill_id
        for backfill_id, statement in zip(ids, statements, strict=True)
        if affected(session, statement)
    ]
    if removed_ids:
        affected(session, delete(BackfillInstant).where(BackfillInstant.backfill_id.in_(removed_ids)))
    return len(removed_ids)
