"""Overview of completeness: numbers of the days of a month, of a period, and of the jobs not on time.

Sealed days come from their seals, others are summed by the database; no row of a job and a day comes here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.completeness.days import start_of
from app.domain.completeness.equation import Tally
from app.domain.completeness.expected_instants import Interval
from app.services.completeness.report import Scope
from app.services.completeness.rest import DayTally, Rest, find_rest
from app.store.completeness import spans as span_store
from app.store.completeness import totals as store
from app.store.completeness.totals import JobSum

#: jobs of the table
JOBS_MAX = 100
#: days in which jobs not on time are searched at once
DAYS_AT_ONCE = 6


class Days(NamedTuple):
    """Days of a period, both ends inclusive."""

    first: date
    last: date

    def interval(self, zone: ZoneInfo) -> Interval:
        """Return the instants of these days."""
        return Interval(start_of(self.first, zone), start_of(self.last + timedelta(days=1), zone))

    def has(self, day: str) -> bool:
        """Whether a day is one of these."""
        return self.first.isoformat() <= day <= self.last.isoformat()


@dataclass(frozen=True, slots=True)
class Overview:
    """Numbers of a month and a period."""

    #: the first instant of which histories are known; None: none is
    first_ms: Millis | None
    #: up to when instants are counted
    until_ms: Millis
    #: by day, as ``2026-11-29``; a day without instants may be absent
    days: Mapping[str, Tally]
    #: day -> when it was sealed
    sealed_ms_by_day: Mapping[str, Millis]
    total: Tally
    #: those of which an instant was not on time, those with unexplained first
    jobs: Sequence[JobSum]
    #: whether there are more of them
    has_more: bool
    #: jobs with a run that waits or is open, whose instants after it are left out
    left_out: int


def find_overview(
    session: Session, scope: Scope, month: Days, period: Days, *, zone: ZoneInfo, now_ms: Millis
) -> Overview:
    """Return the numbers of a month, and of a period that ends in it or is all of it."""
    whole = Days(min(month.first, period.first), max(month.last, period.last))
    seals = store.find_sealed(session, whole.first.isoformat(), whole.last.isoformat())
    days = _stored_days(session, scope, whole, seals)
    rest, first_ms = rest_of(session, scope, whole, zone=zone, now_ms=now_ms)
    irregular_days = {day: Tally() for day in filter(period.has, days) if is_irregular(days[day])}
    for day, tally in irregular_days.items():
        tally.add(days[day])
    for part in rest.tallies:
        days.setdefault(part.day, Tally()).add(part.tally)
    total = Tally()
    for day in filter(period.has, days):
        total.add(days[day])
    jobs = _jobs(
        session, scope, period, irregular_days, [part for part in rest.tallies if period.has(part.day)]
    )
    return Overview(
        first_ms,
        rest.until_ms,
        days,
        {day: seal.sealed_ms for day, seal in seals.items()},
        total,
        jobs[:JOBS_MAX],
        len(jobs) > JOBS_MAX,
        rest.left_out,
    )


def rest_of(
    session: Session, scope: Scope, days: Days, *, zone: ZoneInfo, now_ms: Millis
) -> tuple[Rest, Millis | None]:
    """Return what is not stored yet of some days, and the first instant of which histories are known."""
    watermark, first_ms = store.find_watermark(session), span_store.find_first(session)
    if not watermark.at_ms and first_ms is not None:  # Nothing is stored: all that is known is not.
        watermark = watermark._replace(at_ms=first_ms)
    interval = days.interval(zone)
    rest = find_rest(session, scope, interval, watermark=watermark, zone=zone, now_ms=now_ms)
    return rest, first_ms


def days_up_to(month: date, today: date) -> Days:
    """Return the days of a month, without those to come."""
    following = (month.replace(day=28) + timedelta(days=4)).replace(day=1)
    last = following - timedelta(days=1)
    return Days(month.replace(day=1), min(last, today) if month <= today else last)


def is_irregular(tally: Tally) -> bool:
    """Whether an instant was not on time though no rule excluded it, or ran without being due."""
    return tally.expected - tally.excluded > tally.on_time or bool(tally.unexpected or tally.unknown)


def stored_scope(scope: Scope, days: Days) -> store.Scope:
    """Return which stored days a scope has in a period."""
    return store.Scope(days.first.isoformat(), days.last.isoformat(), scope.group_ids, scope.job_id)


def rest_by_job(parts: Iterable[DayTally]) -> dict[int, JobSum]:
    """Return what is not stored yet by job."""
    sums: dict[int, JobSum] = {}
    for part in parts:
        sums.setdefault(part.job_id, JobSum(part.job_id, part.group_id, Tally())).tally.add(part.tally)
    return sums


def _stored_days(
    session: Session, scope: Scope, whole: Days, seals: Mapping[str, store.SealedDay]
) -> dict[str, Tally]:
    """Return the stored totals by day: of all jobs from seals where there are any."""
    of_days = stored_scope(scope, whole)
    if not of_days.is_all:
        return store.sum_by_day(session, of_days)
    days = {day: seal.tally for day, seal in seals.items()}
    if whole.last.isoformat() in days:
        return days
    last_sealed = max(days, default="")
    after = date.fromisoformat(last_sealed) + timedelta(days=1) if last_sealed else whole.first
    return store.sum_by_day(session, of_days._replace(first=after.isoformat())) | days


def _jobs(
    session: Session, scope: Scope, period: Days, days: Mapping[str, Tally], parts: Sequence[DayTally]
) -> list[JobSum]:
    """Return the jobs not on time, in stored days or the rest; one more than JOBS_MAX if there are more."""
    of_period, limit = stored_scope(scope, period), JOBS_MAX + 1
    job_ids = _irregular_ids(session, of_period, days, limit)
    rest = rest_by_job(parts)
    others = [job for job in rest.values() if is_irregular(job.tally) and job.job_id not in job_ids]
    other_ids = {job.job_id for job in sorted(others, key=worst_first)[:limit]}
    ids = [*job_ids, *other_ids]
    jobs = store.sum_jobs(session, of_period, ids) if ids else []
    store.add_reasons(session, of_period, jobs)
    return sorted(add_rest(jobs, rest, ids), key=worst_first)[:limit]


def _irregular_ids(session: Session, scope: store.Scope, days: Mapping[str, Tally], limit: int) -> list[int]:
    """Return jobs not on time: all that have something wrong, then those of the days with most flaws.

    A few days are enough where many jobs have flaws: then it would take long to rank all of them.
    """
    wrong = [day for day, tally in days.items() if not tally.is_complete]
    flaws = {day: tally.expected - tally.excluded - tally.on_time for day, tally in days.items()}
    others = sorted(days.keys() - set(wrong), key=lambda day: -flaws[day])
    batches = [
        wrong,
        *(others[start : start + DAYS_AT_ONCE] for start in range(0, len(others), DAYS_AT_ONCE)),
    ]
    job_ids: dict[int, None] = {}
    for batch in filter(None, batches):
        if len(job_ids) >= limit:
            break
        job_ids |= dict.fromkeys(store.find_irregular(session, scope, batch, limit=limit))
    return [*job_ids][:limit]


def add_rest(jobs: Sequence[JobSum], rest: Mapping[int, JobSum], job_ids: Iterable[int]) -> list[JobSum]:
    """Add to the stored numbers of jobs those that are not stored yet; some have no others."""
    sum_by_job = {job.job_id: job for job in jobs}
    for job_id in sum_by_job.keys() & rest.keys():
        sum_by_job[job_id].tally.add(rest[job_id].tally)
    either = {**rest, **sum_by_job}
    return [either[job_id] for job_id in job_ids if job_id in either]


def worst_first(job: JobSum) -> tuple[int, int, int, int]:
    """Return the order of jobs: those with unexplained or unexpected first."""
    tally = job.tally
    wrong = tally.unexplained + tally.unexpected
    return -wrong, -tally.not_started.total(), tally.excluded - tally.skipped.total(), job.job_id
