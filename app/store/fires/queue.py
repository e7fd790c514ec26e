"""Statements on `xxl_job_fire`: insert, claim and expire fires; checks of sent runs are in ``open``."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.engine import announce_due_fires
from app.database.rows import bulk, deletion
from app.database.sql.in_list import among
from app.database.sql.planner_hints import unindexed_on_sqlite
from app.domain.enums import FireState, ParamForm, TriggerType
from app.domain.runs.logical_times import second_of
from app.domain.runs.sharding import parse_shard
from app.domain.runs.trigger_keys import Trigger, key_of, new_trigger
from app.domain.schedules.planning import DueFire
from app.models.fire import RETRIES_OF_THE_JOB, Fire
from app.store.fires import logs

Row = TypeVar("Row", bound=tuple[Any, ...])

#: trigger types of schedules; the others come from users, parent jobs and failures
SCHEDULED = (TriggerType.CRON, TriggerType.MISFIRE)
#: trigger types of runs that do not move a fixed delay, nor do their retries
OUTSIDE = (TriggerType.MANUAL, TriggerType.PARENT, TriggerType.API, TriggerType.BACKFILL)
#: key prefixes of children and retries, before the log id of the run that they follow
SUCCESSORS = ("child", "retry")
#: key prefix of runs after a round, before its id and the log id of the run that completed it
FOLLOWER = "after"
#: ids with up to this many digits fit the column
ID_DIGITS = 18


class NewFire(NamedTuple):
    """A fire to insert: columns of its row. ``fire_key`` is unique."""

    fire_key: str
    job_id: int
    due_time: Millis
    trigger_type: TriggerType
    executor_param: str | None = None
    address_list: str | None = None
    sharding_param: str | None = None
    fail_retry_count: int = RETRIES_OF_THE_JOB
    owner: str = ""
    #: run that a user repeats
    repeats_log_id: int | None = None
    #: logical time; None: `due_time`
    logical_ms: Millis | None = None
    #: ParamForm of `executor_param`
    param_form: int = 0
    #: when it got its slots; 0: it has none yet
    admitted_ms: Millis = 0
    limit_key: str = ""
    #: number of the trigger that asked for the chain; None: none did
    chain: int | None = None
    #: round that it follows
    round_id: int | None = None
    #: what it waits for from the start; empty: nothing
    waits_for: str = ""


def insert_fires(session: Session, fires: Sequence[NewFire]) -> list[DueFire]:
    """Insert the fires whose key is new; return those with their ids that wait for nothing.

    The caller holds a lock that prevents others from inserting the same keys.
    """
    known_keys = _known_keys(session, [fire.fire_key for fire in fires])
    fresh = list({fire.fire_key: fire for fire in fires if fire.fire_key not in known_keys}.values())
    ids = bulk.insert_with_ids(session, Fire, _rows(fresh))
    return [
        DueFire(fire_id, fire.job_id, fire.due_time)
        for fire_id, fire in zip(ids, fresh, strict=True)
        if not fire.waits_for
    ]


def insert_unless_known(session: Session, fires: Sequence[NewFire], *, now_ms: Millis) -> None:
    """Insert fires, except those whose key exists."""
    if fires:
        bulk.insert_ignore(session, Fire, _rows(fires))
    if any(fire.due_time <= now_ms for fire in fires):
        announce_due_fires(session)


def insert_manual(
    session: Session,
    job_id: int,
    *,
    executor_param: str | None,
    address_list: str | None,
    due_ms: Millis,
    is_planned: bool = False,
    request: str = "",
    repeats: int | None = None,
    logical_ms: Millis | None = None,
    param_form: ParamForm = ParamForm.TEXT,
    admitted_ms: Millis = 0,
    limit_key: str = "",
    chain: int | None = None,
    round_id: int | None = None,
    opens_chain: bool = False,
    sharding_param: str | None = None,
) -> Trigger:
    """Insert a fire of a trigger, due now or ``is_planned`` for later; ``repeats``: the log id of a run.

    ``logical_ms``: logical time; None: the second in which it is due. ``admitted_ms``: when a user gave it
    its slots, whatever the limits have; ``limit_key``: for which it counts then. ``chain``, ``round_id``
    and ``sharding_param``: of the run that is repeated; ``opens_chain``: the chain is that of this trigger.
    """
    trigger = new_trigger(job_id, due_ms)
    key = key_of(trigger, is_planned=is_planned, request=request)
    if (shard := parse_shard(sharding_param)) is not None:
        key = f"{key}:{shard.index}"
    fire = NewFire(
        key,
        job_id,
        due_ms,
        TriggerType.MANUAL,
        executor_param=executor_param,
        address_list=address_list,
        sharding_param=sharding_param if shard is not None else None,
        repeats_log_id=repeats,
        logical_ms=second_of(due_ms) if logical_ms is None else logical_ms,
        param_form=param_form.value,
        admitted_ms=admitted_ms,
        limit_key=limit_key,
        chain=trigger.number if opens_chain else chain,
        round_id=round_id,
    )
    bulk.insert_whole(session, Fire, _rows([fire]))
    if not is_planned:
        announce_due_fires(session)
    return trigger


class BatchFire(NamedTuple):
    """A fire of a trigger due now, of a batch."""

    trigger: Trigger
    #: None: the job's
    executor_param: str | None
    #: id of the request
    request: str
    logical_ms: Millis
    param_form: ParamForm
    #: when a user gave it its slots, whatever the limits have; 0: none has
    admitted_ms: Millis = 0
    #: for which it counts then
    limit_key: str = ""


def insert_batch(session: Session, new: Sequence[BatchFire]) -> None:
    """Insert fires of triggers due now."""
    fires = [
        NewFire(
            key_of(trigger, is_planned=False, request=request),
            trigger.job_id,
            trigger.due_ms,
            TriggerType.MANUAL,
            executor_param,
            logical_ms=logical_ms,
            param_form=param_form.value,
            admitted_ms=admitted_ms,
            limit_key=limit_key,
        )
        for trigger, executor_param, request, logical_ms, param_form, admitted_ms, limit_key in new
    ]
    bulk.insert_whole(session, Fire, _rows(fires))
    if fires:
        announce_due_fires(session)


_KNOWN_KEYS = select(Fire.fire_key).where(among(Fire.fire_key))


def _known_keys(session: Session, keys: list[str]) -> set[str]:
    return {row[0] for row in bulk.read_among(session, _KNOWN_KEYS, keys)} if keys else set()


def source_of(fire_key: str) -> int | None:
    """Return the log id of the run that a fire follows, from its key: of a child, a retry, or after a round.

    None for other fires.
    """
    kind, _, rest = fire_key.partition(":")
    if kind == FOLLOWER:
        rest = rest.partition(":")[2]
    elif kind not in SUCCESSORS:
        return None
    source = rest.partition(":")[0]
    is_id = source.isascii() and source.isdigit() and len(source) <= ID_DIGITS
    return int(source) or None if is_id else None


def _rows(fires: Iterable[NewFire]) -> list[bulk.Row]:
    """Return the rows of fires; without columns that none of them needs."""
    rows = list(map(_row, fires))
    for defaults in _SELDOM:
        if all(row[name] == value for row in rows for name, value in defaults.items()):
            for row in rows:
                for name in defaults:
                    del row[name]
    return rows


#: columns of admitted fires, of those in chains and rounds, and of those that wait from the start, with their
#: defaults; a `chain` of 0 is none
_SELDOM: tuple[Mapping[str, int | str | None], ...] = (
    {"admitted_ms": 0, "limit_key": ""},
    {"chain": None, "round_id": None},
    {"waits_for": ""},
)


def _row(fire: NewFire) -> bulk.Row:
    return fire._asdict() | {
        "trigger_type": fire.trigger_type.value,
        "state": (FireState.GATED if fire.waits_for else FireState.PENDING).value,
        "logical_ms": fire.due_time if fire.logical_ms is None else fire.logical_ms,
    }


class PendingFire(NamedTuple):
    """A PENDING fire as the claim reads it."""

    id: int
    job_id: int
    fire_key: str
    due_time: Millis
    trigger_type: str
    executor_param: str | None
    address_list: str | None
    sharding_param: str | None
    fail_retry_count: int
    log_id: int | None
    address: str | None
    attempt: int
    owner: str
    epoch: int
    #: of the durable executor that may have the run; empty: not sent yet, or sent to a foreign executor
    boot_id: str
    #: run that a user repeats by this one
    repeats_log_id: int | None = None
    #: ParamForm of `executor_param`
    param_form: int = 0
    #: None: `due_time`, of a fire that an older version has inserted
    logical_ms: Millis | None = None
    #: when it got its slots; 0: it has none
    admitted_ms: Millis = 0
    limit_key: str = ""
    chain: int | None = None
    round_id: int | None = None

    @property
    def logical_time(self) -> Millis:
        """What its run stands for."""
        return self.due_time if self.logical_ms is None else self.logical_ms

    @property
    def is_prepared(self) -> bool:
        """Whether it has a log row although it was never claimed."""
        return self.log_id is not None and self.epoch == 0


_CLAIMED_BY = tuple(getattr(Fire, name) for name in PendingFire._fields)


def by_id(rows: Select[Row]) -> Select[Row]:
    """Force the primary key for a locking read by id on MySQL and MariaDB.

    Their optimizer may choose an index on the state. That locks index entries before rows, whereas a
    transaction that changes a state has locked the row and waits for the entry: a deadlock.
    """
    return rows.with_hint(Fire, "FORCE INDEX (PRIMARY)", "mysql")


_BY_ID = by_id(select(*_CLAIMED_BY)).where(among(Fire.id)).order_by(Fire.id).with_for_update(skip_locked=True)
_PENDING = _BY_ID.where(unindexed_on_sqlite(Fire.state) == FireState.PENDING)
_WAITING = _BY_ID.where(unindexed_on_sqlite(Fire.state) == FireState.WAITING)
_GATED = _BY_ID.where(unindexed_on_sqlite(Fire.state) == FireState.GATED)
_UNSENT = _BY_ID.where(unindexed_on_sqlite(Fire.state).in_([FireState.PENDING, FireState.WAITING]))


def lock_pending(session: Session, fire_ids: Collection[int]) -> list[PendingFire]:
    """Lock and return the fires that are still PENDING and not locked by another claim, ids ascending."""
    rows = bulk.read_among(session, _PENDING, list(fire_ids))
    return [PendingFire._make(row) for row in rows]


def lock_unsent(session: Session, fire_ids: Collection[int]) -> list[PendingFire]:
    """Lock and return fires as ``lock_pending``, also those that wait for a limit."""
    rows = bulk.read_among(session, _UNSENT, list(fire_ids)) if fire_ids else ()
    return [PendingFire._make(row) for row in rows]


def lock_waiting(session: Session, fire_ids: Collection[int]) -> list[PendingFire]:
    """Lock and return fires as ``lock_pending``, only those that wait for a limit."""
    rows = bulk.read_among(session, _WAITING, list(fire_ids)) if fire_ids else ()
    return [PendingFire._make(row) for row in rows]


def lock_gated(session: Session, fire_ids: Collection[int]) -> list[PendingFire]:
    """Lock and return fires as ``lock_pending``, only those that wait for a round or a blackout."""
    rows = bulk.read_among(session, _GATED, list(fire_ids)) if fire_ids else ()
    return [PendingFire._make(row) for row in rows]


def delete_fires(session: Session, fire_ids: Iterable[int]) -> int:
    """Delete fires by id; return how many there were."""
    return deletion.by_values(session, Fire, "id", sorted(fire_ids))


_OF_JOBS = select(Fire.id).where(among(Fire.job_id))


def delete_of_jobs(session: Session, job_ids: Sequence[int]) -> int:
    """Delete all fires of deleted jobs, by id because a claim locks them so, until no fire is left."""
    count = 0
    while rows := bulk.read_among(session, _OF_JOBS, job_ids):
        count += delete_fires(session, [row[0] for row in rows])
    return count


def delete_of_logs(session: Session, log_ids: Collection[int]) -> int:
    """Delete the fires of log rows being cleared; the caller holds the locks of the log rows."""
    return deletion.by_values(session, Fire, "log_id", list(log_ids))


_OUT = select(Fire.job_id, Fire.trigger_type, Fire.fire_key).where(
    among(Fire.job_id),
    Fire.trigger_type.in_([*SCHEDULED, TriggerType.RETRY]),
    Fire.state != FireState.HELD,
)


def count_open_scheduled(session: Session, job_ids: Collection[int]) -> dict[int, int]:
    """Return job id -> number of its open fires of the schedule, with retries of such runs."""
    counts: dict[int, int] = dict.fromkeys(job_ids, 0)
    rows = bulk.read_among(session, _OUT, list(job_ids)) if job_ids else []
    retried_ids = [source_of(key) or 0 for _, kind, key in rows if kind == TriggerType.RETRY]
    origins = logs.find_origins(session, retried_ids)
    for job_id, _, key in rows:
        origin = origins.get(source_of(key) or 0)
        # A retry whose first run was deleted may belong to the schedule.
        if origin is None or origin.trigger_type not in OUTSIDE:
            counts[job_id] += 1
    return counts
