"""Evidence for promises: the runs of instants, open runs, ends of runs, last successes. Reads only."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from app.clock import HOUR_MS, SECOND_MS, Millis
from app.database.rows import bulk
from app.domain.completeness.equation import JAVA_MS
from app.domain.enums import FireState, HandleCode, TriggerType
from app.domain.promises.judgement import ChainRun
from app.domain.promises.promise import RUNNING_KINDS
from app.models.base import zone_name
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.promise import JobPromise
from app.settings.parsers import is_zone
from app.store.fires import logs
from app.store.fires.queue import SCHEDULED

#: a run begins in whole seconds, and may be sent a little ahead
EARLY_MS: Millis = 2 * SECOND_MS
#: instants of one statement
INSTANTS = 500

#: when a run of a schedule was due, which a calendar may have moved; of others its logical time. null: the
#: trigger time, which is of another type
_LOGICAL = func.coalesce(JobLog.fire_time, JobLog.logical_ms)
_DUE = case(
    (Fire.trigger_type.in_(SCHEDULED), Fire.due_time), else_=func.coalesce(Fire.logical_ms, Fire.due_time)
)
_RUN = (
    JobLog.id,
    JobLog.trigger_time,
    JobLog.handle_time,
    JobLog.trigger_code,
    JobLog.handle_code,
    JobLog.executor_sharding_param,
    JobLog.killed,
)

#: successes that are read at once, if the last one is a retry of a backfill
SUCCESSES = 100

Chains = dict[tuple[int, Millis], list[ChainRun]]


def find_chains(
    session: Session, instants_by_job: Mapping[int, Collection[Millis]], *, by_hand: bool = False
) -> Chains:
    """Return job id and instant -> its scheduled runs and their retries, by log id.

    ``by_hand``: and its runs of any other type, such as one that a user has run again or of a backfill. A run
    of a Java admin, which does not note its instant, stands for the last one before it.
    """
    chains: Chains = defaultdict(list)
    is_scheduled = JobLog.trigger_type.in_([*SCHEDULED, TriggerType.RETRY]) | JobLog.trigger_type.is_(None)
    is_of_type = [] if by_hand else [is_scheduled]
    for page in _by_age(instants_by_job):
        instants_of = {job_id: sorted(set(instants_by_job[job_id])) for _ms, job_id in page}
        last_ms = max(instants[-1] for instants in instants_of.values())
        query = (
            select(JobLog.job_id, _LOGICAL, JobLog.trigger_type, JobLog.source_log_id, *_RUN)
            .where(
                JobLog.job_id.in_(list(instants_of)),
                JobLog.trigger_time >= page[0][0] - EARLY_MS,
                *is_of_type,
                _LOGICAL.is_(None) | (last_ms >= _LOGICAL),
            )
            .order_by(JobLog.id)
        )
        by_run: dict[int, Millis] = {}
        rows = list(bulk.read_rows(session, query))
        left_out = set[int]() if by_hand else _foreign_retries(session, rows)
        for job_id, logical_ms, trigger_type, source_id, *columns in rows:
            run = ChainRun(*columns)
            if run.log_id in left_out:
                continue
            at_ms = run.trigger_ms if logical_ms is None else logical_ms
            stands_for = _instant_of(instants_of[job_id], at_ms, is_java=trigger_type is None)
            # A retry has the logical time of its run, whose instant a calendar may have moved.
            stands_for = by_run.get(source_id or 0, stands_for)
            if stands_for is not None:
                by_run[run.log_id] = stands_for
                chains[job_id, stands_for].append(run)
    return chains


def _foreign_retries(session: Session, rows: Iterable[Sequence[Any]]) -> set[int]:
    """Return the retries of runs of backfills among the rows of ``find_chains``."""
    known_ids, unknown = set[int](), dict[int, str | None]()
    for _job_id, _logical_ms, trigger_type, source_id, log_id, *_ in rows:
        if trigger_type == TriggerType.RETRY and source_id not in known_ids:
            unknown[log_id] = trigger_type
        else:
            known_ids.add(log_id)
    return logs.find_of_backfills(session, unknown)


def _by_age(instants_by_job: Mapping[int, Collection[Millis]]) -> Iterator[list[tuple[Millis, int]]]:
    """Yield pages of first instants and jobs; none makes another read more than twice as far back."""
    oldest_first = sorted((min(instants), job_id) for job_id, instants in instants_by_job.items() if instants)
    newest_ms = oldest_first[-1][0] if oldest_first else 0
    for _size, pairs in groupby(oldest_first, lambda pair: ((newest_ms - pair[0]) // HOUR_MS).bit_length()):
        of_age = [*pairs]
        yield from (of_age[first : first + INSTANTS] for first in range(0, len(of_age), INSTANTS))


def _instant_of(instants: list[Millis], at_ms: Millis, *, is_java: bool) -> Millis | None:
    place = bisect_right(instants, at_ms)
    if not place:
        return None
    before_ms = instants[place - 1]
    is_of_it = at_ms - before_ms <= JAVA_MS if is_java else at_ms == before_ms
    return before_ms if is_of_it else None


class OpenRun(NamedTuple):
    """A run in progress of a job that promises how long it takes."""

    log_id: int
    job_id: int
    sent_ms: Millis
    instant: Millis
    number: int
    definition: str
    usual: str | None
    since_ms: Millis
    #: of its job, by which the hour counts
    time_zone: str


def find_open(session: Session) -> list[OpenRun]:
    """Return the runs in progress of jobs that promise how long a run takes, once for each such promise."""
    query = (
        select(
            Fire.log_id,
            Fire.job_id,
            Fire.sent_ms,
            _DUE,
            JobPromise.number,
            JobPromise.definition,
            JobPromise.usual,
            JobPromise.since_ms,
            Job.time_zone,
            Fire.trigger_type,
        )
        .join(JobPromise, JobPromise.job_id == Fire.job_id)
        .join(Job, Job.id == Fire.job_id)
        .where(
            JobPromise.kind.in_([kind.value for kind in RUNNING_KINDS]),
            Fire.state.in_([FireState.SENDING.value, FireState.ACCEPTED.value, FireState.UNKNOWN.value]),
            Fire.sent_ms > 0,
            Fire.log_id.is_not(None),
            Fire.trigger_type != TriggerType.BACKFILL,
        )
    )
    rows = list(bulk.read_rows(session, query))
    left_out = logs.find_of_backfills(session, {row[0]: row[-1] for row in rows})
    runs = (OpenRun._make(row[:-1]) for row in rows if row[0] not in left_out)
    return [run if is_zone(run.time_zone) else run._replace(time_zone=zone_name()) for run in runs]


class EndedRun(NamedTuple):
    """A run that has ended."""

    log_id: int
    job_id: int
    group_id: int
    instant: Millis
    trigger_ms: Millis
    duration_ms: Millis | None
    handle_code: int


def find_ended(session: Session, log_ids: Collection[int]) -> dict[int, EndedRun]:
    """Return runs by log id; those that were cleared meanwhile are missing."""
    columns = (JobLog.id, JobLog.job_id, JobLog.job_group, _LOGICAL, JobLog.trigger_time)
    query = select(*columns, JobLog.duration_ms, JobLog.handle_code).where(JobLog.id.in_(list(log_ids)))
    runs = (EndedRun._make(row) for row in bulk.read_rows(session, query))
    return {run.log_id: run._replace(instant=run.instant or run.trigger_ms) for run in runs}


def find_last_chains(
    session: Session, job_id: int, *, since_ms: Millis, limit: int
) -> list[tuple[Millis, list[ChainRun]]]:
    """Return the instants of a job that have ended, newest first, with all their runs but those of backfills.

    ``limit``: runs that are read. An instant with an open run, or whose retry waits, has not ended.
    """
    query = (
        select(_LOGICAL, *_RUN, JobLog.trigger_type)
        .where(JobLog.job_id == job_id, JobLog.trigger_time >= since_ms, logs.NO_BACKFILL)
        .order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
        .limit(limit)
    )
    chains: dict[Millis, list[ChainRun]] = {}
    rows = list(bulk.read_rows(session, query))
    left_out = logs.find_of_backfills(session, {row[1]: row[-1] for row in rows})
    for logical_ms, *columns, _ in rows:
        run = ChainRun(*columns)
        if run.log_id in left_out:
            continue
        chains.setdefault(run.trigger_ms if logical_ms is None else logical_ms, []).append(run)
    is_cut = len(rows) == limit
    if is_cut and len(chains) > 1:  # Of the oldest, some runs may not have been read.
        chains.popitem()
    waiting = set(session.scalars(select(_DUE).where(Fire.job_id == job_id)))
    return [(instant, chain) for instant, chain in chains.items() if instant not in waiting]


def find_last_successes(session: Session, job_ids: Collection[int]) -> dict[int, Millis]:
    """Return job id -> when its latest success of any type ended, but those of backfills."""
    pairs = ((job_id, _last_success_ms(session, job_id)) for job_id in job_ids)
    return {job_id: ended_ms for job_id, ended_ms in pairs if ended_ms is not None}


def _last_success_ms(session: Session, job_id: int) -> Millis | None:
    """Return when the latest success ended, by an index: a maximum would read all runs."""
    newest = (
        select(JobLog.id, JobLog.handle_time, JobLog.trigger_type)
        .where(JobLog.job_id == job_id, JobLog.handle_code == HandleCode.SUCCESS, logs.NO_BACKFILL)
        .order_by(JobLog.trigger_time.desc(), JobLog.id.desc())
    )
    start, length = 0, 1
    while rows := list(bulk.read_rows(session, newest.offset(start).limit(length))):
        left_out = logs.find_of_backfills(session, {log_id: kind for log_id, _, kind in rows})
        for log_id, ended_ms, _ in rows:
            if log_id not in left_out and ended_ms is not None:
                return Millis(ended_ms)
        start, length = start + length, SUCCESSES
    return None


def find_instants(session: Session, log_ids: Collection[int]) -> dict[int, tuple[int, Millis]]:
    """Return log id -> job id and instant of a scheduled run or a retry."""
    query = select(JobLog.id, JobLog.job_id, _LOGICAL).where(
        JobLog.id.in_(list(log_ids)), JobLog.trigger_type.in_([*SCHEDULED, TriggerType.RETRY])
    )
    rows = bulk.read_rows(session, query)
    return {log_id: (job_id, instant) for log_id, job_id, instant in rows if instant is not None}
