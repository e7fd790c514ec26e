"""Explained skips: instants that calendars and blackouts exclude get rows, so that lists show them.

One row for consecutive ones of a reason, extended for as long as they go on. The equation of completeness
counts them by the rule and does not read these rows. docs/reference/calendars.md, section 6.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy.orm import Session

from app.clock import HOUR_MS, MINUTE_MS, SECOND_MS, Millis
from app.database.engine import call_at_commit, read_scope, transact
from app.database.rows import bulk
from app.domain.calendars.rule_book import RuleBook
from app.domain.completeness.expected_instants import Interval, find_exclusions
from app.domain.completeness.rule_history import with_rules
from app.domain.completeness.rule_instants import Exclusion
from app.domain.completeness.spans import Span
from app.domain.schedules.planning import SkippedRange
from app.domain.schedules.schedule import next_after_ms
from app.errors import InvalidInput
from app.models.skip import SKIPPED_MAX, Skip
from app.pipeline.skips import skip_row
from app.runtime.metrics import FIRES_SKIPPED
from app.store.base import locks
from app.store.calendars import current_book
from app.store.completeness import explanations
from app.store.completeness.explanations import ExplainedSpan, WrittenSkip
from app.store.completeness.spans import read_history

PERIOD_MS: Millis = 5 * SECOND_MS
#: time of a span without excluded instants that is searched again and again
SEARCHED_MS: Millis = HOUR_MS
#: a change that began earlier than this is committed
SETTLED_MS: Millis = 10 * MINUTE_MS
#: spans of one transaction
PAGE = 500


class _Series(NamedTuple):
    """Consecutive excluded instants of a job."""

    job_id: int
    reason: str
    range: SkippedRange
    #: the span they are in, by whose rules others follow
    span: Span


def tick_explained(now_ms: Millis) -> Millis:
    """Write skips of the instants that were excluded up to now; return the wait until the next round.

    Opens its own transactions.
    """
    book = current_book.current()
    if not book.number:
        return PERIOD_MS
    after_id, only_calendars = 0, not book.blackouts
    while True:
        with read_scope() as session:
            page = explanations.find_unexplained(
                session, after_id=after_id, limit=PAGE, with_calendar=only_calendars, now_ms=now_ms
            )
            since_ms = min((entry.explained_ms for entry in page), default=now_ms)
            history = read_history(session, (entry.span for entry in page), since_ms=since_ms)
        if not page:
            return PERIOD_MS
        after_id = page[-1].id
        series_by_id = {entry.id: _series(history, entry, now_ms) for entry in page}
        if any(series_by_id.values()) or any(_is_old(entry, now_ms) for entry in page):
            transact(partial(_write, page=page, series_by_id=series_by_id, now_ms=now_ms))


def _is_old(entry: ExplainedSpan, now_ms: Millis) -> bool:
    """Whether a span is searched from long ago on, although it has no excluded instants since then."""
    return entry.explained_ms < now_ms - SEARCHED_MS


def _series(history: RuleBook, entry: ExplainedSpan, now_ms: Millis) -> list[_Series]:
    """Return the excluded instants of a span since the last ones that are written."""
    interval = Interval(entry.explained_ms + 1, now_ms + 1)
    series: list[_Series] = []
    for span in with_rules(history, [entry.span]):
        for part in find_exclusions([span], interval):
            series = _join(series, _Series(span.job_id, part.reason, _range(part), span))
    return series


def _range(part: Exclusion) -> SkippedRange:
    instants = list(part.instants)
    return SkippedRange(min(instants), max(instants), len(instants))


def _join(series: list[_Series], following: _Series) -> list[_Series]:
    last = series[-1] if series else None
    if last is None or last.reason != following.reason or not _follows(following, last.range.to_ms):
        return [*series, following]
    count = last.range.count + following.range.count
    whole = SkippedRange(last.range.from_ms, following.range.to_ms, count)
    return [*series[:-1], last._replace(range=whole, span=following.span)]


def _follows(series: _Series, last_ms: Millis) -> bool:
    """Whether the schedule ran at no time between an excluded instant and later ones, by one rule."""
    if last_ms <= series.span.from_ms:
        return False
    try:
        next_ms = next_after_ms(series.span.schedule, last_ms)
    except (ValueError, InvalidInput):
        return False
    return next_ms is None or next_ms > series.range.from_ms


def _write(
    session: Session,
    page: Sequence[ExplainedSpan],
    series_by_id: Mapping[int, Sequence[_Series]],
    now_ms: Millis,
) -> None:
    """Write rows for the spans that no other node has explained meanwhile."""
    locks.take_schedule_lock(session)
    current = explanations.find_explained(session, [entry.id for entry in page])
    current_entries = [entry for entry in page if current.get(entry.id) == entry.explained_ms]
    left = [entry for entry in current_entries if series_by_id[entry.id]]
    last_skips = explanations.find_last_written(session, {entry.span.job_id for entry in left})
    rows, longer_skips = list[bulk.Row](), dict[int, bulk.Row]()
    for entry in left:
        for series in series_by_id[entry.id]:
            group, count = str(entry.span.group_id), series.range.count
            call_at_commit(session, partial(FIRES_SKIPPED.add, group, series.reason, count=count))
            last = last_skips.pop(series.job_id, None)
            if last is not None and last.reason == series.reason and _follows(series, last.to_ms):
                longer_skips[last.id] = _extend(last, series, now_ms)
            else:
                rows.append(skip_row(series.job_id, series.range, reason=series.reason, now_ms=now_ms))
    bulk.insert_many(session, Skip, rows)
    bulk.update_many(session, Skip, list(longer_skips.values()))
    old_entries = [
        entry for entry in current_entries if not series_by_id[entry.id] and _is_old(entry, now_ms)
    ]
    explanations.write_explained(
        session,
        [(entry.id, series_by_id[entry.id][-1].range.to_ms) for entry in left]
        + [(entry.id, now_ms - SETTLED_MS) for entry in old_entries],
    )


def _extend(last: WrittenSkip, series: _Series, now_ms: Millis) -> bulk.Row:
    count = min(last.skipped + series.range.count, SKIPPED_MAX)
    return {"id": last.id, "to_ms": series.range.to_ms, "skipped": count, "recorded_ms": now_ms}
