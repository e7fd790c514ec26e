"""Evaluation of promises: judges what is due, counts verdicts, opens incidents for what was broken.

Checks are rows: the node that locks one evaluates and deletes it in the same transaction, so several nodes
do nothing twice, and a restart loses nothing. docs/reference/promises.md, section 3.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import HOUR_MS, MINUTE_MS, SECOND_MS, Clock, Millis
from app.domain.access.permissions import system_actor
from app.domain.completeness.days import day_of
from app.domain.completeness.expected_instants import Interval, expected_instants
from app.domain.completeness.spans import Span, off_periods
from app.domain.enums import HandleCode, PromiseKind, ScheduleType
from app.domain.promises.incidents import key_of_instant, key_of_series, key_of_window
from app.domain.promises.judgement import (
    GRACE_MS,
    ChainRun,
    failures_in_a_row,
    is_kept,
    keeps_duration,
    longest_ms_of,
    read_days,
    usual_at,
)
from app.domain.promises.promise import (
    END_KINDS,
    INSTANT_KINDS,
    SWITCH_OFF,
    Promise,
    due_ms_of,
    effective_promises,
    find_promise,
)
from app.domain.schedules.schedule import zone
from app.models.base import zone_name
from app.models.promise import JobPromise
from app.services.auditing import audit
from app.services.jobs.replan import switch_off
from app.services.promises.incidents import Breach, open_incidents
from app.store.completeness import spans as span_store
from app.store.promises import checks, evidence, promises
from app.store.promises.checks import Check
from app.store.promises.evidence import Chains, EndedRun, OpenRun
from app.store.promises.promises import PromisingJob

#: checks of one transaction
ROWS = 200
#: most instants of one check that are judged
INSTANTS_MAX = 1_000
#: wait before a promise of a success is judged again while it is broken, or while its time stands still
AGAIN_MS: Millis = 2 * SECOND_MS
#: one that has been broken for long is looked at again after this part of that time, at most after a minute
PAUSE_PART = 20
PAUSE_MS: Millis = MINUTE_MS
#: successes are noted so often: their runs may be cleared before the window ends
LOOK_MS: Millis = HOUR_MS
#: days whose numbers are kept
DAYS = 30
#: runs among which a series of failures is searched for, at first and at most: retries and shards count
RUNS = 100
RUNS_MAX = 5_000
#: audited action of a schedule that is switched off by a promise
SWITCHED_OFF = "job.switched_off"
#: verdicts, as places in the numbers of a day
KEPT, BROKEN, EXCUSED = range(3)


class _Due(NamedTuple):
    """A check of a promise that holds."""

    check: Check
    row: JobPromise
    promise: Promise
    job: PromisingJob


class Evaluation:
    """Evaluation in one transaction: verdicts are counted on locked rows, the rest is written at its end."""

    def __init__(self, session: Session, *, clock: Clock, node: str) -> None:
        self._session, self._clock, self._node = session, clock, node
        self._now_ms = clock()
        self._breaches: list[Breach] = []
        self._due_by_id: dict[int, Millis] = {}
        self._to_switch_off: list[tuple[int, int]] = []

    def evaluate(self, due_checks: Sequence[Check]) -> None:
        """Evaluate locked checks and delete them; those of promises that no longer hold are only deleted."""
        job_ids = {check.job_id for check in due_checks}
        rows = promises.lock_promises(self._session, job_ids)
        jobs = promises.find_promising(self._session, job_ids)
        due = self._holding(due_checks, rows, jobs)
        self._judge_instants([one for one in due if one.promise.kind in INSTANT_KINDS])
        self._judge_windows([one for one in due if one.promise.kind is PromiseKind.SUCCEEDS_EVERY])
        if end_checks := [check for check in due_checks if check.log_id]:
            self._judge_ends(end_checks, rows, jobs)
        self._write(due_checks)

    def _holding(
        self,
        due_checks: Sequence[Check],
        rows: dict[tuple[int, int], JobPromise],
        jobs: dict[int, PromisingJob],
    ) -> list[_Due]:
        holding = []
        for check in due_checks:
            row, job = rows.get((check.job_id, check.number)), jobs.get(check.job_id)
            if row is None or job is None:
                continue
            promise = find_promise(row.definition)
            if promise is not None and promise in effective_promises(
                job.own, job.of_group, job.schedule_type
            ):
                holding.append(_Due(check, row, promise, job))
        return holding

    def _judge_instants(self, due: Sequence[_Due]) -> None:
        """Judge promises about instants; one that the schedule does not have after all is excused."""
        if not due:
            return
        first_ms = min(one.check.logical_ms for one in due)
        last_ms = max(one.check.until_ms for one in due)
        spans = self._spans({one.check.job_id for one in due}, Interval(first_ms, last_ms + 1))
        instants_of: dict[int, list[Millis]] = {}
        by_job = defaultdict[int, set[Millis]](set)
        for one in due:
            within = Interval(one.check.logical_ms, one.check.until_ms + 1)
            instants = [*islice(expected_instants(spans.get(one.check.job_id, []), within), INSTANTS_MAX)]
            instants_of[one.check.id] = instants
            by_job[one.check.job_id].update(instants)
        chains = evidence.find_chains(self._session, by_job)
        for one in due:
            instants = instants_of[one.check.id]
            last_due_ms = max((_due_ms(one, instant) for instant in instants[-1:]), default=0)
            if not instants:
                self._count(one.row, EXCUSED, one.check.logical_ms)
            elif last_due_ms > self._now_ms - GRACE_MS:  # The zone of the job has been changed meanwhile.
                self._due_by_id[one.check.id] = last_due_ms
            elif (broken_ms := _first_broken(one, instants, chains)) is None:
                self._count(one.row, KEPT, instants[-1])
            else:
                self._count(one.row, BROKEN, broken_ms)
                log_ids = tuple(run.log_id for run in chains.get((one.check.job_id, broken_ms), ()))
                self._break(key_of_instant(one.check.job_id, broken_ms), one.row, broken_ms, log_ids)

    def _judge_windows(self, due: Sequence[_Due]) -> None:
        """Judge promises of a success every so often, and give their checks the next time."""
        if not due:
            return
        job_ids = {one.check.job_id for one in due}
        successes = evidence.find_last_successes(self._session, job_ids)
        since_ms = min(max(one.row.since_ms, successes.get(one.check.job_id, 0)) for one in due)
        spans = self._spans(job_ids, Interval(since_ms, self._now_ms + 1))
        for one in due:
            success_ms = successes.get(one.check.job_id, 0)
            start_ms = max(success_ms, one.row.since_ms, _known_start_ms(one.row, self._now_ms))
            off_ms = _off_ms(spans.get(one.check.job_id, []), start_ms, self._now_ms, one.job)
            end_ms = start_ms + one.promise.limit_ms + off_ms
            if end_ms > self._now_ms - GRACE_MS:
                is_success_new = success_ms > max(one.row.kept_ms, one.row.since_ms)
                if is_success_new or not one.row.kept_ms:
                    self._count(one.row, KEPT, start_ms)
                latest_ms = min(end_ms + GRACE_MS, self._now_ms + LOOK_MS)
                self._due_by_id[one.check.id] = max(latest_ms, self._now_ms + AGAIN_MS)
                continue
            if one.row.broken_ms != start_ms:
                self._count(one.row, BROKEN, start_ms)
            key = key_of_window(one.check.job_id, one.check.number, start_ms)
            self._break(key, one.row, start_ms, ())
            self._due_by_id[one.check.id] = self._now_ms + _pause_ms(self._now_ms - end_ms)

    def _judge_ends(
        self,
        due_checks: Sequence[Check],
        rows: dict[tuple[int, int], JobPromise],
        jobs: dict[int, PromisingJob],
    ) -> None:
        """Judge what the ends of runs decide: their durations, and failures in a row."""
        runs = evidence.find_ended(self._session, [check.log_id for check in due_checks])
        for log_id in sorted(runs):
            run = runs[log_id]
            for row in (row for (job_id, _number), row in rows.items() if job_id == run.job_id):
                promise, job = find_promise(row.definition), jobs.get(run.job_id)
                is_covered = run.trigger_ms >= row.since_ms // SECOND_MS * SECOND_MS
                if promise is None or promise.kind not in END_KINDS or job is None or not is_covered:
                    continue
                if promise not in effective_promises(job.own, job.of_group, job.schedule_type):
                    continue
                if promise.kind is PromiseKind.FAILS_AT_MOST:
                    self._judge_series(run, row, promise)
                elif run.duration_ms is not None:
                    self._judge_duration(run, row, promise, job)

    def _judge_duration(self, run: EndedRun, row: JobPromise, promise: Promise, job: PromisingJob) -> None:
        assert run.duration_ms is not None, "a run without a duration is left out"
        usual_ms = usual_at(row.usual, run.trigger_ms, zone(job.time_zone))
        if promise.kind is PromiseKind.TAKES_USUAL_TIMES and usual_ms is None:
            return
        is_success = run.handle_code == HandleCode.SUCCESS
        if keeps_duration(promise, run.duration_ms, is_success=is_success, usual_ms=usual_ms):
            self._count(row, KEPT, run.instant)
            return
        self._count(row, BROKEN, run.instant)
        self._break(key_of_instant(run.job_id, run.instant), row, run.instant, (run.log_id,))

    def _judge_series(self, run: EndedRun, row: JobPromise, promise: Promise) -> None:
        chains = self._last_chains(run.job_id, row.since_ms, promise.n + 1)
        series = failures_in_a_row(chains)
        if series.length <= promise.n:
            self._count(row, KEPT, run.instant if not series.length else series.since_ms - 1)
            return
        if row.broken_ms != series.since_ms:
            self._count(row, BROKEN, series.since_ms)
        self._break(key_of_series(run.job_id, series.first_log_id), row, series.since_ms, (run.log_id,))
        if promise.then == SWITCH_OFF:
            self._to_switch_off.append((run.job_id, series.length))

    def _last_chains(self, job_id: int, since_ms: Millis, count: int) -> list[tuple[Millis, list[ChainRun]]]:
        """Return the last instants of a job that have ended, so many or all that are read at most."""
        limit = min(RUNS_MAX, max(RUNS, 2 * count))
        while True:
            chains = evidence.find_last_chains(self._session, job_id, since_ms=since_ms, limit=limit)
            if len(chains) >= count or limit == RUNS_MAX:
                return chains
            limit = min(RUNS_MAX, 4 * limit)

    def judge_open(self, runs: Iterable[OpenRun]) -> None:
        """Open incidents for runs in progress that have taken too long; verdicts follow at their ends."""
        for run in runs:
            self._breaches.append(
                Breach(
                    key_of_instant(run.job_id, run.instant),
                    run.job_id,
                    run.number,
                    run.definition,
                    run.instant,
                    (run.log_id,),
                )
            )
        self._write(())

    def _spans(self, job_ids: set[int], interval: Interval) -> dict[int, list[Span]]:
        return span_store.find_spans(self._session, interval, job_ids=job_ids)

    def _count(self, row: JobPromise, verdict: int, logical_ms: Millis) -> None:
        """Count a verdict on its day."""
        days = read_days(row.days)
        day = day_of(self._now_ms, zone(zone_name())).isoformat()
        numbers = days.setdefault(day, [0, 0, 0])
        numbers[verdict] += 1
        row.days = json.dumps(dict(sorted(days.items())[-DAYS:]), separators=(",", ":"))
        if verdict == KEPT:
            row.kept_ms = max(row.kept_ms, logical_ms)
        elif verdict == BROKEN:
            row.broken_ms = max(row.broken_ms, logical_ms)
            # A promise kept at a later time, by a clock that was ahead, must not hide that it is broken now.
            row.kept_ms = min(row.kept_ms, logical_ms - 1)

    def _break(self, key: str, row: JobPromise, logical_ms: Millis, log_ids: tuple[int, ...]) -> None:
        self._breaches.append(Breach(key, row.job_id, row.number, row.definition, logical_ms, log_ids))

    def _write(self, due_checks: Sequence[Check]) -> None:
        checks.postpone(self._session, self._due_by_id)
        checks.delete_checks(
            self._session, [check.id for check in due_checks if check.id not in self._due_by_id]
        )
        # A deletion of a job locks it before its incidents, too.
        for job_id, count in sorted(self._to_switch_off):
            self._switch_off(job_id, count)
        open_incidents(self._session, self._breaches, now_ms=self._now_ms)

    def _switch_off(self, job_id: int, count: int) -> None:
        if not promises.is_switched_on(self._session, job_id):
            return
        switch_off(self._session, [job_id], clock=self._clock)
        audit.record(
            self._session,
            SWITCHED_OFF,
            actor=system_actor(self._node),
            now_ms=self._now_ms,
            target=("job", job_id),
            changes={"failures": count},
        )


def evaluate_due(session: Session, *, before_ms: Millis, clock: Clock, node: str) -> int:
    """Evaluate checks that are due; return how many there were, at most ROWS."""
    due_checks = checks.take_due(session, before_ms=before_ms, limit=ROWS)
    if due_checks:
        Evaluation(session, clock=clock, node=node).evaluate(due_checks)
    return len(due_checks)


def overdue_runs(runs: Iterable[OpenRun], *, now_ms: Millis) -> list[OpenRun]:
    """Return the runs in progress that have taken longer than promised."""
    overdue = []
    for run in runs:
        promise = find_promise(run.definition)
        if promise is None:
            continue
        usual_ms = usual_at(run.usual, run.sent_ms, zone(run.time_zone))
        longest_ms = longest_ms_of(promise, usual_ms)
        if longest_ms is not None and run.sent_ms >= run.since_ms and run.sent_ms + longest_ms <= now_ms:
            overdue.append(run)
    return overdue


def _known_start_ms(row: JobPromise, now_ms: Millis) -> Millis:
    """Return the beginning of a window that is known already, as the run of a success may be cleared.

    Times of a clock that was ahead do not count.
    """
    return max((at_ms for at_ms in (row.kept_ms, row.broken_ms) if at_ms <= now_ms), default=0)


def _pause_ms(broken_ms: Millis) -> Millis:
    """Return after which time a window is looked at again that is broken for so long."""
    return min(max(broken_ms // PAUSE_PART, AGAIN_MS), PAUSE_MS)


def _due_ms(one: _Due, instant: Millis) -> Millis:
    return due_ms_of(one.promise, instant, one.job.time_zone)


def _first_broken(one: _Due, instants: Sequence[Millis], chains: Chains) -> Millis | None:
    """Return the first of the instants for which a promise was broken; None: it was kept for all."""
    for instant in instants:
        if not is_kept(one.promise, _due_ms(one, instant), chains.get((one.check.job_id, instant), ())):
            return instant
    return None


def _off_ms(spans: Sequence[Span], from_ms: Millis, until_ms: Millis, job: PromisingJob) -> Millis:
    """Return for how long a schedule was off; a job without a schedule never is."""
    if job.schedule_type == ScheduleType.NONE:
        return 0
    return sum(
        max(0, min(period.until_ms or until_ms, until_ms) - max(period.from_ms, from_ms))
        for period in off_periods(spans)
    )
