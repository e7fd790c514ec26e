"""Runs of a chain: a run by hand with all that follows it. No index has the chain of a run.

They are found by what leads to them: the trigger, the rounds of the chain, and the runs that they follow.
"""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database.rows import bulk
from app.database.sql.in_list import WANTED, among
from app.domain.enums import FireState
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.round import Arrival, Round
from app.store.rounds.rounds import RoundRow

#: limits of runs of a chain, and of generations of children and retries
RUNS_MAX, GENERATIONS_MAX = 5_000, 100
_FOLLOWING = select(JobLog.id).where(among(JobLog.source_log_id)).order_by(JobLog.id)


class ChainRun(NamedTuple):
    """A run of a chain."""

    id: int
    job_id: int
    job_group: int
    trigger_code: int
    handle_code: int
    killed: int
    trigger_type: str | None
    executor_sharding_param: str | None
    source_log_id: int | None


_RUNS = select(*(getattr(JobLog, name) for name in ChainRun._fields), JobLog.chain).where(among(JobLog.id))
_ROUNDS = select(*(getattr(Round, name) for name in RoundRow._fields))


def find_rounds(session: Session, chain: int) -> list[RoundRow]:
    """Return the rounds of a chain, ids ascending."""
    rows = bulk.read_rows(session, _ROUNDS.where(Round.chain == chain).order_by(Round.id))
    return [RoundRow._make(row) for row in rows]


def find_runs(session: Session, chain: int) -> list[ChainRun]:
    """Return the runs of a chain, ids ascending, at most about RUNS_MAX."""
    first_runs = bulk.read_rows(session, select(JobLog.id).where(JobLog.trigger_key == chain))
    of_rounds = bulk.read_rows(session, select(Round.log_id).where(Round.chain == chain))
    arrivals = bulk.read_rows(
        session, select(Arrival.log_id).join(Round, Round.id == Arrival.round_id).where(Round.chain == chain)
    )
    generation = {row[0] for row in (*first_runs, *of_rounds, *arrivals) if row[0]}
    known_ids = set(generation)
    for _ in range(GENERATIONS_MAX):
        if not generation or len(known_ids) > RUNS_MAX:
            break
        generation = _following(session, generation) - known_ids
        known_ids |= generation
    rows = bulk.read_rows(session, _RUNS, {WANTED: sorted(known_ids)}) if known_ids else ()
    return sorted(ChainRun._make(row[:-1]) for row in rows if row[-1] == chain)


def _following(session: Session, log_ids: Collection[int]) -> set[int]:
    return {row[0] for row in bulk.read_rows(session, _FOLLOWING, {WANTED: sorted(log_ids)})}


def find_fire_groups(session: Session, chain: int) -> list[int]:
    """Return the groups of the runs of a chain that are on their way, one for each of them.

    Reads the fires, of which there are few.
    """
    query = select(Job.job_group).join(Fire, Fire.job_id == Job.id)
    rows = bulk.read_rows(session, query.where(Fire.chain == chain, Fire.state != FireState.HELD))
    return [row[0] for row in rows]
