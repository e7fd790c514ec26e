"""Sample data of completeness: histories, a month of days with a little of everything, seals, a watermark."""

import random
from datetime import date, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, Millis
from app.domain.completeness.days import day_of, interval_of, start_of
from app.domain.completeness.equation import Tally
from app.domain.completeness.expected_instants import count_expected
from app.domain.completeness.spans import Span
from app.domain.enums import ScheduleType, TriggerType
from app.domain.schedules.schedule import Schedule
from app.models.completeness import WATERMARK_JOB, JobDay
from app.models.job import Job
from app.models.log import JobLog
from app.services.completeness.counting import seal_of
from app.store.completeness import days as store
from app.store.completeness import spans as span_store
from app.store.completeness.days import DayKey, StoredDay

#: days with histories before today
DAYS = 45
#: days ago -> index of a job, term and reason, number of instants
FLAWS = {
    2: [(7, "skipped", "misfire", 19)],
    9: [(0, "not_started", "no_instance", 6), (0, "unexplained", "", 2), (2, "not_started", "overlap", 3)],
    14: [(7, "skipped", "stopped", 240), (1, "not_started", "parameter", 1)],
    15: [(7, "skipped", "edited", 4)],
    21: [(9, "unexpected", "", 1)],
    23: [(0, "not_started", "refused", 11), (0, "skipped", "restored", 2)],
}

#: index of a job, and days ago, of a day that has its runs
LOOKED_AT = (0, 9)
#: numbers of its runs that were not started, and that are missing
NOT_STARTED, VANISHED = range(100, 106), (200, 201)


def add_days(session: Session, jobs: list[Job], zone_name: str, now_ms: Millis) -> None:
    """Add histories of jobs and their days until now; all but yesterday's and today's are sealed."""
    zone, chance = ZoneInfo(zone_name), random.Random(3)
    today = day_of(now_ms, zone)
    begin_ms = start_of(today - timedelta(days=DAYS), zone) + 9 * HOUR_MS
    watermark_ms = now_ms // HOUR_MS * HOUR_MS
    spans = {job.id: _spans(job, begin_ms, now_ms, zone_name) for job in jobs}
    span_store.insert_spans(session, [span for parts in spans.values() for span in parts])
    last = None
    for back in range(DAYS, -1, -1):
        day = today - timedelta(days=back)
        rows = [_row(job, spans[job.id], day, zone, watermark_ms, chance) for job in jobs]
        for index, term, reason, count in FLAWS.get(back, ()):
            _move(rows[index].tally, term, reason, count)
        store.save_days(session, [row for row in rows if row.tally.expected])
        session.flush()
        if back > 1:
            last = seal_of(session, day.isoformat(), last)
            store.insert_seal(session, last, now_ms=interval_of(day, zone).until_ms + HOUR_MS)
    _runs(session, jobs[LOOKED_AT[0]], interval_of(today - timedelta(days=LOOKED_AT[1]), zone).from_ms)
    # Counted ahead: the runs of today that other data has are not those of the schedules.
    ahead_ms = now_ms + DAY_MS
    session.add(JobDay(job_id=WATERMARK_JOB, day="", group_id=0, open_from_ms=ahead_ms, expected=200))


def _runs(session: Session, job: Job, begin_ms: Millis) -> None:
    """Add the runs of a day of a job that starts each five minutes."""
    chance = random.Random(5)
    common = {"job_group": job.job_group, "job_id": job.id, "executor_handler": job.executor_handler}
    for number in range(DAY_MS // (5 * MINUTE_MS)):
        if number in VANISHED:
            continue
        at_ms, is_taken = begin_ms + number * 5 * MINUTE_MS, number not in NOT_STARTED
        run = JobLog(**common, trigger_time=at_ms, fire_time=at_ms, trigger_type=TriggerType.CRON)
        run.logical_ms, run.late_ms = at_ms, 4_200 if number == 30 else 12
        run.trigger_code, run.not_started = (200, "") if is_taken else (500, "no_instance")
        run.handle_code, run.handle_time = (
            (200, at_ms + chance.randrange(4, 70) * SECOND_MS) if is_taken else (0, None)
        )
        session.add(run)


def _spans(job: Job, begin_ms: Millis, now_ms: Millis, zone_name: str) -> list[Span]:
    kind = ScheduleType(job.schedule_type)
    schedule = Schedule(kind, job.schedule_conf or "", zone_name)
    anchor_ms = begin_ms if kind is ScheduleType.FIX_RATE else 0
    is_on = bool(job.trigger_status)
    whole = Span(job.id, job.job_group, is_on, begin_ms, None, schedule, anchor_ms)
    if not is_on or kind is not ScheduleType.CRON:
        return [whole]
    # Off for some hours, some days ago.
    off_ms = now_ms - 14 * DAY_MS
    on_ms = off_ms + 3 * HOUR_MS
    return [
        Span(job.id, job.job_group, True, begin_ms, off_ms, schedule, 0, "changed"),
        Span(job.id, job.job_group, False, off_ms, on_ms, schedule, 0, "changed"),
        Span(job.id, job.job_group, True, on_ms, None, schedule),
    ]


def _row(
    job: Job, spans: list[Span], day: date, zone: ZoneInfo, watermark_ms: Millis, chance: random.Random
) -> StoredDay:
    whole = interval_of(day, zone)
    interval = whole._replace(until_ms=min(whole.until_ms, watermark_ms))
    expected = count_expected(spans, interval) if interval.from_ms < interval.until_ms else 0
    late = chance.randrange(3) if expected > 50 and chance.random() < 0.2 else 0
    failed = expected // 60
    tally = Tally(expected, expected - late, late, finished=expected - failed, failed=failed)
    return StoredDay(0, DayKey(job.id, day.isoformat()), job.job_group, tally, {}, False, 0)


def _move(tally: Tally, term: str, reason: str, count: int) -> None:
    """Give instants that were on time another term."""
    if term == "unexpected":
        tally.unexpected += count
        return
    count = min(count, tally.on_time)
    tally.on_time -= count
    tally.finished = max(0, tally.finished - count)
    if reason:
        getattr(tally, term)[reason] += count
    else:
        setattr(tally, term, getattr(tally, term) + count)
