"""Summaries of completeness from stored days: yesterday for the dashboard, some days for a job's page."""

from datetime import date, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from sqlalchemy.orm import Session

from app.clock import MINUTE_MS, Millis
from app.domain.access.permissions import Actor, Right
from app.domain.completeness.days import day_of, start_of
from app.domain.completeness.equation import Tally
from app.services.answer_cache import AnswerCache
from app.services.completeness.counting import FOLD_AFTER_MS
from app.store.completeness import totals as store

#: days of the summary of a job, with today
DAYS = 30
#: how long yesterday's numbers may be shown; of a day without a seal all rows are summed
KEPT_MS: Millis = MINUTE_MS
_cache = AnswerCache["Summary"](KEPT_MS)


class Summary(NamedTuple):
    """Numbers of some days, both ends inclusive."""

    first: date
    last: date
    tally: Tally


def find_yesterday(session: Session, actor: Actor, *, zone: ZoneInfo, now_ms: Millis) -> Summary | None:
    """Return the numbers of yesterday in the groups an actor may view; None until its last hour is counted.

    Without the names of reasons.
    """
    today = day_of(now_ms, zone)
    if now_ms < start_of(today, zone) + FOLD_AFTER_MS + MINUTE_MS:
        return None
    day, group_ids = today - timedelta(days=1), actor.group_ids(Right.VIEW)
    summary = _cache.get(group_ids, lambda: Summary(day, day, store.find_day(session, str(day), group_ids)))
    return summary if summary.first == day else None


def find_last_days(session: Session, actor: Actor, job_id: int, *, zone: ZoneInfo, now_ms: Millis) -> Summary:
    """Return the numbers of a job in the last days, up to the hour that was counted last."""
    today = day_of(now_ms, zone)
    first = today - timedelta(days=DAYS - 1)
    scope = store.Scope(str(first), str(today), actor.group_ids(Right.VIEW), job_id)
    jobs = store.sum_jobs(session, scope, [job_id])
    store.add_reasons(session, scope, jobs)
    return Summary(first, today, jobs[0].tally if jobs else Tally())
