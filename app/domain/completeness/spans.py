"""Spans: times in which the switch and the schedule of a job did not change."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from app.clock import Millis
from app.domain.enums import EndReason
from app.domain.schedules.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Span:
    """Part of the history of a job: the instants later than ``from_ms`` and up to ``until_ms``."""

    job_id: int
    group_id: int
    is_on: bool
    from_ms: Millis
    #: None: it has not ended
    until_ms: Millis | None
    schedule: Schedule
    #: first instant of a fixed rate, from which all others follow; 0: of another schedule
    anchor_ms: Millis = 0
    #: why it ended: ``deleted`` with its job, ``outside`` by another program on the database, …
    end_reason: str = ""

    def covers(self, instant: Millis) -> bool:
        """Whether an instant lies in this part of the history."""
        return self.from_ms < instant and (self.until_ms is None or instant <= self.until_ms)


def in_order(spans: Sequence[Span]) -> list[Span]:
    """Return the spans of one job, given in the order of their writing, as parts that do not overlap.

    A change of what was written before, as of an instant that the scan had read ahead, holds from its
    beginning on.
    """
    parts: list[Span] = []
    limit_ms: Millis | None = None
    for span in reversed(spans):
        parts.append(span if limit_ms is None else _cut(span, limit_ms))
        limit_ms = span.from_ms if limit_ms is None else min(limit_ms, span.from_ms)
    return parts[::-1]


def _cut(span: Span, until_ms: Millis) -> Span:
    is_longer = span.until_ms is None or span.until_ms > until_ms
    return replace(span, until_ms=until_ms) if is_longer else span


class OffPeriod(NamedTuple):
    """Time in which the schedule of a job was off, or in which the job was gone."""

    from_ms: Millis
    #: None: it has not ended
    until_ms: Millis | None
    is_deleted: bool = False


def off_periods(spans: Sequence[Span]) -> list[OffPeriod]:
    """Return when a job with these spans, in the order of their writing, was off; ascending."""
    periods: list[OffPeriod] = []
    parts = in_order(spans)
    for span in parts:
        if span.is_on:
            continue
        if periods and periods[-1].until_ms == span.from_ms:
            periods[-1] = periods[-1]._replace(until_ms=span.until_ms)
        else:
            periods.append(OffPeriod(span.from_ms, span.until_ms))
    last = parts[-1] if parts else None
    if last is not None and last.until_ms is not None and last.end_reason == EndReason.DELETED:
        periods.append(OffPeriod(last.until_ms, None, is_deleted=True))
    return periods
