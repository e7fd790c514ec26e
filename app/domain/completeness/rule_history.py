"""Rules of spans: calendars and blackouts as they were in each part of a job's history."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from app.clock import Millis
from app.domain.calendars.calendar import Calendar
from app.domain.calendars.day_rule import day_rule, parse_rule
from app.domain.calendars.effective import JobRules
from app.domain.calendars.rule_book import RuleBook
from app.domain.completeness.spans import Span

#: end of a span that has none yet
_ENDLESS: Final[Millis] = 2**63 - 1


def with_rules(history: RuleBook, spans: Iterable[Span]) -> list[Span]:
    """Return spans with the rules that held in them; one is cut where its calendar has changed."""
    return [part for span in spans for part in _parts(history, span)]


def _parts(history: RuleBook, span: Span) -> list[Span]:
    job_rule, versions = parse_rule(span.schedule.calendar), history.versions_of(span.schedule.calendar)
    blackouts = history.blackouts_of(span.job_id, span.group_id)
    if not versions and not blackouts:
        return [span]
    end_ms = _ENDLESS if span.until_ms is None else span.until_ms
    calendar: Calendar | None = None
    from_ms, parts = span.from_ms, list[Span]()
    for version in (*versions, None):
        until_ms = end_ms if version is None else min(version.from_ms - 1, end_ms)
        if until_ms > from_ms or (version is None and not parts):
            rule = day_rule(calendar, job_rule) if calendar is not None and job_rule is not None else None
            schedule = replace(span.schedule, rules=JobRules(rule, blackouts, span.anchor_ms))
            ends = None if until_ms == _ENDLESS else until_ms
            parts.append(replace(span, from_ms=from_ms, until_ms=ends, schedule=schedule))
            from_ms = max(from_ms, until_ms)
        calendar = calendar if version is None else version.calendar
    return parts
