"""Accounts: what became of the expected instants of jobs, from the rows that are there now."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.domain.completeness.equation import Account, account
from app.domain.completeness.expected_instants import Interval, count_expected
from app.domain.completeness.spans import Span
from app.domain.enums import ScheduleType
from app.store.completeness import spans as span_store
from app.store.completeness.evidence import SHIFT_MAX_MS, find_evidence
from app.store.nodes import nodes

#: an instant is looked at so long after it: a scan plans it ahead and a claim takes a moment
SETTLED_MS: Millis = 5 * SECOND_MS
#: instants, and jobs, of which evidence is read at once
INSTANTS_AT_ONCE = 50_000
JOBS_AT_ONCE = 500


class JobAccount(NamedTuple):
    """Account of a job, and the group that it is in, or was in last."""

    job_id: int
    group_id: int
    account: Account
    #: counts a part of the interval anew
    recount: Callable[[Interval], Account]


def find_accounts(
    session: Session,
    interval: Interval,
    *,
    now_ms: Millis,
    job_ids: Collection[int] | None = None,
    group_ids: Collection[int] | None = None,
) -> Iterator[JobAccount]:
    """Yield the accounts of the jobs (None: all) whose history reaches into an interval, by job id.

    Instants that are younger than SETTLED_MS are left out.
    """
    interval = settled_part(interval, now_ms)
    if interval.from_ms >= interval.until_ms:
        return
    spans = span_store.find_spans(session, interval, job_ids=job_ids, group_ids=group_ids)
    yield from accounts_of(session, spans, interval, now_ms=now_ms)


def settled_part(interval: Interval, now_ms: Millis) -> Interval:
    """Return an interval without the instants that are too young to be looked at."""
    return Interval(interval.from_ms, min(interval.until_ms, now_ms - SETTLED_MS))


def accounts_of(
    session: Session, spans: Mapping[int, Sequence[Span]], interval: Interval, *, now_ms: Millis
) -> Iterator[JobAccount]:
    """Yield the accounts of jobs with these histories in a settled interval, by job id."""
    scanned_ms = nodes.last_scan_ms(session, now_ms=now_ms) - SETTLED_MS
    for page in _pages(spans, interval):
        delayed_ids = [job_id for job_id in page if _is_delayed(spans[job_id])]
        evidence = find_evidence(session, page, interval, delayed_ids=delayed_ids)
        accounts = {
            job_id: account(spans[job_id], evidence[job_id], interval, scanned_ms=scanned_ms)
            for job_id in page
        }
        missing_ids = [job_id for job_id in page if accounts[job_id].tally.unexplained]
        if missing_ids:
            evidence |= find_evidence(
                session, missing_ids, interval, delayed_ids=delayed_ids, early_ms=SHIFT_MAX_MS
            )
        for job_id in page:
            recount = partial(account, spans[job_id], evidence[job_id], scanned_ms=scanned_ms)
            whole = recount(interval) if job_id in missing_ids else accounts[job_id]
            yield JobAccount(job_id, spans[job_id][-1].group_id, whole, recount)


def _pages(spans: Mapping[int, Sequence[Span]], interval: Interval) -> Iterator[list[int]]:
    """Yield the ids of jobs in pages of bounded numbers of jobs and instants."""
    page, instants = list[int](), 0
    for job_id in sorted(spans):
        page.append(job_id)
        instants += count_expected(spans[job_id], interval)
        if instants >= INSTANTS_AT_ONCE or len(page) == JOBS_AT_ONCE:
            yield page
            page, instants = [], 0
    if page:
        yield page


def _is_delayed(spans: Sequence[Span]) -> bool:
    return any(span.is_on and span.schedule.type is ScheduleType.FIX_DELAY for span in spans)
