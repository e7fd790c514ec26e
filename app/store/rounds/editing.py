"""Statements on rounds whose jobs are changed or deleted."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import and_, bindparam, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from app.clock import Millis
from app.database.engine import affected
from app.database.rows import bulk, deletion
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.domain.rounds.kinds import RoundReason, RoundState
from app.models.job import Job
from app.models.round import After, Round
from app.store.rounds.rounds import delete_rounds

#: rounds of one statement
BATCH = 1_000


class OpenRound(NamedTuple):
    """A round that waits."""

    id: int
    job_id: int
    opened_ms: Millis
    #: when the instant of a schedule took it; 0: none has
    taken_ms: Millis
    chain: int | None


_COLUMNS = tuple(getattr(Round, name) for name in OpenRound._fields)
_OPEN = (
    select(*_COLUMNS)
    .where(among(Round.job_id), Round.state == RoundState.OPEN.value)
    .order_by(Round.id)
    .with_for_update()
)
_ENDED = (
    update(Round)
    .where(among(Round.id))
    .values(
        state=RoundState.NOT_RUN.value,
        reason=bindparam("because"),
        decided_ms=bindparam("now_ms"),
        due_ms=bindparam("now_ms"),
        epoch=Round.epoch + 1,
    )
)
_WOKEN = update(Round).where(among(Round.id)).values(due_ms=bindparam("now_ms"), epoch=Round.epoch + 1)
_NEWER = aliased(Round)
#: no later round of the job with a key of the same kind is decided
_IS_LAST = ~exists().where(
    _NEWER.job_id == Round.job_id,
    _NEWER.id > Round.id,
    _NEWER.state != RoundState.OPEN.value,
    func.substr(_NEWER.round_key, 1, 1) == func.substr(Round.round_key, 1, 1),
)
_IS_GONE = ~exists().where(Job.id == Round.job_id)
_OLD = (
    select(Round.id)
    .where(
        Round.opened_ms < bindparam("before_ms"),
        or_(
            _IS_GONE,
            and_(
                Round.state != RoundState.OPEN.value,
                Round.decided_ms < bindparam("before_ms"),
                ~_IS_LAST,
            ),
        ),
    )
    .order_by(Round.opened_ms, Round.id)
    .limit(bindparam("most"))
)
_OF_JOBS = select(Round.id).where(among(Round.job_id)).order_by(Round.id).limit(bindparam("most"))


def lock_open(session: Session, job_ids: Collection[int]) -> list[OpenRound]:
    """Lock and return the open rounds of these jobs, ids ascending."""
    rows = bulk.read_among(session, _OPEN, sorted(job_ids)) if job_ids else ()
    return [OpenRound._make(row) for row in rows]


def end_rounds(session: Session, round_ids: Collection[int], *, reason: RoundReason, now_ms: Millis) -> None:
    """End locked rounds that wait; the monitor passes it on to the jobs that follow."""
    if round_ids:
        values = {WANTED: sorted(round_ids), "because": reason.value, "now_ms": now_ms}
        direct.change(session, _ENDED, values)


def wake_rounds(session: Session, round_ids: Collection[int], *, now_ms: Millis) -> None:
    """Let the monitor evaluate locked rounds anew."""
    if round_ids:
        direct.change(session, _WOKEN, {WANTED: sorted(round_ids), "now_ms": now_ms})


def delete_of_jobs(session: Session, job_ids: Collection[int]) -> None:
    """Delete the rounds of these jobs with their arrivals, and what the jobs run after."""
    deletion.by_values(session, After, "job_id", sorted(job_ids))
    while ids := _next_rounds(session, job_ids):
        delete_rounds(session, ids)


def _next_rounds(session: Session, job_ids: Collection[int]) -> list[int]:
    return [row[0] for row in direct.read(session, _OF_JOBS, {WANTED: list(job_ids), "most": BATCH})]


def delete_old(session: Session, *, before_ms: Millis, limit: int) -> int:
    """Delete rounds that were opened and decided before, and those of jobs that are gone; return how many.

    The last decided one of each job and kind stays: the next round since the last one is named after it.
    """
    ids = [row[0] for row in bulk.read_rows(session, _OLD, {"before_ms": before_ms, "most": limit})]
    if ids:
        delete_rounds(session, ids)
    return len(ids)


def end_restored(session: Session, *, now_ms: Millis) -> int:
    """End the open rounds of a restored database, of which followers need not know; return how many."""
    values = {
        "state": RoundState.NOT_RUN.value,
        "reason": RoundReason.RESTORED.value,
        "decided_ms": now_ms,
        "due_ms": 0,
        "epoch": Round.epoch + 1,
    }
    return affected(session, update(Round).where(Round.state == RoundState.OPEN.value).values(values))
