"""Counting: what became of the instants of each hour is added to the totals of its day, then days are sealed.

A job with a run that waits or is open is counted up to its instant, and the rest when the run has ended.
docs/reference/completeness.md, sections 4 and 5.
"""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import DAY_MS, MINUTE_MS, Millis
from app.database.engine import read_scope, transact
from app.domain.completeness.days import day_of, interval_of, split_by_days, start_of
from app.domain.completeness.equation import Tally, account
from app.domain.completeness.expected import Interval, count_expected
from app.services.completeness.accounts import SETTLED_MS, JobAccount, accounts_of, settled
from app.store.completeness import days as store
from app.store.completeness import spans as span_store
from app.store.completeness.days import DayKey, Seal, StoredDay

logger = logging.getLogger(__name__)

#: period of the count
PERIOD_MS: Millis = MINUTE_MS
#: an hour is added to its day so long after its end
FOLD_AFTER_MS: Millis = 10 * MINUTE_MS
HOUR_MS: Millis = 60 * MINUTE_MS
#: instants after the watermark that are looked at each time, and at least for so long
RECENT_INSTANTS = 100_000
RECENT_MIN_MS: Millis = 3 * MINUTE_MS
#: a day is sealed so long after its end if it is counted, and after so long in any case
SEAL_AFTER_MS: Millis = HOUR_MS
SEAL_AT_LAST_MS: Millis = 7 * DAY_MS
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


def fold(step: Interval, zone: ZoneInfo, *, now_ms: Millis) -> bool:
    """Add a part of a day to its totals, and what jobs have left open; return whether it was still to do."""
    with read_scope() as session:
        accounts = [*_accounts(session, step, now_ms=now_ms)]
        reopened = [*_open_accounts(session, step.until_ms, zone, now_ms=now_ms)]
    return transact(partial(_write, step=step, accounts=accounts, reopened=reopened, zone=zone))


class _Part:
    """Totals of a job in a part of a day; ``open_ms``: from there on it is not counted; 0: to the end."""

    def __init__(self, day: date, found: JobAccount, tally: Tally, open_ms: Millis) -> None:
        self.key = DayKey(found.job_id, day.isoformat())
        self.group_id, self.tally, self.open_ms = found.group_id, tally, open_ms
        self.removed = found.account.removed


def _accounts(session: Session, step: Interval, *, now_ms: Millis) -> Iterator[JobAccount]:
    """Yield the accounts of a part of a day of the jobs that are not open before it."""
    open_ids = {row.job_id for row in store.find_open(session)}
    spans = span_store.find_spans(session, step)
    spans = {job_id: parts for job_id, parts in spans.items() if job_id not in open_ids}
    yield from accounts_of(session, spans, step, now_ms=now_ms)
