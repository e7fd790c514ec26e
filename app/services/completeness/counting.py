"""Counting: what became of the instants of each hour is added to the totals of its day, then days are sealed.

A job with a run that waits or is open is counted up to its instant, and the rest when the run has ended.
docs/reference/completeness.md, sections 4 and 5.
"""

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import DAY_MS, HOUR_MS, MINUTE_MS, Millis
from app.database.engine import read_scope, transact
from app.domain.completeness.days import day_of, interval_of, split_by_days, start_of
from app.domain.completeness.equation import Account, Tally
from app.domain.completeness.expected_instants import Interval, count_expected
from app.services.completeness.accounts import SETTLED_MS, JobAccount, accounts_of, find_accounts
from app.store.completeness import days as store
from app.store.completeness import spans as span_store
from app.store.completeness.days import DayKey, OpenDay, Seal, StoredDay
from app.store.jobs import skips

logger = logging.getLogger(__name__)

#: period of the count
PERIOD_MS: Millis = MINUTE_MS
#: an hour is added to its day so long after its end
FOLD_AFTER_MS: Millis = 10 * MINUTE_MS
#: instants after the watermark that are looked at each time, and at least for so long
RECENT_INSTANTS = 100_000
RECENT_MIN_MS: Millis = 3 * MINUTE_MS
#: a day is sealed so long after its end if it is counted, and after so long in any case
SEAL_AFTER_MS: Millis = HOUR_MS
SEAL_AT_LAST_MS: Millis = 7 * DAY_MS
#: days of jobs that are counted again in one transaction
CORRECTED_AT_ONCE = 50
#: hash before the first seal
FIRST_HASH = "0" * 64


class CompletenessCounter:
    """Counter of one node; of several nodes one does each step."""

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)

    def tick(self, now_ms: Millis) -> Millis:
        """Add hours to days, seal days, and look at what came after; return the wait until the next round."""
        while step := self._next_step(now_ms):
            if not fold(step, self._zone, now_ms=now_ms):
                break
        while transact(partial(seal_next, zone=self._zone, now_ms=now_ms)):
            pass
        while transact(partial(correct, zone=self._zone, now_ms=now_ms)):
            pass
        with read_scope() as session:
            recent = look_at_recent(session, now_ms=now_ms)
        if not recent.is_complete:  # Rows may have been written between two reads.
            with read_scope() as session:
                recent = look_at_recent(session, now_ms=now_ms)
        transact(partial(store.save_recent, tally=recent))
        if not recent.is_complete:
            logger.warning(
                "instants not complete unexplained=%s unexpected=%s", recent.unexplained, recent.unexpected
            )
        return PERIOD_MS

    def _next_step(self, now_ms: Millis) -> Interval | None:
        """Return the next part of a day to count, up to an hour that has ended; None: there is none."""
        until_ms = (now_ms - FOLD_AFTER_MS) // HOUR_MS * HOUR_MS
        with read_scope() as session:
            from_ms = store.find_watermark(session) or _beginning(session, self._zone, now_ms)
        if from_ms is None or from_ms >= until_ms:
            return None
        return next(split_by_days(Interval(from_ms, until_ms), self._zone))[1]


def _beginning(session: Session, zone: ZoneInfo, now_ms: Millis) -> Millis | None:
    """Return the start of the day from which on histories are known; None: there are none."""
    first_ms = span_store.find_first(session)
    return None if first_ms is None else start_of(day_of(max(first_ms, now_ms - SEAL_AT_LAST_MS), zone), zone)


class _Part:
    """What is added to a row of a job and a day."""

    def __init__(self, job: JobAccount, day: date, part: Account) -> None:
        self.key = DayKey(job.job_id, day.isoformat())
        self.group_id = job.group_id
        self.tally, self.removed = part.tally, part.deleted_runs
        #: from here on it is not counted; 0: it is
        self.open_from_ms = 0 if part.open_ms is None else part.open_ms


