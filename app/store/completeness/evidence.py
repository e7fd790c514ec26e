"""Evidence on the instants of schedules: runs with their retries, fires and skips. Reads only."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from app.clock import DAY_MS, HOUR_MS, SECOND_MS, Millis
from app.database.rows import bulk
from app.database.sql.in_list import among
from app.domain.completeness.days import day_of
from app.domain.completeness.equation import (
    ON_TIME_MS,
    Evidence,
    InstantRuns,
    Outcome,
    SkippedTimes,
    Term,
)
from app.domain.completeness.expected_instants import Interval
from app.domain.completeness.rule_instants import BLACKOUT, CALENDAR
from app.domain.enums import FireState, HandleCode, TriggerCode, TriggerType
from app.domain.runs.outcome import OPEN, outcome_of
from app.domain.schedules.schedule import zone
from app.models.base import zone_name
from app.models.fire import Fire
from app.models.log import JobLog
from app.models.skip import Skip
from app.store.completeness.days import find_removed
from app.store.fires.queue import SCHEDULED, source_of

#: runs that began later than this after an interval are not looked for
LATE_MAX_MS: Millis = DAY_MS
#: those of jobs with instants that nothing explains are: a run may wait for a limit so long
WAITED_MAX_MS: Millis = 31 * DAY_MS
#: a run begins in whole seconds, and may be sent a little ahead
EARLY_MS: Millis = 2 * SECOND_MS
#: trigger times are local times: after a change of XXL_JOB_TIMEZONE older ones seem so much earlier at most
SHIFT_MAX_MS: Millis = 27 * HOUR_MS
#: retries that are followed from a run
RETRIES_FOLLOWED = 100

#: when a run of a schedule was due, which is not its logical time if a calendar has moved it
_INSTANT = func.coalesce(JobLog.fire_time, JobLog.logical_ms)
_DUE = Fire.due_time
#: reasons of skips that are written by the rule, as the equation counts these instants
_BY_RULE = (CALENDAR, BLACKOUT)


class _Run(NamedTuple):
    """A run of a schedule, or a retry of one."""

    id: int
    job_id: int
    instant: Millis | None
    trigger_time: Millis | None
    late_ms: Millis | None
    not_started: str
    trigger_code: int
    handle_code: int
    shard: str | None
    source_id: int | None
    trigger_type: str | None


_COLUMNS = (
    JobLog.id,
    JobLog.job_id,
    _INSTANT,
    JobLog.trigger_time,
    JobLog.late_ms,
    JobLog.not_started,
    JobLog.trigger_code,
    JobLog.handle_code,
    JobLog.executor_sharding_param,
    JobLog.source_log_id,
    JobLog.trigger_type,
)
_RETRIES = select(*_COLUMNS).where(
    among(JobLog.source_log_id), JobLog.trigger_type == TriggerType.RETRY.value
)
_RETRY_FIRES = select(Fire.fire_key).where(
    among(Fire.job_id), Fire.trigger_type == TriggerType.RETRY.value, Fire.log_id.is_(None)
)
_OPEN_RUNS = select(Fire.job_id).where(among(Fire.job_id), Fire.state != FireState.HELD)
_LAST_ENDS = (
    select(JobLog.job_id, func.max(JobLog.handle_time), func.max(JobLog.trigger_time))
    .where(among(JobLog.job_id), JobLog.trigger_type.in_([*SCHEDULED, TriggerType.RETRY]))
    .group_by(JobLog.job_id)
)

_LAST_SKIPS = (
    select(Skip.job_id, func.max(Skip.recorded_ms))
    .where(among(Skip.job_id), Skip.trigger_type == "")
    .group_by(Skip.job_id)
)


def find_evidence(
    session: Session,
    job_ids: Collection[int],
    interval: Interval,
    *,
    delayed_ids: Collection[int] = (),
    early_ms: Millis = EARLY_MS,
) -> dict[int, Evidence]:
    """Return job id -> evidence on the instants of an interval; ``delayed_ids``: jobs of a fixed delay.

    ``early_ms``: runs that seem to have begun so long before an instant are looked for, too; if it is given,
    also those that began up to WAITED_MAX_MS later.
    Fires are read before runs: a fire that is claimed in between is a run then.
    """
    waiting, retried_ids = _find_waiting(session, job_ids, interval)
    idle = _find_idle(session, delayed_ids)
    skips, tz = _find_skips(session, job_ids, interval), zone(zone_name())
    first, last = day_of(interval.from_ms, tz), day_of(interval.until_ms - 1, tz)
    deleted_runs = find_removed(session, job_ids, first, last)
    runs, java = _find_runs(session, job_ids, interval, early_ms)
    chains = _Chains(session, [run for run in runs if _may_be_retried(run)], retried_ids)
    by_job: defaultdict[int, dict[Millis, InstantRuns]] = defaultdict(dict)
    shards: Counter[tuple[int, Millis | None, str | None]] = Counter()
    for run in runs:
        shards[run.job_id, run.instant, _shard_index(run)] += 1
        if run.instant is not None and interval.from_ms <= run.instant < interval.until_ms:
            of_job = by_job[run.job_id]
            shard_count = shards[run.job_id, run.instant, _shard_index(run)]
            of_job[run.instant] = _merge(of_job.get(run.instant), chains.entry_of(run), shard_count)
    return {
        job_id: Evidence(
            by_job.get(job_id, {}),
            waiting.get(job_id, frozenset()),
            skips.get(job_id, ()),
            sorted(java.get(job_id, ())),
            idle.get(job_id),
            deleted_runs.get(job_id, {}),
        )
        for job_id in job_ids
    }


def find_planned_instants(
    session: Session, job_ids: Collection[int], *, since_ms: Millis
) -> dict[int, set[Millis]]:
    """Return job id -> instants after another one, for which the schedule has made a fire or a run."""
    instants: defaultdict[int, set[Millis]] = defaultdict(set)
    fires = select(Fire.job_id, _DUE).where(
        Fire.job_id.in_(list(job_ids)), Fire.trigger_type.in_(SCHEDULED), since_ms < _DUE
    )
    runs = select(JobLog.job_id, _INSTANT).where(
        JobLog.job_id.in_(list(job_ids)),
        JobLog.trigger_type.in_(SCHEDULED),
        JobLog.trigger_time >= since_ms - 2 * SECOND_MS,
        since_ms < _INSTANT,
    )
    for query in (fires, runs):
        for job_id, instant in bulk.read_rows(session, query):
            instants[job_id].add(instant)
    return dict(instants)


def _find_waiting(
    session: Session, job_ids: Collection[int], interval: Interval
) -> tuple[dict[int, set[Millis]], set[int]]:
    """Return the instants of fires without a run by job, and the ids of runs whose retry is such a fire."""
    query = select(Fire.job_id, _DUE).where(
        Fire.job_id.in_(list(job_ids)),
        Fire.trigger_type.in_(SCHEDULED),
        Fire.log_id.is_(None),
        interval.from_ms <= _DUE,
        interval.until_ms > _DUE,
    )
    waiting: defaultdict[int, set[Millis]] = defaultdict(set)
    for job_id, instant in bulk.read_rows(session, query):
        waiting[job_id].add(instant)
    keys = bulk.read_among(session, _RETRY_FIRES, list(job_ids))
    return dict(waiting), {source_of(row[0]) or 0 for row in keys}


def _find_idle(session: Session, job_ids: Collection[int]) -> dict[int, Millis]:
    """Return when the last run of jobs ended, or was skipped, that have neither a fire nor an open run."""
    if not job_ids:
        return {}
    busy = {row[0] for row in bulk.read_among(session, _OPEN_RUNS, list(job_ids))}
    idle = [job_id for job_id in job_ids if job_id not in busy]
    ends = dict.fromkeys(idle, 0)
    for job_id, ended_ms, began_ms in bulk.read_among(session, _LAST_ENDS, idle):
        ends[job_id] = max(ended_ms or 0, began_ms or 0)
    for job_id, skipped_ms in bulk.read_among(session, _LAST_SKIPS, idle):  # A delay counts from its skip.
        ends[job_id] = max(ends[job_id], skipped_ms)
    return ends


def _find_skips(
    session: Session, job_ids: Collection[int], interval: Interval
) -> dict[int, list[SkippedTimes]]:
    query = select(Skip.job_id, Skip.from_ms, Skip.to_ms, Skip.reason).where(
        Skip.to_ms >= interval.from_ms,
        Skip.from_ms < interval.until_ms,
        Skip.job_id.in_(list(job_ids)),
        Skip.trigger_type == "",
        Skip.reason.not_in(_BY_RULE),
    )
    skips: defaultdict[int, list[SkippedTimes]] = defaultdict(list)
    for job_id, *times in bulk.read_rows(session, query):
        skips[job_id].append(SkippedTimes(*times))
    return dict(skips)


def _find_runs(
    session: Session, job_ids: Collection[int], interval: Interval, early_ms: Millis
) -> tuple[list[_Run], dict[int, list[Millis]]]:
    """Return the scheduled runs, and by job when runs of a Java admin began."""
    of_schedule = JobLog.trigger_type.in_(SCHEDULED) | JobLog.trigger_type.is_(None)
    is_second_look = early_ms > EARLY_MS
    query = select(*_COLUMNS).where(
        JobLog.job_id.in_(list(job_ids)),
        JobLog.trigger_time >= interval.from_ms - early_ms,
        JobLog.trigger_time < interval.until_ms + (WAITED_MAX_MS if is_second_look else LATE_MAX_MS),
        of_schedule,
    )
    if is_second_look:
        of_java = and_(
            JobLog.trigger_type.is_(None),
            JobLog.trigger_time >= interval.from_ms - EARLY_MS,
            JobLog.trigger_time < interval.until_ms + SHIFT_MAX_MS,
        )
        query = query.where(_INSTANT.between(interval.from_ms, interval.until_ms - 1) | of_java)
    runs: list[_Run] = []
    java: defaultdict[int, list[Millis]] = defaultdict(list)
    for row in bulk.read_rows(session, query.order_by(JobLog.id)):
        run = _Run._make(row)
        if run.trigger_type is not None:
            runs.append(run)
        elif run.trigger_time is not None:
            java[run.job_id].append(run.trigger_time)
    return runs, dict(java)


def _may_be_retried(run: _Run) -> bool:
    return run.trigger_code not in (TriggerCode.NONE,) and run.handle_code != HandleCode.SUCCESS


class _Chains:
    """Runs with the retries that follow them."""

    def __init__(self, session: Session, roots: Sequence[_Run], retried_ids: Collection[int]) -> None:
        #: run -> its retry
        self._retries: dict[int, _Run] = {}
        self._waiting = retried_ids
        sources: Sequence[int] = [run.id for run in roots]
        for _ in range(RETRIES_FOLLOWED):
            if not sources:
                break
            retries = [_Run._make(row) for row in bulk.read_among(session, _RETRIES, sources)]
            self._retries |= {run.source_id: run for run in retries if run.source_id is not None}
            sources = [run.id for run in retries]

    def entry_of(self, root: _Run) -> InstantRuns:
        """Return what a run of the schedule and its retries say of its instant."""
        chain = [*self._follow(root)]
        outcome = Outcome.RUNNING if chain[-1].id in self._waiting else _outcome(chain[-1])
        if not root.not_started:
            is_late = _late_ms(root) > ON_TIME_MS
            return InstantRuns(Term.LATE if is_late else Term.ON_TIME, outcome, root.id)
        if any(not run.not_started for run in chain[1:]):
            return InstantRuns(Term.LATE, outcome, root.id)
        if outcome is Outcome.RUNNING:
            return InstantRuns(Term.WAITING, outcome, root.id)
        return InstantRuns(Term.NOT_STARTED, outcome, root.id, chain[-1].not_started)

    def _follow(self, run: _Run) -> Iterable[_Run]:
        following: _Run | None = run
        while following is not None:
            yield following
            following = self._retries.get(following.id)


def _late_ms(run: _Run) -> Millis:
    """Return how long after its instant a run was sent; of one that has not noted it, by its trigger."""
    if run.late_ms is not None:
        return run.late_ms
    assert run.instant is not None, "a run without an instant is left out"
    return (run.trigger_time or 0) - run.instant // SECOND_MS * SECOND_MS


def _outcome(run: _Run) -> Outcome:
    outcome = outcome_of(run.trigger_code, run.handle_code)
    if outcome in OPEN:
        return Outcome.RUNNING
    if outcome == "unresolved":
        return Outcome.UNRESOLVED
    return Outcome.FINISHED if outcome == "success" else Outcome.FAILED


#: the better of two runs of an instant counts for its term, the worse for its outcome
_TERMS = (Term.ON_TIME, Term.LATE, Term.WAITING, Term.NOT_STARTED)
_OUTCOMES = (Outcome.RUNNING, Outcome.UNRESOLVED, Outcome.FAILED, Outcome.FINISHED)


def _shard_index(run: _Run) -> str | None:
    return None if run.shard is None else run.shard.partition("/")[0]


def _merge(former: InstantRuns | None, entry: InstantRuns, shard_count: int) -> InstantRuns:
    """Return two runs of one instant as one; the shards of a broadcast, in any order, are one run.

    ``shard_count``: how often the schedule has started the same shard.
    """
    if former is None:
        return entry._replace(start_count=shard_count)
    better = min(former, entry, key=lambda runs: _TERMS.index(runs.term))
    worse = min(former, entry, key=lambda runs: _OUTCOMES.index(runs.outcome))
    return better._replace(outcome=worse.outcome, start_count=max(former.start_count, shard_count))


class RemovableRun(NamedTuple):
    """A scheduled run whose row is deleted, with its term."""

    job_id: int
    group_id: int
    instant: Millis
    term: Term
    not_started: str


_REMOVABLE = select(*_COLUMNS, JobLog.job_group).where(among(JobLog.id), JobLog.trigger_type.in_(SCHEDULED))


def find_removable(session: Session, log_ids: Collection[int]) -> list[RemovableRun]:
    """Return those of the runs that the schedule has started, of a broadcast the first shard."""
    removable = []
    for row in bulk.read_among(session, _REMOVABLE, list(log_ids)) if log_ids else ():
        run, group_id = _Run._make(row[:-1]), row[-1]
        is_further_shard = run.shard is not None and not run.shard.startswith("0/")
        if run.instant is None or is_further_shard:
            continue
        term = Term.NOT_STARTED if run.not_started else Term.ON_TIME
        if not run.not_started and _late_ms(run) > ON_TIME_MS:
            term = Term.LATE
        removable.append(RemovableRun(run.job_id, group_id, run.instant, term, run.not_started))
    return removable
