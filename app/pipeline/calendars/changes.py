"""Changes of calendars and blackouts, which take effect at their commit.

docs/reference/calendars.md, section 5. A change takes the schedule lock, withdraws the fires that are read
ahead, and plans their jobs anew. Jobs without such fires are planned here, too, if they are few; the monitor
plans the others.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.database.rows import bulk
from app.domain.calendars.effective import JobRules
from app.domain.calendars.rule_book import RuleBook
from app.domain.enums import ScheduleType, TriggerStatus
from app.domain.schedules.schedule import RESTING, Schedule, next_after_ms, period_s
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.pipeline.claimed_ahead import wait_for_claimed
from app.pipeline.rounds.ends import record_skips
from app.pipeline.skips import skip_row
from app.pipeline.spans import keep_spans
from app.pipeline.unscanned_instants import find_unscanned
from app.store.base import locks
from app.store.calendars import current_book, rules
from app.store.fires import scheduled_fires
from app.store.jobs import scheduling as jobs
from app.store.jobs.scheduling import DueJob, phased_schedule_of, schedule_of

#: jobs without fires that are read ahead that a change plans itself
PLANNED_MAX = 500
#: skip reason of instants that a change leaves out
EDITED = "edited"


@dataclass(frozen=True, slots=True)
class Change:
    """A change that has begun: the rows of calendars and blackouts may be written as of ``now_ms``."""

    #: the first instant that goes by the new rules
    now_ms: Millis
    #: the jobs to plan anew, as they were
    due: Mapping[int, DueJob]
    #: job id -> due times of fires that were read ahead, and are withdrawn
    withdrawn: Mapping[int, Collection[Millis]]
    former: RuleBook

    def finish(self, session: Session) -> None:
        """Plan the jobs anew by the rules that are written now; from the commit on all go by them."""
        session.flush()
        rules.insert_change(session, now_ms=self.now_ms)
        book = rules.read_book(session)
        due = jobs.with_anchors(session, self.due.values())
        decided_ms = self.now_ms - 1
        open_ms = scheduled_fires.find_latest_open(session, list(due), after_ms=decided_ms)
        rows = [
            row
            for job in due.values()
            if (row := self._row(job, book, max(decided_ms, open_ms.get(job.id, 0)))) is not None
        ]
        bulk.update_many(session, Job, rows)
        is_rate = {job.id for job in due.values() if job.schedule_type == ScheduleType.FIX_RATE}
        changed_ids = [row["id"] for row in rows if row["id"] in is_rate or self._is_reopened(due[row["id"]])]
        keep_spans(session, changed_ids, now_ms=decided_ms)
        current_book.forget_at_commit(session)

    def _is_reopened(self, job: DueJob) -> bool:
        """Whether the scan had stopped a job whose last instants are withdrawn now."""
        return job.trigger_status != TriggerStatus.RUNNING and job.id in self.withdrawn

    def _row(self, job: DueJob, book: RuleBook, decided_ms: Millis) -> bulk.Row | None:
        """Return the new times of a job; None: they stay."""
        if job.trigger_status != TriggerStatus.RUNNING and not self._is_reopened(job):
            return None
        if job.id not in self.withdrawn and job.trigger_next_time <= decided_ms:
            return None  # The scan finds it, and leaves out what does not run any more.
        schedule = phased_schedule_of(job, zone_name(), book)
        try:
            if schedule.type is ScheduleType.FIX_DELAY:
                next_ms = self._next_of_delay(job, schedule)
            else:
                next_ms = next_after_ms(schedule, decided_ms)
        except (ValueError, InvalidInput):  # The scan stops it.
            return None
        if next_ms is None:  # The scan ends it when it is due.
            next_ms = min(self.withdrawn.get(job.id, ()), default=job.trigger_next_time)
        return {
            "id": job.id,
            "trigger_status": TriggerStatus.RUNNING.value,
            "trigger_next_time": next_ms,
            "last_fire_ms": min(job.last_fire_ms, decided_ms),
        }

    def _next_of_delay(self, job: DueJob, schedule: Schedule) -> Millis | None:
        """Return when a fixed delay is due: at its time, or when the blackouts let it."""
        due_ms = min(self.withdrawn.get(job.id, ()), default=job.trigger_next_time)
        if due_ms == AFTER_THE_CURRENT_RUN:
            return due_ms
        return next_after_ms(schedule, self._wanted_ms(job, due_ms) - period_s(schedule.conf) * 1_000)

    def _wanted_ms(self, job: DueJob, due_ms: Millis) -> Millis:
        """Return from when on a fixed delay may run: at once, if a blackout has put it off."""
        former = schedule_of(job, zone_name(), self.former).rules
        closure = former.closure_at(due_ms - 1) if isinstance(former, JobRules) else None
        was_put_off = due_ms == RESTING or (closure is not None and closure.until_ms == due_ms)
        return min(due_ms, self.now_ms) if was_put_off else due_ms


def begin_change(
    session: Session, job_ids: Collection[int] | None, *, clock: Clock, of_calendar: bool = False
) -> Change:
    """Take the schedule lock, and withdraw the fires of these jobs (None: all) that are read ahead.

    Waits until the runs have begun that are claimed ahead, CLAIM_AHEAD_MS at most. The caller writes the rows
    as of ``Change.now_ms``, then calls ``finish``. Must begin its transaction. ``of_calendar``: due instants
    that no scan has planned are recorded as skipped, because later scans know only the latest version.
    """
    locks.take_schedule_lock(session)
    former, begin_ms = current_book.refresh(session), clock()
    job_ids_to_replan = jobs.find_to_replan(session, job_ids, ahead_of_ms=begin_ms, limit=PLANNED_MAX)
    due = jobs.lock_planned(session, job_ids_to_replan) if job_ids_to_replan else {}
    ahead = scheduled_fires.lock_ahead(session, list(due), after_ms=begin_ms)
    wait_for_claimed(session, list(due), clock=clock)
    decided_ms = clock()
    unsent = [fire for fire in ahead if fire.due_time > decided_ms]
    scheduled_fires.remove(session, unsent)
    withdrawn: dict[int, list[Millis]] = {}
    for fire in unsent:
        withdrawn.setdefault(fire.job_id, []).append(fire.due_time)
    if of_calendar:
        due = _skip_unscanned(session, due, decided_ms)
    return Change(decided_ms + 1, due, withdrawn, former)


def _skip_unscanned(session: Session, due: dict[int, DueJob], decided_ms: Millis) -> dict[int, DueJob]:
    """Record the due instants that no scan has planned as skipped, as an edit of a schedule does."""
    skips = {
        job.id: skip
        for job in jobs.with_anchors(session, due.values()).values()
        if job.calendar and (skip := find_unscanned(job, now_ms=decided_ms)) is not None
    }
    rows = [skip_row(job_id, skip, reason=EDITED, now_ms=decided_ms) for job_id, skip in skips.items()]
    record_skips(session, rows, due, now_ms=decided_ms)
    new_due = {
        job_id: due[job_id]._replace(last_fire_ms=skip.to_ms, trigger_next_time=decided_ms + 1)
        for job_id, skip in skips.items()
    }
    return {**due, **new_due}