def fold(step: Interval, zone: ZoneInfo, *, now_ms: Millis) -> bool:
    """Add a part of a day to its totals, and what jobs had left open; return whether it was still to do.

    Reads outside the transaction that writes, which adds nothing if another node has counted meanwhile.
    """
    with read_scope() as session:
        watermark_ms, open_days = store.find_watermark(session), store.find_open(session)
        open_ids = {row.job_id for row in open_days}
        spans = span_store.find_spans(session, step)
        rest = {job_id: parts for job_id, parts in spans.items() if job_id not in open_ids}
        day = day_of(step.from_ms, zone)
        parts = [_part(job, day, step, now_ms) for job in accounts_of(session, rest, step, now_ms=now_ms)]
        for row in open_days:
            parts += _continue(session, row, step.until_ms, zone, now_ms)
    return transact(partial(_write, step=step, watermark_ms=watermark_ms, parts=parts, open_days=open_days))


def _part(job: JobAccount, day: date, interval: Interval, now_ms: Millis) -> _Part:
    """Return what is added of an account: up to a run that waits or is open, for some days."""
    open_ms = job.account.open_ms
    if open_ms is None or open_ms < now_ms - SEAL_AT_LAST_MS:
        return _Part(job, day, replace(job.account, open_ms=None))
    before = replace(job.recount(Interval(interval.from_ms, open_ms)), open_ms=open_ms)
    return _Part(job, day, before)


def _continue(
    session: Session, row: OpenDay, until_ms: Millis, zone: ZoneInfo, now_ms: Millis
) -> Iterator[_Part]:
    """Yield what is added to the days of a job that was left open, up to where it is open still."""
    for day, interval in split_by_days(Interval(row.open_from_ms, until_ms), zone):
        for job in find_accounts(session, interval, now_ms=now_ms, job_ids=[row.job_id]):
            part = _part(job, day, interval, now_ms)
            yield part
            if part.open_from_ms:
                return


def _write(
    session: Session,
    step: Interval,
    watermark_ms: Millis,
    parts: Sequence[_Part],
    open_days: Sequence[OpenDay],
) -> bool:
    if store.lock_watermark(session) != watermark_ms:
        return False
    by_day: defaultdict[str, dict[int, _Part]] = defaultdict(dict)
    for part in parts:
        if part.tally.expected or part.tally.unexpected or part.tally.unknown or part.open_from_ms:
            by_day[part.key.day][part.key.job_id] = part
    for row in open_days:
        by_day.setdefault(row.day, {})
    open_keys = {(row.job_id, row.day) for row in open_days}
    for day, of_day in by_day.items():
        job_ids = {*of_day, *(job_id for job_id, open_day in open_keys if open_day == day)}
        row_by_job = store.find_days(session, day, job_ids)
        store.save_days(
            session, [_add(row_by_job.get(job_id), of_day.get(job_id)) for job_id in sorted(job_ids)]
        )
    store.set_watermark(session, step.until_ms)
    return True


def _add(row: StoredDay | None, part: _Part | None) -> StoredDay:
    """Return a row of a day with what is added to it."""
    if part is None:
        assert row is not None, "a day that was left open has a row"
        return row._replace(open_from_ms=0, removed={})
    row = row or StoredDay(0, part.key, part.group_id, Tally(), {}, False, 0)
    row.tally.add(part.tally)
    deleted_runs = part.removed if part.open_from_ms else {}
    return row._replace(group_id=part.group_id, open_from_ms=part.open_from_ms, removed=deleted_runs)


