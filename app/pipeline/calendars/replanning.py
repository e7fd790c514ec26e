"""Replanning after a change of calendars or blackouts, of the jobs that the change itself has not planned."""

import logging
from collections.abc import Sequence
from functools import partial

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.database.engine import read_scope, transact
from app.database.rows import bulk
from app.domain.calendars.rule_book import RuleBook
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import RESTING, next_after_ms
from app.errors import InvalidInput
from app.models.job import Job
from app.store.base import locks
from app.store.calendars import rules
from app.store.completeness import spans as span_store
from app.store.completeness.spans import OpenSpan
from app.store.jobs import scheduling as jobs
from app.store.jobs.scheduling import DueJob, phased_schedule_of

logger = logging.getLogger(__name__)

PERIOD_MS: Millis = SECOND_MS
#: jobs of one transaction
PAGE = 500
#: an edit that was computed by the former rules and is committed after a change is found by a second look
SECOND_LOOK_MS: Millis = 15 * SECOND_MS


class RuleReplanning:
    """Plans jobs anew once the rules have changed."""

    def __init__(self, zone: str) -> None:
        self._zone = zone
        self._number = -1
        self._look_ms: Millis = 0
        #: all jobs go by the rules up to here; 0: unknown
        self._done_ms: Millis = 0

    def tick(self, now_ms: Millis) -> Millis:
        """Set next times that are not those of the present rules; return the wait until the next round.

        Opens its own transactions. Instants since the change that would have run by now are planned, too: the
        scan finds them late.
        """
        with read_scope() as session:
            number = rules.find_number(session)
        if number == self._number and not 0 < self._look_ms <= now_ms:
            return PERIOD_MS
        self._look_ms = now_ms + SECOND_LOOK_MS if number != self._number else 0
        changed_ms, self._number = min(number // 1_000 - 1, now_ms), number
        if not number:
            self._look_ms = 0
            return PERIOD_MS
        with read_scope() as session:
            book = rules.read_book(session)
        # There may have been changes since the last round that only its successor knows.
        since_ms = min(self._done_ms or changed_ms, changed_ms)
        count, is_whole = self._replan(book, since_ms)
        if is_whole and book.number == number:
            self._done_ms = changed_ms
        if count:
            logger.info("calendars or blackouts changed, jobs planned anew jobs=%s", count)
        return PERIOD_MS

    def _replan(self, book: RuleBook, since_ms: Millis) -> tuple[int, bool]:
        """Return how many jobs were planned anew, and whether all were looked at before the next change."""
        count, after_id = 0, 0
        while True:
            with read_scope() as session:
                batch = jobs.find_switched_on(session, after_id=after_id, limit=PAGE)
                page = list(jobs.with_anchors(session, batch).values())
                spans = span_store.find_open(session, [job.id for job in page])
            if not page:
                return count, True
            after_id = page[-1].id
            pairs = [
                (job, next_ms)
                for job in page
                if (next_ms := self._next_ms(job, book, _begin(job, book, since_ms, spans.get(job.id))))
            ]
            job_count = transact(partial(_write, pairs=pairs, number=book.number)) if pairs else 0
            if job_count is None:
                return count, False
            count += job_count

    def _next_ms(self, job: DueJob, book: RuleBook, since_ms: Millis) -> Millis | None:
        """Return the next time of a job by the present rules; None: it has that."""
        if job.trigger_next_time <= since_ms:  # The scan finds it, and leaves out what does not run any more.
            return None
        schedule = phased_schedule_of(job, self._zone, book)
        is_moved = schedule.rules is not None or job.trigger_next_time == RESTING
        if not is_moved or (schedule.type is ScheduleType.FIX_RATE and not job.anchor_ms):
            return None
        try:
            if schedule.type is ScheduleType.FIX_DELAY:
                # Of an instant within a blackout the scan makes its end. One that rests may run again.
                next_ms = book.number // 1_000 if job.trigger_next_time == RESTING else None
                is_resting = schedule.rules is not None and next_after_ms(schedule, since_ms) == RESTING
                return None if is_resting else next_ms
            next_ms = next_after_ms(schedule, max(since_ms, job.last_fire_ms))
        except (ValueError, InvalidInput):  # The scan stops it.
            return None
        return None if next_ms == job.trigger_next_time else next_ms


def _begin(job: DueJob, book: RuleBook, since_ms: Millis, open_span: OpenSpan | None) -> Millis:
    """Return from when on a job goes by the rules: a change of its schedule or calendar may be later."""
    begins = [since_ms, *(version.from_ms - 1 for version in book.versions_of(job.calendar))]
    if open_span is not None:
        begins.append(open_span.span.from_ms)
    return max(begins)


def _write(session: Session, pairs: Sequence[tuple[DueJob, Millis]], number: int) -> int | None:
    """Write the next times of jobs that have not changed since they were read; return how many.

    None: the rules have changed, and the next round goes by them.
    """
    locks.take_schedule_lock(session)
    if rules.find_number(session) != number:
        return None
    current = jobs.lock_planned(session, [job.id for job, _ in pairs])
    rows = [
        {"id": job.id, "trigger_next_time": next_ms}
        for job, next_ms in pairs
        if (now := current.get(job.id)) is not None and now._replace(anchor_ms=job.anchor_ms) == job
    ]
    bulk.update_many(session, Job, rows)
    return len(rows)
