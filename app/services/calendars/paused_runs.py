"""Runs that wait for the end of a blackout: until when, and why."""

from dataclasses import dataclass

from app.clock import Millis
from app.domain.calendars.blackouts import closure_at
from app.domain.calendars.rule_book import RuleBook
from app.store.limits.waiting_list import ListedFire


@dataclass(frozen=True, slots=True)
class WaitedBlackout:
    """Blackout whose end a run waits for."""

    #: None: it has no end yet
    until_ms: Millis | None
    reason: str


def blackout_of(fire: ListedFire, book: RuleBook) -> WaitedBlackout:
    """Return what holds a fire just before the end that was known when it began to wait."""
    blackouts, at_ms = book.blackouts_of(fire.job_id, fire.group_id), fire.end_ms - 1
    if not fire.end_ms:
        reasons = [
            blackout.reason for blackout in blackouts if blackout.until_ms is None and not blackout.cron
        ]
        return WaitedBlackout(None, next(iter(reasons), ""))
    closure = closure_at(blackouts, at_ms)
    reasons = [blackout.reason for blackout in blackouts if blackout.window_at(at_ms) is not None]
    return WaitedBlackout(fire.end_ms if closure is None else closure.until_ms, next(iter(reasons), ""))
