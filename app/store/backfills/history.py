"""Runs of a job by logical time, as the list of a backfill needs them; and the backfills of runs."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import NamedTuple

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from app.clock import DAY_MS, SECOND_MS, Millis
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.backfills.instants import Standing
from app.domain.enums import FireState, HandleCode, TriggerType
from app.domain.runs.logical_times import AHEAD_DAYS
from app.domain.runs.sharding import parse_shard
from app.models.backfill import Backfill, BackfillInstant
from app.models.fire import Fire
from app.models.log import JobLog
from app.store.fires.logs import is_unfinished

#: a run may be triggered so long before its logical time; it begins in whole seconds
_BEFORE_MS: Millis = AHEAD_DAYS * DAY_MS + 2 * SECOND_MS
#: logical times that are named to the database
_TIMES_MAX = 1_000
#: null: the trigger time, which is of another type
_LOGICAL = func.coalesce(JobLog.logical_ms, JobLog.fire_time)


def find_runs(
    session: Session, job_id: int, from_ms: Millis, to_ms: Millis, *, times: Collection[Millis] = ()
) -> Iterator[tuple[Millis, Standing]]:
    """Yield logical time and standing of the runs of a job in [from, to), those that wait among them.

    ``times``: if there are any, others need not be found. A broadcast has succeeded when each of its shards
    has.
    """
    is_wanted = (from_ms <= _LOGICAL) & (to_ms > _LOGICAL)
    if 0 < len(times) <= _TIMES_MAX:
        is_wanted &= _LOGICAL.in_(sorted(times))
    # What has no logical time begins at it; local time may show an hour twice.
    begins = JobLog.trigger_time.between(max(from_ms - DAY_MS, 0), to_ms + DAY_MS)
    query = select(
        _LOGICAL,
        JobLog.trigger_time,
        JobLog.trigger_code,
        JobLog.handle_code,
        JobLog.executor_sharding_param,
    ).where(
        JobLog.job_id == job_id,
        JobLog.trigger_time >= max(from_ms - _BEFORE_MS, 0),
        or_(_LOGICAL.is_(None) & begins, is_wanted),
    )
    ended_shards = defaultdict[tuple[Millis, int], set[int]](set)
    for noted_ms, trigger_ms, trigger_code, handle_code, sharding in bulk.read_rows(session, query):
        logical_ms = trigger_ms if noted_ms is None else noted_ms
        if not from_ms <= logical_ms < to_ms:
            continue
        standing, shard = _standing(trigger_code, handle_code), parse_shard(sharding)
        if shard is not None and standing is Standing.SUCCEEDED:
            shard_indexes = ended_shards[logical_ms, shard.total]
            shard_indexes.add(shard.index)
            standing = standing if len(shard_indexes) == shard.total else Standing.FAILED
        yield logical_ms, standing
    logical = func.coalesce(Fire.logical_ms, Fire.due_time)
    waiting = select(logical).where(
        Fire.job_id == job_id, Fire.state != FireState.HELD, from_ms <= logical, logical < to_ms
    )
    yield from ((row[0], Standing.RUNNING) for row in bulk.read_rows(session, waiting))


def _standing(trigger_code: int, handle_code: int) -> Standing:
    if is_unfinished(trigger_code, handle_code):
        return Standing.RUNNING
    return Standing.SUCCEEDED if handle_code == HandleCode.SUCCESS else Standing.FAILED


class FirstRun(NamedTuple):
    """A run, of which others may be retries."""

    id: int
    job_id: int
    trigger_type: str | None
    source_log_id: int | None
    trigger_key: int | None
    logical_ms: Millis | None


_BY_ID = select(*(getattr(JobLog, name) for name in FirstRun._fields)).where(among(JobLog.id))
_OF_INSTANTS = (
    select(Backfill.job_id, BackfillInstant.logical_ms, Backfill.id, Backfill.attempt)
    .join(BackfillInstant, BackfillInstant.backfill_id == Backfill.id)
    .where(among(Backfill.job_id))
)


def find_first_runs(session: Session, log_ids: Collection[int]) -> dict[int, FirstRun]:
    """Return log id -> the run that it is, or that it is a retry of, over however many; one read for each."""
    first, earlier = dict[int, FirstRun](), {log_id: log_id for log_id in log_ids}
    while earlier:
        rows = map(FirstRun._make, bulk.read_among(session, _BY_ID, sorted({*earlier.values()})))
        by_id = {run.id: run for run in rows}
        runs = {log_id: by_id[run_id] for log_id, run_id in earlier.items() if run_id in by_id}
        first |= runs
        earlier = {
            log_id: run.source_log_id
            for log_id, run in runs.items()
            if run.trigger_type == TriggerType.RETRY and run.source_log_id and run.source_log_id < run.id
        }
    return first


def find_of_instants(
    session: Session, job_ids: Collection[int], times: Collection[Millis]
) -> list[tuple[int, Millis, int, int]]:
    """Return job, logical time, id and attempts of the backfills of jobs that have one of some instants."""
    query = _OF_INSTANTS.where(BackfillInstant.logical_ms.in_(list(times)))
    return [(row[0], row[1], row[2], row[3]) for row in bulk.read_among(session, query, sorted(job_ids))]
