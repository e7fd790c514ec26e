"""Report of completeness: counted days from their totals, everything else from the rows that are there."""

from collections.abc import Collection, Iterator, Sequence
from datetime import date
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.access.permissions import Actor, Right
from app.domain.completeness.days import interval_of, split_by_days, start_of
from app.domain.completeness.equation import Tally
from app.domain.completeness.expected_instants import Interval
from app.services.completeness.accounts import find_accounts, settled_part
from app.store.completeness import days as store


class Scope(NamedTuple):
    """What a report is about: groups (None: all), a job (0: all)."""

    group_ids: Collection[int] | None
    job_id: int

    @property
    def job_ids(self) -> Collection[int] | None:
        """Ids of jobs; None: all."""
        return [self.job_id] if self.job_id else None


class JobTally(NamedTuple):
    """Numbers of a job."""

    job_id: int
    group_id: int
    tally: Tally


class Report(NamedTuple):
    """Numbers of an interval, in all and by job: those that are not complete first."""

    interval: Interval
    total: Tally
    jobs: Sequence[JobTally]


def scope_of(actor: Actor, *, group_id: int = 0, job_id: int = 0) -> Scope:
    """Return what an actor may see of a group and a job (0: of all)."""
    visible = actor.group_ids(Right.VIEW)
    if not group_id:
        return Scope(visible, job_id)
    return Scope([group_id] if visible is None or group_id in visible else [], job_id)


def report(session: Session, scope: Scope, interval: Interval, *, zone: ZoneInfo, now_ms: Millis) -> Report:
    """Return what became of the expected instants of an interval."""
    interval = settled_part(interval, now_ms)
    tallies: dict[int, JobTally] = {}
    for job_id, group_id, tally in _tallies(session, scope, interval, zone, now_ms):
        if job_id in tallies:
            tallies[job_id].tally.add(tally)
            tallies[job_id] = tallies[job_id]._replace(group_id=group_id)
        else:
            tallies[job_id] = JobTally(job_id, group_id, tally)
    total = Tally()
    for job in tallies.values():
        total.add(job.tally)
    return Report(interval, total, sorted(tallies.values(), key=_worst_first))


def _worst_first(job: JobTally) -> tuple[int, int, int, int]:
    tally = job.tally
    return (
        -tally.unexplained - tally.unexpected,
        -tally.not_started.total(),
        -tally.skipped.total(),
        job.job_id,
    )


def _tallies(
    session: Session, scope: Scope, interval: Interval, zone: ZoneInfo, now_ms: Millis
) -> Iterator[tuple[int, int, Tally]]:
    """Yield job id, group id and numbers, more than once for a job: of counted days, and of the rest."""
    watermark_ms = store.find_watermark(session)
    open_days = store.find_open(session)
    whole_days, rest = _parts(interval, zone, watermark_ms)
    sums = store.sum_days(
        session,
        [day.isoformat() for day in whole_days],
        job_ids=scope.job_ids,
        group_ids=scope.group_ids,
    )
    for job_id, (group_id, tally) in sums.items():
        yield job_id, group_id, tally
    for part in rest:
        for job in find_accounts(
            session, part, now_ms=now_ms, job_ids=scope.job_ids, group_ids=scope.group_ids
        ):
            yield job.job_id, job.group_id, job.account.tally
    # What the totals of counted days, which follow each other, leave out: all since a run that is open.
    whole = Interval(0, 0)
    if whole_days:
        until_ms = min(interval_of(whole_days[-1], zone).until_ms, watermark_ms)
        whole = Interval(start_of(whole_days[0], zone), until_ms)
    for row in open_days:
        part = Interval(max(row.open_from_ms, whole.from_ms), whole.until_ms)
        if part.from_ms >= part.until_ms or scope.job_id not in (0, row.job_id):
            continue
        for job in find_accounts(
            session, part, now_ms=now_ms, job_ids=[row.job_id], group_ids=scope.group_ids
        ):
            yield job.job_id, job.group_id, job.account.tally


def _parts(interval: Interval, zone: ZoneInfo, watermark_ms: Millis) -> tuple[list[date], list[Interval]]:
    """Return the days whose totals an interval has as a whole, and the parts that are not in them."""
    whole_days, rest = list[date](), list[Interval]()
    for day, part in split_by_days(interval, zone):
        whole = interval_of(day, zone)
        until_ms = min(whole.until_ms, watermark_ms)
        if part.from_ms > whole.from_ms or part.until_ms < until_ms or until_ms <= whole.from_ms:
            rest.append(part)
            continue
        whole_days.append(day)
        if part.until_ms > until_ms:
            rest.append(Interval(until_ms, part.until_ms))
    return whole_days, rest
