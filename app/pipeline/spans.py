"""Histories of schedules: each change of a switch or a schedule ends a span and begins the next.

Kept in the transaction of the change. What another program on the database has changed is found by a
comparison of all jobs with their open spans. docs/reference/completeness.md, section 2.
"""

import logging
from collections.abc import Collection
from dataclasses import replace
from functools import partial

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, SECOND_MS, Millis
from app.database.engine import read_scope, transact
from app.domain.calendars.rule_book import RuleBook
from app.domain.completeness.changes import Change, date_change
from app.domain.completeness.expected_instants import Interval
from app.domain.completeness.spans import Span
from app.domain.enums import EndReason, ScheduleType, TriggerStatus
from app.domain.schedules.cron.fields import InvalidCronExpression
from app.domain.schedules.schedule import RESTING, period_s
from app.models.base import zone_name
from app.store.calendars import current_book
from app.store.completeness import spans as store
from app.store.completeness.evidence import find_planned_instants
from app.store.completeness.spans import ComparedJob, OpenSpan
from app.store.jobs import scheduling as jobs
from app.store.jobs.scheduling import DueJob, schedule_of

logger = logging.getLogger(__name__)

#: an instant that was claimed ahead of a change belongs to the span before it
AHEAD_MS: Millis = 7_000
#: period of the comparison
PERIOD_MS: Millis = 10_000
#: the first comparison looks for changes so far back
FIRST_MS: Millis = 10 * MINUTE_MS
#: jobs of one transaction, which locks them: the scan waits for it
PAGE = 50
#: what a calendar and blackouts leave is not stored with a span
_NO_RULES = RuleBook()


def keep_spans(
    session: Session, job_ids: Collection[int], *, now_ms: Millis, reason: EndReason = EndReason.CHANGED
) -> None:
    """End the spans that no longer describe these jobs as they are now, and begin new ones.

    The caller has locked and changed the jobs. A constant number of statements.
    """
    if not job_ids:
        return
    current, open_spans = jobs.find_planned(session, job_ids), store.find_open(session, job_ids)
    ends: dict[int, Millis] = {}
    new: list[Span] = []
    for job_id in sorted(job_ids):
        job, open_span = current.get(job_id), open_spans.get(job_id)
        if job is None:
            if open_span is not None:
                ends[open_span.id] = now_ms
                # It ends those before it, too, of instants that the scan had read ahead.
                new.append(
                    replace(
                        open_span.span, is_on=False, from_ms=now_ms, until_ms=now_ms, end_reason=reason.value
                    )
                )
            continue
        span = _span_of(job, now_ms, _NO_RULES)
        if open_span is None or not _describes(open_span.span, span, job.trigger_next_time):
            new.append(span)
            ends |= _end(open_span, span.from_ms)
    store.close_spans(session, ends, reason.value)
    store.insert_spans(session, new)


def _end(open_span: OpenSpan | None, at_ms: Millis) -> dict[int, Millis]:
    return {} if open_span is None else {open_span.id: at_ms}


def _span_of(job: DueJob, now_ms: Millis, book: RuleBook | None = None) -> Span:
    """Return the span that begins with the present state of a job; for ``book`` see ``schedule_of``."""
    from_ms = max(now_ms, job.last_fire_ms) if job.last_fire_ms <= now_ms + AHEAD_MS else now_ms
    is_on = job.trigger_status == TriggerStatus.RUNNING
    schedule = schedule_of(job, zone_name(), book)
    is_rate = is_on and schedule.type is ScheduleType.FIX_RATE
    anchor_ms = job.trigger_next_time if is_rate and job.trigger_next_time < RESTING else 0
    return Span(job.id, job.job_group, is_on, from_ms, None, schedule, anchor_ms)


def _describes(span: Span, now: Span, next_ms: Millis) -> bool:
    """Whether an open span describes the present state of a job."""
    is_same = (span.is_on, span.group_id, span.schedule) == (now.is_on, now.group_id, now.schedule)
    return is_same and (not now.anchor_ms or _is_in_phase(span.anchor_ms, now.schedule.conf, next_ms))


