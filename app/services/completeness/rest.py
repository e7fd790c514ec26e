"""Rest: instants that the stored days do not have yet, counted from the rows that are there now.

That are those after the watermark, and those of jobs whose run waits or is open. A page counts them if
they are few.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import HOUR_MS, Millis
from app.domain.completeness.days import split_by_days
from app.domain.completeness.equation import Tally
from app.domain.completeness.expected_instants import Interval, count_expected
from app.domain.completeness.spans import Span
from app.services.completeness.accounts import JobAccount, accounts_of, settled_part
from app.services.completeness.report import Scope
from app.store.completeness import days as day_store
from app.store.completeness import spans as span_store
from app.store.completeness.totals import Watermark

#: instants that are counted at once of many jobs, and of one
INSTANTS_MAX, INSTANTS_OF_JOB_MAX = 5_000, 50_000
#: what came after the watermark of many jobs is counted if that is not older
WATERMARK_AGE_MAX_MS: Millis = 3 * HOUR_MS
#: jobs with a run that waits or is open
OPEN_MAX = 100


class DayTally(NamedTuple):
    """Numbers of a job on a day."""

    job_id: int
    group_id: int
    day: str
    tally: Tally


class Rest(NamedTuple):
    """Numbers that are not stored yet."""

    tallies: Sequence[DayTally]
    #: up to when the instants are counted, with those that are stored
    until_ms: Millis
    #: jobs with a run that waits or is open, of which the instants after it are left out: they are too many
    left_out: int


def find_rest(
    session: Session,
    scope: Scope,
    interval: Interval,
    *,
    watermark: Watermark,
    zone: ZoneInfo,
    now_ms: Millis,
) -> Rest:
    """Return the numbers of an interval that are not stored yet, if they are few."""
    open_from = _open_from(session, scope)
    interval = settled_part(interval, now_ms)
    after = Interval(max(interval.from_ms, watermark.at_ms), interval.until_ms)
    tallies, until_ms = list[DayTally](), min(interval.until_ms, watermark.at_ms)
    if after.from_ms < after.until_ms and _may_count(scope, after, watermark):
        spans = _spans(session, scope, after, scope.job_ids)
        rest = {job_id: parts for job_id, parts in spans.items() if job_id not in open_from}
        if _is_few(rest, after, scope):
            accounts = accounts_of(session, rest, after, now_ms=now_ms)
            tallies, until_ms = [*_by_days(accounts, after, zone, {})], after.until_ms
    begin_ms = min(open_from.values(), default=until_ms)
    left = Interval(max(interval.from_ms, begin_ms), until_ms)
    if left.from_ms >= left.until_ms:
        return Rest(tallies, until_ms, 0)
    spans = _spans(session, scope, left, open_from) if len(open_from) <= OPEN_MAX else {}
    if len(open_from) > OPEN_MAX or not _is_few(spans, left, scope):
        return Rest(tallies, until_ms, len(open_from))
    accounts = accounts_of(session, spans, left, now_ms=now_ms)
    return Rest([*tallies, *_by_days(accounts, left, zone, open_from)], until_ms, 0)


def _open_from(session: Session, scope: Scope) -> dict[int, Millis]:
    """Return the jobs of a scope that are not counted up to the watermark, and from when on."""
    rows = day_store.find_open(session)
    return {row.job_id: row.open_from_ms for row in rows if scope.job_id in (0, row.job_id)}


def _may_count(scope: Scope, after: Interval, watermark: Watermark) -> bool:
    """Whether the instants after the watermark may be few, before the histories of all jobs are read."""
    if scope.job_id:
        return True
    is_recent = after.until_ms - after.from_ms <= WATERMARK_AGE_MAX_MS
    return is_recent and watermark.recent_expected <= INSTANTS_MAX


def _spans(
    session: Session, scope: Scope, interval: Interval, job_ids: Collection[int] | None
) -> dict[int, list[Span]]:
    return span_store.find_spans(session, interval, job_ids=job_ids, group_ids=scope.group_ids)


def _is_few(spans: Mapping[int, Sequence[Span]], interval: Interval, scope: Scope) -> bool:
    left = INSTANTS_OF_JOB_MAX if scope.job_id else INSTANTS_MAX
    for parts in spans.values():
        left -= count_expected(parts, interval)
        if left < 0:
            return False
    return True


def _by_days(
    accounts: Iterator[JobAccount], interval: Interval, zone: ZoneInfo, from_by_job: Mapping[int, Millis]
) -> Iterator[DayTally]:
    """Yield the numbers of accounts by days; of some jobs from an instant on."""
    for job in accounts:
        from_ms = max(interval.from_ms, from_by_job.get(job.job_id, 0))
        for day, part in split_by_days(Interval(from_ms, interval.until_ms), zone):
            account = job.account if part == interval else job.recount(part)
            yield DayTally(job.job_id, job.group_id, day.isoformat(), account.tally)
