"""Removal of rows: what they say of instants that are not counted yet is kept with their deletion.

So clearing and retention leave nothing unexplained. docs/reference/completeness.md, section 6.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.domain.completeness.days import day_of
from app.domain.completeness.equation import key_of
from app.models.base import zone_name
from app.store.completeness import days as store
from app.store.completeness.days import DayKey
from app.store.completeness.evidence import find_removable
from app.store.promises import checks


def keep_terms(session: Session, log_ids: Sequence[int]) -> None:
    """Keep the terms of scheduled runs whose rows are deleted in this transaction.

    Of instants that are counted already only that their rows are gone is noted.
    """
    runs = find_removable(session, log_ids)
    if not runs:
        return
    checks.delete_of_runs(session, {(run.job_id, run.instant) for run in runs})
    zone, watermark_ms = ZoneInfo(zone_name()), store.find_watermark(session)
    open_from = {row.job_id: row.open_from_ms for row in store.find_open(session)}
    numbers: defaultdict[DayKey, Counter[str]] = defaultdict(Counter)
    groups: dict[int, int] = {}
    days_by_job: defaultdict[int, set[str]] = defaultdict(set)
    for run in runs:
        day = day_of(run.instant, zone).isoformat()
        if run.instant >= open_from.get(run.job_id, watermark_ms):
            numbers[DayKey(run.job_id, day)][key_of(run.term, run.not_started)] += 1
            groups[run.job_id] = run.group_id
        else:
            days_by_job[run.job_id].add(day)
    store.add_removed(session, numbers, groups)
    if days_by_job:
        days = sorted(set().union(*days_by_job.values()))
        store.mark_cleared(session, list(days_by_job), days[0], days[-1])
