"""A job on a day: its hours, the instants that were not on time, and when its schedule was off."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import HOUR_MS, Millis
from app.domain.completeness.days import day_of, interval_of
from app.domain.completeness.equation import Account, Irregular, Tally, Term
from app.domain.completeness.expected_instants import Interval, count_excluded, count_expected
from app.domain.completeness.spans import OffPeriod, Span, off_periods
from app.services.completeness.accounts import accounts_of, settled_part
from app.services.completeness.report import Scope
from app.store.completeness import spans as span_store
from app.store.completeness.totals import find_cleared

#: instants of a day that are looked at, and those not on time that are listed
INSTANTS_MAX, IRREGULAR_MAX = 20_000, 100
#: terms of instants that have no run, or one that no executor took
_MISSED = frozenset({Term.SKIPPED, Term.NOT_STARTED, Term.UNEXPLAINED})
#: periods without a schedule that are listed
OFF_MAX = 50


class Hour(NamedTuple):
    """Numbers of an hour, from its first instant on."""

    from_ms: Millis
    tally: Tally


class IrregularTimes(NamedTuple):
    """Instants that were not on time for one reason; several if there is no run of them."""

    first: Irregular
    last: Irregular
    instants: int


@dataclass(frozen=True, slots=True)
class JobDay:
    """Hours of a job on a day."""

    #: those in which something was due or ran
    hours: Sequence[Hour] = ()
    irregular: Sequence[IrregularTimes] = ()
    #: whether there are more of them
    has_more: bool = False
    #: whether the rows of the day were deleted, so that only its totals are known
    is_cleared: bool = False
    #: whether its instants are more than a page may count
    is_too_long: bool = False


def find_spans(session: Session, scope: Scope, interval: Interval) -> list[Span]:
    """Return the history of the job of a scope in an interval."""
    spans = span_store.find_spans(session, interval, job_ids=scope.job_ids, group_ids=scope.group_ids)
    return spans.get(scope.job_id, [])


def find_job_day(
    session: Session, spans: Sequence[Span], day: date, *, zone: ZoneInfo, now_ms: Millis
) -> JobDay:
    """Return the hours of a job with this history on a day."""
    interval = settled_part(interval_of(day, zone), now_ms)
    if not spans or interval.from_ms >= interval.until_ms:
        return JobDay()
    job_id = spans[0].job_id
    if find_cleared(session, job_id, day.isoformat(), day.isoformat()):
        return JobDay(is_cleared=True)
    if count_expected(spans, interval) + count_excluded(spans, interval).total() > INSTANTS_MAX:
        return JobDay(is_too_long=True)
    job_account = next(accounts_of(session, {job_id: spans}, interval, now_ms=now_ms))
    hours = [
        Hour(from_ms, job_account.recount(Interval(from_ms, min(from_ms + HOUR_MS, interval.until_ms))).tally)
        for from_ms in range(interval.from_ms, interval.until_ms, HOUR_MS)
    ]
    irregular = group_instants(
        sorted(
            [*job_account.account.irregular, *of_rules(job_account.account)], key=lambda entry: entry.instant
        )
    )
    return JobDay(
        [hour for hour in hours if hour.tally != Tally()],
        irregular[:IRREGULAR_MAX],
        len(irregular) > IRREGULAR_MAX,
    )


def of_rules(account: Account) -> Iterator[Irregular]:
    """Yield the instants that a calendar or a blackout excludes."""
    for part in account.exclusions:
        for instant in part.instants:
            yield Irregular(instant, Term.SKIPPED, part.reason, 0)


def group_instants(instants: Sequence[Irregular]) -> list[IrregularTimes]:
    """Return ascending instants, those that follow each other for one reason and without a run as one."""
    groups: list[IrregularTimes] = []
    for entry in instants:
        before = groups[-1] if groups else None
        is_alike = before is not None and before.last[1:] == entry[1:] and not entry.log_id
        if before is not None and is_alike:
            groups[-1] = IrregularTimes(before.first, entry, before.instants + 1)
        else:
            groups.append(IrregularTimes(entry, entry, 1))
    return groups


def find_missed(
    session: Session, spans: Sequence[Span], interval: Interval, *, zone: ZoneInfo, now_ms: Millis
) -> list[Millis]:
    """Return the instants of a job with this history that were due and have no run that an executor took.

    Not those that wait, nor those that a calendar or a blackout excludes, nor those of days of which rows
    were deleted: they may have run. None of more than a page counts.
    """
    interval = settled_part(interval, now_ms)
    if not spans or interval.from_ms >= interval.until_ms or count_expected(spans, interval) > INSTANTS_MAX:
        return []
    job_id = spans[0].job_id
    job_account = next(accounts_of(session, {job_id: spans}, interval, now_ms=now_ms))
    misses = [entry.instant for entry in job_account.account.irregular if entry.term in _MISSED]
    first, last = (day_of(at_ms, zone).isoformat() for at_ms in (interval.from_ms, interval.until_ms))
    cleared_days = find_cleared(session, job_id, first, last) if misses else set[str]()
    return [at_ms for at_ms in misses if day_of(at_ms, zone).isoformat() not in cleared_days]


def find_off(spans: Sequence[Span], interval: Interval, now_ms: Millis) -> list[OffPeriod]:
    """Return when the schedule of a job with this history was off in an interval, up to OFF_MAX times."""
    last_ms = min(interval.until_ms, now_ms)
    periods = [
        period
        for period in off_periods(spans)
        if period.from_ms < last_ms and (period.until_ms is None or period.until_ms > interval.from_ms)
    ]
    return periods[:OFF_MAX]