def _is_in_phase(anchor_ms: Millis, conf: str, next_ms: Millis) -> bool:
    """Whether the next time of a fixed rate follows from its first instant; one that is invalid has none.

    The next time may be the end of a blackout, too, or there may be none for as long as one is on.
    """
    if anchor_ms and (next_ms == RESTING or current_book.current().runs_once()):
        return True
    try:
        return (next_ms - anchor_ms) % (period_s(conf) * SECOND_MS) == 0
    except InvalidCronExpression:
        return True


class SpanComparison:
    """Comparison of all jobs with their histories."""

    def __init__(self) -> None:
        self._last_ms: Millis = 0

    def tick(self, now_ms: Millis) -> Millis:
        """Mend the histories of jobs that another program has changed; return the wait until the next round.

        Opens its own transactions. A change is looked for since the last comparison, or since the time that
        it noted in the job if that is later; the instants that were planned meanwhile tell when it was.
        """
        with read_scope() as session:
            comparisons = store.find_different(session, zone=zone_name())
            orphans = store.find_without_job(session)
        changed_jobs = [
            job
            for job in comparisons
            if job.differs or not _is_in_phase(job.anchor_ms or 0, job.schedule_conf, job.trigger_next_time)
        ]
        since_ms = self._last_ms or now_ms - FIRST_MS
        for first in range(0, len(changed_jobs), PAGE):
            page = changed_jobs[first : first + PAGE]
            transact(partial(_keep, page=page, since_ms=since_ms, now_ms=now_ms, is_first=not self._last_ms))
        for first in range(0, len(orphans), PAGE):
            ids = orphans[first : first + PAGE]
            transact(partial(keep_spans, job_ids=ids, now_ms=now_ms, reason=EndReason.DELETED))
        self._last_ms = now_ms
        outside = [job.job_id for job in changed_jobs if job.anchor_ms is not None]
        if outside or orphans:
            logger.info("schedules changed outside job_ids=%s gone=%s", outside[:20], orphans[:20])
        return PERIOD_MS


def _keep(
    session: Session, page: Collection[ComparedJob], since_ms: Millis, now_ms: Millis, *, is_first: bool
) -> None:
    ids = [job.job_id for job in page]
    jobs.lock_planned(session, ids)
    current, open_spans = jobs.find_planned(session, ids), store.find_open(session, ids)
    planned_instants = find_planned_instants(session, ids, since_ms=since_ms)
    undated_ids, ends, new = list[int](), dict[int, Millis](), list[Span]()
    for comparison in page:
        job, open_span = current.get(comparison.job_id), open_spans.get(comparison.job_id)
        changed_ms = min(comparison.update_time or 0, now_ms)
        is_dated = changed_ms > max(since_ms, open_span.span.from_ms if open_span else 0)
        if job is None or (open_span is None and (is_first or not is_dated)):
            undated_ids.append(comparison.job_id)
            continue
        from_ms = changed_ms if is_dated else since_ms
        is_on = job.trigger_status == TriggerStatus.RUNNING
        otherwise_ms = now_ms if is_first and is_on and not is_dated else from_ms
        since = Interval(from_ms, now_ms)
        change = _date(job, open_span, planned_instants.get(job.id, set()), since, otherwise_ms)
        if change is not None:
            ends |= _end(open_span, change.until_ms)
            new.append(change.following)
    store.close_spans(session, ends, EndReason.OUTSIDE.value)
    store.insert_spans(session, new)
    keep_spans(session, undated_ids, now_ms=now_ms, reason=EndReason.OUTSIDE)


def _date(
    job: DueJob,
    open_span: OpenSpan | None,
    instants: Collection[Millis],
    since: Interval,
    otherwise_ms: Millis,
) -> Change | None:
    """Return a change by another program, which was made in an interval; None: the span describes the job."""
    from_ms, now_ms = since
    span = _span_of(job, now_ms)
    if open_span is not None and _describes(open_span.span, span, job.trigger_next_time):
        return None
    former = None if open_span is None else open_span.span
    if former is not None:
        from_ms = max(from_ms, former.from_ms)
    next_ms = {job.trigger_next_time} if span.is_on else set()
    within = Interval(from_ms, now_ms + 2 * AHEAD_MS)
    return date_change(former, span, {*instants, *next_ms}, within, otherwise_ms=max(from_ms, otherwise_ms))