def look_at_recent(session: Session, *, now_ms: Millis) -> Tally:
    """Return the numbers of the instants after the watermark, and of what jobs have left open.

    Of very many instants the latest are looked at, RECENT_MIN_MS of them at least.
    """
    until_ms = now_ms - SETTLED_MS
    from_ms = store.find_watermark(session) or until_ms - HOUR_MS
    open_days = store.find_open(session)
    interval = Interval(from_ms, until_ms)
    spans = span_store.find_spans(session, interval)
    count = sum(count_expected(parts, interval) for parts in spans.values())
    if count > RECENT_INSTANTS:
        length_ms = max(RECENT_MIN_MS, (until_ms - from_ms) * RECENT_INSTANTS // count)
        interval = Interval(until_ms - length_ms, until_ms)
    total = Tally()
    open_ids = {row.job_id for row in open_days}
    rest = {job_id: parts for job_id, parts in spans.items() if job_id not in open_ids}
    for job in accounts_of(session, rest, interval, now_ms=now_ms):
        total.add(job.account.tally)
    for row in open_days:
        whole = Interval(row.open_from_ms, until_ms)
        for job in find_accounts(session, whole, now_ms=now_ms, job_ids=[row.job_id]):
            total.add(job.account.tally)
    return total


def seal_next(session: Session, *, zone: ZoneInfo, now_ms: Millis) -> bool:
    """Seal the next day that has ended and is counted; return whether there was one."""
    watermark_ms, last_day = store.lock_watermark(session), store.find_last_day(session)
    if last_day:
        day = date.fromisoformat(last_day) + timedelta(days=1)
    else:
        first_ms = span_store.find_first(session)
        if first_ms is None:
            return False
        day = day_of(first_ms, zone)
    end_ms = interval_of(day, zone).until_ms
    if watermark_ms < end_ms or now_ms < end_ms + SEAL_AFTER_MS:
        return False
    is_open = any(row.open_from_ms < end_ms for row in store.find_open(session))
    if is_open and now_ms < end_ms + SEAL_AT_LAST_MS:
        return False
    has_restore = skips.has_restored(session, since_ms=store.find_last_sealed_ms(session))
    seal = seal_of(session, day.isoformat(), store.find_last_seal(session))
    store.insert_seal(session, seal._replace(restored=int(has_restore)), now_ms=now_ms)
    return True


def correct(session: Session, *, zone: ZoneInfo, now_ms: Millis) -> bool:
    """Count days again whose runs got another result, and append the corrections of sealed ones to the chain.

    What was deleted cannot be counted again, and stays. Returns whether there may be more.
    """
    watermark_ms = store.lock_watermark(session)
    rows = store.take_changed(session, limit=CORRECTED_AT_ONCE)
    if not rows:
        return False
    new_rows = []
    for row in rows:
        whole = interval_of(date.fromisoformat(row.key.day), zone)
        span = Interval(whole.from_ms, min(whole.until_ms, row.open_from_ms or watermark_ms))
        job_ids = [row.key.job_id]
        for job in find_accounts(session, span, now_ms=now_ms, job_ids=job_ids):
            tally = job.account.tally
            if not row.cleared and not row.removed and tally != row.tally and not tally.running:
                new_rows.append(row._replace(tally=tally))
    store.save_days(session, new_rows)
    for day in sorted({row.key.day for row in new_rows}):
        number = store.find_last_number(session, day) + 1
        if number:
            seal = seal_of(session, day, store.find_last_seal(session), number)
            store.insert_seal(session, seal, now_ms=now_ms)
    return True


def seal_of(session: Session, day: str, last: Seal | None, number: int = 0) -> Seal:
    """Return the seal of a day as its rows are now, behind the last one."""
    rows = store.find_days(session, day).values()
    total = Tally()
    for row in rows:
        total.add(row.tally)
    totals = json.dumps(total.as_dict(), sort_keys=True, separators=(",", ":"))
    rows_hash = hashlib.sha256(store.canonical(rows).encode()).hexdigest()
    before = last.hash if last is not None else FIRST_HASH
    return Seal(day, number, totals, rows_hash, chain_hash(before, day, number, totals, rows_hash))


def chain_hash(before: str, day: str, number: int, totals: str, rows_hash: str) -> str:
    """Return the hash of a seal, which depends on the one before it."""
    return hashlib.sha256("\n".join((before, day, str(number), totals, rows_hash)).encode()).hexdigest()
