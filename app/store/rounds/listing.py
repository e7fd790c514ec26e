"""Statements of the console and the API on rounds: lists, and what is on its way for them."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.database.sql.in_list import WANTED, among
from app.domain.enums import FireState
from app.domain.rounds.kinds import RoundState
from app.models.fire import Fire
from app.models.job import Job
from app.models.round import Round
from app.store.pickers.overview import GroupIds, in_groups
from app.store.rounds.rounds import RoundRow


class RoundFilter(NamedTuple):
    """Which rounds to list; 0, empty and None: all."""

    job_id: int = 0
    #: RoundState
    state: str = ""
    #: number of a trigger
    chain: int | None = None
    #: run because of which they were not run
    cause_log_id: int | None = None


class RoundJob(NamedTuple):
    """A job of rounds."""

    id: int
    job_group: int
    job_desc: str
    runs_after: str | None
    #: empty: that of the installation
    time_zone: str


class OpenFire(NamedTuple):
    """A run on its way."""

    job_id: int
    state: str
    due_ms: Millis
    #: what it stands for
    logical_ms: Millis
    trigger_type: str
    chain: int | None


_COLUMNS = tuple(getattr(Round, name) for name in RoundRow._fields)
_LISTED = select(*_COLUMNS).join(Job, Job.id == Round.job_id)
_JOBS = select(*(getattr(Job, name) for name in RoundJob._fields)).where(among(Job.id))
_FIRES = select(
    Fire.job_id,
    Fire.state,
    Fire.due_time,
    func.coalesce(Fire.logical_ms, Fire.due_time),
    Fire.trigger_type,
    Fire.chain,
).where(among(Fire.job_id), Fire.state != FireState.HELD)
#: Every open round has an end, by whose index they are found: few beside those that are decided.
_IS_OPEN = and_(Round.due_ms > 0, Round.state == RoundState.OPEN.value)
_COUNT = select(func.count()).select_from(Round).where(_IS_OPEN)


def list_rounds(
    session: Session, criteria: RoundFilter, group_ids: GroupIds, *, before_id: int, limit: int
) -> list[RoundRow]:
    """Return the newest rounds of jobs in these groups (None: all), with ids below ``before_id`` (0: all)."""
    query = _LISTED.where(*in_groups(Job.job_group, group_ids))
    if criteria.job_id:
        query = query.where(Round.job_id == criteria.job_id)
    if criteria.state == RoundState.OPEN:
        query = query.where(_IS_OPEN)
    elif criteria.state:
        query = query.where(Round.state == criteria.state)
    if criteria.chain is not None:
        query = query.where(Round.chain == criteria.chain)
    if criteria.cause_log_id is not None:
        query = query.where(Round.cause_log_id == criteria.cause_log_id)
    if before_id:
        query = query.where(Round.id < before_id)
    rows = bulk.read_rows(session, query.order_by(Round.id.desc()).limit(limit))
    return [RoundRow._make(row) for row in rows]


def find_rounds(session: Session, round_ids: Collection[int]) -> list[RoundRow]:
    """Return those of the rounds that exist, ids ascending."""
    rows = bulk.read_rows(session, select(*_COLUMNS).where(Round.id.in_(list(round_ids))).order_by(Round.id))
    return [RoundRow._make(row) for row in rows]


def find_jobs(session: Session, job_ids: Collection[int]) -> dict[int, RoundJob]:
    """Return those of the jobs that exist, by id."""
    return {row[0]: RoundJob._make(row) for row in bulk.read_rows(session, _JOBS, {WANTED: list(job_ids)})}


def find_open_fires(session: Session, job_ids: Collection[int]) -> list[OpenFire]:
    """Return the runs of these jobs that are on their way."""
    rows = bulk.read_rows(session, _FIRES, {WANTED: list(job_ids)}) if job_ids else ()
    return [OpenFire._make(row) for row in rows]


def count_open(session: Session) -> int:
    """Return how many rounds are open."""
    return session.scalar(_COUNT) or 0


def has_open_round(session: Session, chain: int) -> bool:
    """Whether a round of a chain is open."""
    query = select(Round.id).where(Round.chain == chain, Round.state == RoundState.OPEN.value).limit(1)
    return session.scalar(query) is not None
