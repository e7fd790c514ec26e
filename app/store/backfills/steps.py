"""Steps of backfills: which are active, their instants, and the runs of these."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database import single_statement
from app.database.engine import affected
from app.database.rows import bulk
from app.database.sql import direct
from app.database.sql.in_list import among
from app.domain.backfills.kinds import ACTIVE, InstantState
from app.domain.enums import FireState, TriggerType
from app.models.backfill import Backfill, BackfillInstant
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog


class BackfillRow(NamedTuple):
    """A backfill, as its steps read it."""

    id: int
    job_id: int
    state: str
    max_running: int
    children: str
    on_failure: str
    attempt: int


_ROW = select(*(getattr(Backfill, name) for name in BackfillRow._fields)).where(
    Backfill.id == bindparam("backfill_id")
)
_LOCKED_ROW = _ROW.with_for_update()
#: trigger types of the runs of backfills
_TYPES = (TriggerType.BACKFILL.value, TriggerType.RETRY.value)
_OPEN = (Fire.job_id == Backfill.job_id) & Fire.trigger_type.in_(_TYPES) & (Fire.state != FireState.HELD)
_SIGN = (Backfill.id, Backfill.state, Backfill.updated_ms, Job.id)
_ACTIVE = (
    select(*_SIGN, func.count(Fire.id), func.max(Fire.id), func.sum(Fire.id))
    .join(Job, Job.id == Backfill.job_id, isouter=True)
    .join(Fire, _OPEN, isouter=True)
    .where(Backfill.state.in_(ACTIVE))
    .group_by(*_SIGN)
    .order_by(Backfill.id)
)


def find_active() -> dict[int, tuple[object, ...]]:
    """Return the backfills of which something may run, each with a sign; opens its own transaction.

    While the sign stays the same a step finds the same: it is that of the last change, of the job, and of the
    open fires, which are gone when their runs have ended.
    """
    return {row[0]: tuple(row[1:]) for row in single_statement.read(_ACTIVE, {})}


def find_row(session: Session, backfill_id: int, *, lock: bool = False) -> BackfillRow | None:
    """Return a backfill; ``lock``: and lock it, so that no other step or change of it is made meanwhile."""
    rows = direct.read(session, _LOCKED_ROW if lock else _ROW, {"backfill_id": backfill_id})
    return BackfillRow._make(rows[0]) if rows else None


def write_backfill(session: Session, backfill_id: int, **columns: object) -> None:
    """Change columns of a locked backfill."""
    affected(session, update(Backfill).where(Backfill.id == backfill_id).values(**columns))


class InstantRow(NamedTuple):
    """An instant of a backfill."""

    id: int
    logical_ms: Millis
    attempt: int


_INSTANTS = (
    select(*(getattr(BackfillInstant, name) for name in InstantRow._fields))
    .where(
        BackfillInstant.backfill_id == bindparam("backfill_id"),
        BackfillInstant.state == bindparam("state"),
    )
    .order_by(BackfillInstant.number)
    .limit(bindparam("most"))
)
_FAILED = (
    select(BackfillInstant.id)
    .where(
        BackfillInstant.backfill_id == bindparam("backfill_id"),
        BackfillInstant.state == InstantState.FAILED.value,
        BackfillInstant.attempt == bindparam("attempt"),
    )
    .limit(1)
)


def find_instants(session: Session, backfill_id: int, state: InstantState, *, limit: int) -> list[InstantRow]:
    """Return the first instants in a state, in the order of the backfill."""
    parameters = {"backfill_id": backfill_id, "state": state.value, "most": limit}
    return [InstantRow._make(row) for row in direct.read(session, _INSTANTS, parameters)]


def has_failed(session: Session, backfill_id: int, attempt: int) -> bool:
    """Whether an instant has failed in an attempt."""
    return bool(direct.read(session, _FAILED, {"backfill_id": backfill_id, "attempt": attempt}))


def write_instants(session: Session, rows: Sequence[bulk.Row]) -> None:
    """Write what became of instants; the caller has locked the backfill."""
    bulk.update_many(session, BackfillInstant, rows)


def move_all(
    session: Session, backfill_id: int, former: InstantState, state: InstantState, **columns: object
) -> int:
    """Give all instants in one state another one; return how many there were."""
    statement = update(BackfillInstant).where(
        BackfillInstant.backfill_id == backfill_id, BackfillInstant.state == former
    )
    return affected(session, statement.values(state=state.value, **columns))


class OpenFire(NamedTuple):
    """A fire of a run, or of its retry, that has not ended."""

    id: int
    fire_key: str
    trigger_type: str
    logical_ms: Millis
    chain: int | None
    #: no claim has taken it, so that it can be withdrawn
    is_unsent: bool


_FIRES = select(
    Fire.id,
    Fire.fire_key,
    Fire.trigger_type,
    func.coalesce(Fire.logical_ms, Fire.due_time),
    Fire.chain,
    Fire.state,
    Fire.log_id,
    Fire.attempt,
    Fire.epoch,
).where(
    among(Fire.job_id),
    Fire.trigger_type.in_(_TYPES),
    Fire.state != FireState.HELD,
)
_UNSENT = (FireState.PENDING, FireState.WAITING, FireState.GATED)


def find_fires(session: Session, job_id: int) -> list[OpenFire]:
    """Return the fires of backfills and retries of a job; not those of runs that ended as unresolved."""
    return [
        OpenFire(
            fire_id, key, kind, at_ms, chain, state in _UNSENT and log_id is None and not (attempt or epoch)
        )
        for fire_id, key, kind, at_ms, chain, state, log_id, attempt, epoch in bulk.read_among(
            session, _FIRES, [job_id]
        )
    ]


class EndOfRun(NamedTuple):
    """A run of an instant, and whether it has ended."""

    log_id: int
    #: number of its trigger; of a retry the run that it repeats
    source: int
    trigger_code: int
    handle_code: int
    retries_left: int


_RUN = (
    JobLog.trigger_code,
    JobLog.handle_code,
    JobLog.executor_fail_retry_count,
)
_FIRST = select(JobLog.id, JobLog.trigger_key, *_RUN).where(
    among(JobLog.trigger_key), JobLog.trigger_type == TriggerType.BACKFILL
)
_RETRIES = select(JobLog.id, JobLog.source_log_id, *_RUN).where(
    among(JobLog.source_log_id), JobLog.trigger_type == TriggerType.RETRY
)


def find_first_runs(session: Session, numbers: Collection[int]) -> list[EndOfRun]:
    """Return the first runs of triggers: one, or one for each shard of a broadcast."""
    rows = bulk.read_among(session, _FIRST, sorted(numbers)) if numbers else ()
    return [EndOfRun._make(row) for row in rows]


def find_retries(session: Session, log_ids: Collection[int]) -> list[EndOfRun]:
    """Return the retries of runs."""
    rows = bulk.read_among(session, _RETRIES, sorted(log_ids)) if log_ids else ()
    return [EndOfRun._make(row) for row in rows]
