"""Date of a change that another program has made to a job, from the instants that were planned meanwhile."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from app.clock import SECOND_MS, Millis
from app.domain.completeness.expected_instants import Interval, expected_instants
from app.domain.completeness.spans import Span
from app.domain.enums import ScheduleType
from app.domain.schedules.schedule import period_s
from app.errors import InvalidInput


class Change(NamedTuple):
    """Up to when the former span of a job holds, and the one that follows."""

    until_ms: Millis
    following: Span


def date_change(
    former: Span | None,
    now: Span,
    plan: Collection[Millis],
    within: Interval,
    *,
    otherwise_ms: Millis | None = None,
) -> Change:
    """Return when a job became as it is now.

    ``plan``: instants of runs and fires, and the next one. ``within``: from the earliest time of the
    change to after the latest instant that can have been planned. An instant that only one of both schedules
    has tells which of them held. Between the last of the former and the first of the following one nothing
    was expected: a Java admin plans from five seconds after its change on. ``otherwise_ms``: the time of a
    change that no instant tells of; otherwise the beginning of ``within``.
    """
    present = _from_beginning(now, within.from_ms)
    of_former = _instants(former, within)
    of_present = _instants(present, within)
    instants = sorted(instant for instant in plan if instant in range(*within))
    if _is_delay(former):
        of_former |= {*instants} - of_present
    if _is_delay(present):
        of_present |= {*instants} - of_former
    latest = {instant for instant in instants if instant in of_former - of_present}
    unknown_ms = (
        within.from_ms if otherwise_ms is None or {*instants} & of_present - of_former else otherwise_ms
    )
    last_ms = max(latest, default=unknown_ms)
    first_ms = min(
        (instant for instant in instants if instant in of_present - of_former and instant > last_ms),
        default=None,
    )
    if first_ms is not None:
        last_ms = max(
            (instant for instant in instants if instant in of_former and instant < first_ms), default=last_ms
        )
    beyond_ms = within.until_ms if max(plan, default=0) >= within.until_ms else last_ms + 1
    begin_ms = min(
        (instant for instant in instants if instant in of_present and instant > last_ms), default=beyond_ms
    )
    return Change(last_ms, replace(present, from_ms=begin_ms - 1))


def _is_delay(span: Span | None) -> bool:
    return span is not None and span.is_on and span.schedule.type is ScheduleType.FIX_DELAY


def _instants(span: Span | None, within: Interval) -> set[Millis]:
    if span is None:
        return set()
    return set(
        expected_instants([replace(span, from_ms=min(span.from_ms, within.from_ms), until_ms=None)], within)
    )


def _from_beginning(span: Span, from_ms: Millis) -> Span:
    """Return a span whose fixed rate has its first instant as early as its next one allows."""
    try:
        period_ms = period_s(span.schedule.conf) * SECOND_MS if span.anchor_ms else 0
    except (ValueError, InvalidInput):
        period_ms = 0
    periods = max(0, (span.anchor_ms - from_ms) // period_ms) if period_ms else 0
    return replace(span, anchor_ms=span.anchor_ms - periods * period_ms)
