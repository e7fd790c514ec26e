"""Planning of promises: which of them hold, and the checks of their instants, ten minutes ahead.

The promises of jobs and groups are compared with those that hold; a changed one loses its checks and begins
anew. docs/reference/promises.md, section 2.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.clock import DAY_MS, MINUTE_MS, SECOND_MS, Millis
from app.database.engine import read_scope, transact
from app.database.rows import bulk
from app.domain.completeness.expected_instants import Interval, expected_instants
from app.domain.completeness.spans import Span
from app.domain.enums import PromiseKind
from app.domain.promises.judgement import usual_of
from app.domain.promises.planning import AHEAD_MS, checks_of, old_until_ms
from app.domain.promises.promise import (
    INSTANT_KINDS,
    Promise,
    assign_numbers,
    effective_promises,
    find_promise,
)
from app.domain.schedules.schedule import zone
from app.models.promise import JobPromise
from app.store.completeness import spans as span_store
from app.store.promises import checks, promises
from app.store.promises.promises import PromisingJob, StoredPromise

#: period of the comparison
PERIOD_MS: Millis = 10 * SECOND_MS
#: how much is planned at once
STEP_MS: Millis = MINUTE_MS
#: promises of one transaction
PAGE = 200
#: usual durations are computed so often
USUAL_MS: Millis = DAY_MS


class _Change(NamedTuple):
    """What differs between the promises that jobs have and those that hold."""

    new: list[bulk.Row]
    old_promises: list[StoredPromise]
    #: those whose checks are to be planned further, or by another schedule
    due: list[StoredPromise]
    #: those whose usual durations are to be computed
    without_usual: list[StoredPromise]
    idle_promises: list[StoredPromise]


def plan(*, now_ms: Millis, behind_ms: Millis = 0) -> None:
    """Bring promises and checks up to date; opens its own transactions.

    ``behind_ms``: a console waits so much longer for the workers to do it.
    """
    jobs, change = _find_change(now_ms, behind_ms)
    for page in _pages(change.old_promises):
        transact(partial(promises.delete_promises, promises=page))
    if change.idle_promises:  # Their checks went while they did not hold for a moment.
        transact(
            partial(
                checks.insert_checks,
                rows=[_first_look(row.job_id, row.number, now_ms) for row in change.idle_promises],
            )
        )
    for page in _pages(change.new):
        transact(partial(_begin, rows=page, now_ms=now_ms))
    if change.new:  # Their first checks may be due in a moment.
        jobs, change = _find_change(now_ms, behind_ms)
    for page in _pages(change.due):
        transact(partial(_plan_page, page=page, jobs=jobs, now_ms=now_ms))
    for promise in change.without_usual:
        transact(partial(_compute_usual, promise=promise, job=jobs[promise.job_id], now_ms=now_ms))


def _find_change(now_ms: Millis, behind_ms: Millis) -> tuple[dict[int, PromisingJob], _Change]:
    with read_scope() as session:
        jobs = promises.find_promising(session)
        change = _compare(jobs, promises.find_stored(session), now_ms=now_ms, behind_ms=behind_ms)
        return jobs, change._replace(idle_promises=promises.find_unwatched(session))


def _pages(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (rows[first : first + PAGE] for first in range(0, len(rows), PAGE))


def _compare(
    jobs: Mapping[int, PromisingJob], present: Iterable[StoredPromise], *, now_ms: Millis, behind_ms: Millis
) -> _Change:
    by_job = defaultdict[int, list[StoredPromise]](list)
    for row in present:
        by_job[row.job_id].append(row)
    change = _Change([], [], [], [], [])
    horizon_ms = now_ms + AHEAD_MS - STEP_MS - behind_ms
    for job_id in {*jobs, *by_job}:
        job, rows = jobs.get(job_id), by_job.get(job_id, [])
        owed = effective_promises(job.own, job.of_group, job.schedule_type) if job is not None else ()
        if {row.definition for row in rows} != {promise.definition for promise in owed}:
            rows = _change_promises(job_id, owed, rows, change, now_ms)
        span_id = job.span_id if job is not None else 0
        for row in rows:
            is_late = row.planned_until_ms < horizon_ms or row.span_id not in (0, span_id)
            if is_late and span_id and row.kind in INSTANT_KINDS:
                change.due.append(row)
            if row.kind == PromiseKind.TAKES_USUAL_TIMES and row.usual_at_ms < now_ms - USUAL_MS:
                change.without_usual.append(row)
    return change


def _change_promises(
    job_id: int, owed: Sequence[Promise], rows: list[StoredPromise], change: _Change, now_ms: Millis
) -> list[StoredPromise]:
    """Note which promises of a job are gone and new; return those that stay."""
    numbers = assign_numbers(owed, {row.definition: row.number for row in rows}, {row.number for row in rows})
    change.old_promises.extend(row for row in rows if row.number not in numbers)
    present = {row.number for row in rows}
    new = (pair for pair in numbers.items() if pair[0] not in present)
    change.new.extend(_row(job_id, number, promise, now_ms) for number, promise in new)
    return [row for row in rows if row.number in numbers]


def _row(job_id: int, number: int, promise: Promise, now_ms: Millis) -> bulk.Row:
    return {
        "job_id": job_id,
        "number": number,
        "kind": promise.kind.value,
        "definition": promise.definition,
        "since_ms": now_ms,
        "planned_until_ms": now_ms,
    }


def _begin(session: Session, rows: Sequence[bulk.Row], now_ms: Millis) -> None:
    """Insert promises; one that needs no instant has a single check, which gives itself its next time."""
    promises.insert_promises(session, rows)
    checks.insert_checks(
        session,
        [
            _first_look(row["job_id"], row["number"], now_ms)
            for row in rows
            if row["kind"] == PromiseKind.SUCCEEDS_EVERY
        ],
    )


def _first_look(job_id: int, number: int, now_ms: Millis) -> bulk.Row:
    """Return the check of a promise that needs no instant."""
    return _check(job_id, number, 0, 0, now_ms)


def _check(job_id: int, number: int, logical_ms: Millis, until_ms: Millis, due_ms: Millis) -> bulk.Row:
    instants = {"logical_ms": logical_ms, "until_ms": until_ms, "due_ms": due_ms}
    return {"job_id": job_id, "number": number, "log_id": 0, **instants}


def _plan_page(
    session: Session, page: Sequence[StoredPromise], jobs: Mapping[int, PromisingJob], now_ms: Millis
) -> None:
    """Plan the checks of promises up to ten minutes ahead, each instant once: the promises are locked."""
    row_by_key = promises.lock_promises(session, {promise.job_id for promise in page})
    current = [
        row for promise in page if (row := row_by_key.get((promise.job_id, promise.number))) is not None
    ]
    if not current:
        return
    until_ms = now_ms + AHEAD_MS
    histories = span_store.find_spans(
        session,
        Interval(min(row.planned_until_ms for row in current) - DAY_MS, until_ms + 1),
        job_ids={row.job_id for row in current},
    )
    rows = list[bulk.Row]()
    for promise in current:
        job, spans = jobs[promise.job_id], histories.get(promise.job_id, [])
        if promise.span_id not in (0, job.span_id):
            _delete_outdated(session, promise, spans, now_ms)
        owed = find_promise(promise.definition)
        if owed is None:  # The next comparison replaces it.
            continue
        begin_ms = promise.planned_until_ms + 1
        old_ms = old_until_ms(owed, now_ms)
        if begin_ms <= old_ms:
            rows += _old_check(promise, spans, Interval(begin_ms, old_ms + 1), now_ms)
            begin_ms = old_ms + 1
        instants = expected_instants(spans, Interval(begin_ms, until_ms + 1))
        rows += [
            _check(promise.job_id, promise.number, *check)
            for check in checks_of(owed, instants, time_zone=job.time_zone, now_ms=now_ms)
        ]
        promise.planned_until_ms, promise.span_id = until_ms, job.span_id
    checks.insert_checks(session, rows)


def _old_check(
    promise: JobPromise, spans: Sequence[Span], interval: Interval, now_ms: Millis
) -> list[bulk.Row]:
    """Return the check of all instants of a long stop, which are not enumerated; none if there are none."""
    first_ms = next(expected_instants(spans, interval), None)
    if first_ms is None:
        return []
    return [_check(promise.job_id, promise.number, first_ms, interval.until_ms - 1, now_ms)]


def _delete_outdated(session: Session, promise: JobPromise, spans: Sequence[Span], now_ms: Millis) -> None:
    """Delete the checks that a former schedule planned, so that they are planned anew."""
    since_ms = min((span.from_ms for span in spans[-1:]), default=now_ms)
    if since_ms < promise.planned_until_ms:
        checks.delete_planned(session, promise.job_id, promise.number, after_ms=since_ms)
        promise.planned_until_ms = max(since_ms, promise.since_ms)


def _compute_usual(session: Session, promise: StoredPromise, job: PromisingJob, now_ms: Millis) -> None:
    row = promises.lock_promises(session, [promise.job_id]).get((promise.job_id, promise.number))
    if row is not None:
        usual = usual_of(promises.find_successes(session, promise.job_id), zone(job.time_zone))
        row.usual, row.usual_at_ms = json.dumps(usual), now_ms
