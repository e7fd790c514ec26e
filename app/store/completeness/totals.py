"""Totals of stored days: by day and by job, summed by the database; sealed days from their seals."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, func, or_, select
from sqlalchemy.orm import Session

from app.clock import Millis
from app.database.rows import bulk
from app.domain.completeness.equation import Tally, tally_of
from app.models.completeness import WATERMARK_JOB, DaySeal, JobDay
from app.store.completeness.days import NUMBERS

_SUMS = tuple(func.sum(getattr(JobDay, name)) for name in NUMBERS)


class Scope(NamedTuple):
    """Stored days that are read: first and last day, groups (None: all), a job (0: all)."""

    first: str
    last: str
    group_ids: Collection[int] | None = None
    job_id: int = 0

    @property
    def is_all(self) -> bool:
        """Whether all jobs are read, as they are sealed."""
        return self.group_ids is None and not self.job_id


class SealedDay(NamedTuple):
    """Totals of a day as they were sealed, and when."""

    tally: Tally
    sealed_ms: Millis


class JobSum(NamedTuple):
    """Totals of a job, and the group that it was in last."""

    job_id: int
    group_id: int
    tally: Tally


class Watermark(NamedTuple):
    """Up to when all jobs are counted (0: nothing is), and what was found after that when looked at last."""

    at_ms: Millis
    recent_expected: int


def find_watermark(session: Session) -> Watermark:
    """Return up to when all jobs are counted, but for those that are still open."""
    query = select(JobDay.open_from_ms, JobDay.expected).where(JobDay.job_id == WATERMARK_JOB)
    rows = bulk.read_rows(session, query)
    return Watermark._make(rows[0]) if rows else Watermark(0, 0)


def find_sealed(session: Session, first: str, last: str) -> dict[str, SealedDay]:
    """Return the sealed days; of a day with corrections the last one."""
    query = select(DaySeal.day, DaySeal.totals, DaySeal.sealed_ms).where(DaySeal.day.between(first, last))
    rows = bulk.read_rows(session, query.order_by(DaySeal.day, DaySeal.number))
    return {day: SealedDay(tally_of(json.loads(totals)), sealed_ms) for day, totals, sealed_ms in rows}


def sum_by_day(session: Session, scope: Scope) -> dict[str, Tally]:
    """Return day -> totals of the jobs of a scope, in one statement and another for reasons.

    Texts of reasons are alike for most jobs: the database counts them, so that few come here.
    """
    with_reasons = func.sum(JobDay.not_started + JobDay.skipped)
    query = select(JobDay.day, with_reasons, *_SUMS).where(*_conditions(scope)).group_by(JobDay.day)
    rows = bulk.read_rows(session, query)
    totals, days = {row[0]: _tally(row[2:]) for row in rows}, [row[0] for row in rows if row[1]]
    reasons = (
        select(JobDay.day, JobDay.reasons, func.count())
        .where(*_conditions(scope), JobDay.day.in_(days), JobDay.reasons.is_not(None))
        .group_by(JobDay.day, JobDay.reasons)
    )
    for day, text, count in bulk.read_rows(session, reasons) if days else ():
        _add_reasons(totals[day], text, count)
    return totals


def find_day(session: Session, day: str, group_ids: Collection[int] | None) -> Tally:
    """Return the totals of a day, of all groups (None) from its seal; without the names of reasons."""
    seals = find_sealed(session, day, day) if group_ids is None else {}
    if day in seals:
        return seals[day].tally
    by_reason = (func.sum(JobDay.not_started), func.sum(JobDay.skipped))
    query = select(*by_reason, *_SUMS).where(*_conditions(Scope(day, day, group_ids)))
    not_started, skip_count, *sums = (number or 0 for number in bulk.read_rows(session, query)[0])
    tally = _tally(sums)
    tally.not_started[""], tally.skipped[""] = int(not_started), int(skip_count)
    return tally


def find_irregular(session: Session, scope: Scope, days: Collection[str], *, limit: int) -> list[int]:
    """Return the jobs of which an instant of these days was not on time, those with unexplained first.

    An instant that a calendar or a blackout excludes is none of them.
    Their other days are left to ``sum_jobs``: to sum all rows of all jobs takes four times as long.
    """
    is_late = JobDay.expected - JobDay.excluded > JobDay.on_time
    is_irregular = or_(is_late, JobDay.unexpected > 0, JobDay.unknown > 0)
    query = (
        select(JobDay.job_id)
        .where(*_conditions(scope), JobDay.day.in_(sorted(days)), is_irregular)
        .group_by(JobDay.job_id)
        .order_by(
            func.sum(JobDay.unexplained + JobDay.unexpected).desc(),
            func.sum(JobDay.not_started).desc(),
            func.sum(JobDay.skipped - JobDay.excluded).desc(),
            JobDay.job_id,
        )
        .limit(limit)
    )
    return [row[0] for row in bulk.read_rows(session, query)]


def sum_jobs(session: Session, scope: Scope, job_ids: Collection[int]) -> list[JobSum]:
    """Return the totals of these jobs; without reasons."""
    return _job_sums(session, _by_job(scope).where(JobDay.job_id.in_(sorted(job_ids))))


def find_job_ids(session: Session, scope: Scope) -> list[int]:
    """Return the jobs of a scope."""
    query = select(JobDay.job_id).where(*_conditions(scope)).distinct()
    return [row[0] for row in bulk.read_rows(session, query)]


def add_reasons(session: Session, scope: Scope, sums: Iterable[JobSum]) -> None:
    """Add to the totals of jobs the reasons of their terms."""
    tallies = {job.job_id: job.tally for job in sums}
    query = select(JobDay.job_id, JobDay.reasons).where(
        *_conditions(scope), JobDay.job_id.in_(sorted(tallies)), JobDay.reasons.is_not(None)
    )
    for job_id, text in bulk.read_rows(session, query) if tallies else ():
        _add_reasons(tallies[job_id], text, 1)


def find_cleared(session: Session, job_id: int, first: str, last: str) -> set[str]:
    """Return the days of a job of which rows were deleted, so that they cannot be looked at by the hour."""
    query = select(JobDay.day, JobDay.cleared, JobDay.removed).where(
        JobDay.job_id == job_id, JobDay.day.between(first, last)
    )
    return {
        day for day, is_cleared, deleted_runs in bulk.read_rows(session, query) if is_cleared or deleted_runs
    }


def _conditions(scope: Scope) -> list[ColumnElement[bool]]:
    conditions = [JobDay.day.between(scope.first, scope.last), JobDay.job_id != WATERMARK_JOB]
    if scope.job_id:
        conditions.append(JobDay.job_id == scope.job_id)
    if scope.group_ids is not None:
        conditions.append(JobDay.group_id.in_(sorted(scope.group_ids)))
    return conditions


def _by_job(scope: Scope) -> Select[Any]:
    columns = (JobDay.job_id, func.max(JobDay.group_id), *_SUMS)
    return select(*columns).where(*_conditions(scope)).group_by(JobDay.job_id)


def _job_sums(session: Session, query: Select[Any]) -> list[JobSum]:
    return [JobSum(row[0], row[1], _tally(row[2:])) for row in bulk.read_rows(session, query)]


def _tally(sums: Sequence[Any]) -> Tally:
    numbers: dict[str, Any] = dict(zip(NUMBERS, map(int, sums), strict=True))
    return Tally(**numbers)


def _add_reasons(tally: Tally, text: str, times: int) -> None:
    terms: Mapping[str, Mapping[str, int]] = json.loads(text)
    for term, numbers in terms.items():
        getattr(tally, term).update({reason: number * times for reason, number in numbers.items()})
