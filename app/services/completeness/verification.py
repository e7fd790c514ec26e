"""Verification: the chain of seals, the totals of sealed days, and a count of their instants anew."""

from datetime import date
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.completeness.days import day_of, interval_of
from app.domain.completeness.equation import Tally
from app.services.completeness.accounts import find_accounts
from app.services.completeness.counting import FIRST_HASH, SEAL_AT_LAST_MS, chain_hash, seal_of
from app.services.completeness.report import Scope
from app.store.completeness import days as store
from app.store.completeness import spans as span_store


class Verification(NamedTuple):
    """Result for a day."""

    sealed: bool
    #: all seals, and the totals of the day, are as they were sealed or corrected
    intact: bool
    unexplained: int
    unexpected: int
    #: jobs whose rows are all there, so that they were counted anew
    recounted: int
    #: jobs of which the new count differs from the totals
    different: list[int]


def verify_day(session: Session, scope: Scope, day: date, *, zone: ZoneInfo, now_ms: Millis) -> Verification:
    """Verify the seals up to a day, and count its instants anew where no rows were deleted."""
    name = day.isoformat()
    seals = store.find_seals(session)
    last = max((seal for seal in seals if seal.day == name), key=lambda seal: seal.number, default=None)
    intact, is_sealed = _is_chain(seals), last is not None
    if last is None:
        intact = intact and not _should_be_sealed(session, day, zone)
    else:
        again = seal_of(session, name, None, last.number)
        intact = intact and (again.rows_hash, again.totals) == (last.rows_hash, last.totals)
    row_by_job, total, count = store.find_days(session, name, scope.job_ids), Tally(), 0
    different: list[int] = []
    for job in find_accounts(
        session, interval_of(day, zone), now_ms=now_ms, job_ids=scope.job_ids, group_ids=scope.group_ids
    ):
        row = row_by_job.get(job.job_id)
        if row is not None and (row.cleared or row.removed):
            total.add(row.tally)
            continue
        count += 1
        tally = job.account.tally
        total.add(tally)
        if (
            is_sealed
            and row is not None
            and (row.tally.expected, row.tally.unexplained, row.tally.unexpected)
            != (
                tally.expected,
                tally.unexplained,
                tally.unexpected,
            )
        ):
            different.append(job.job_id)
    return Verification(is_sealed, intact, total.unexplained, total.unexpected, count, different)


def _should_be_sealed(session: Session, day: date, zone: ZoneInfo) -> bool:
    """Whether a day is counted for so long that it must have a seal."""
    first_ms, end_ms = span_store.find_first(session), interval_of(day, zone).until_ms
    if first_ms is None or day < day_of(first_ms, zone):
        return False
    return store.find_watermark(session) >= end_ms + SEAL_AT_LAST_MS


def _is_chain(seals: list[store.Seal]) -> bool:
    before = FIRST_HASH
    for seal in seals:
        if chain_hash(before, seal.day, seal.number, seal.totals, seal.rows_hash) != seal.hash:
            return False
        before = seal.hash
    return True
