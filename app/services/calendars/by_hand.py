"""Runs by hand during a blackout: refused, unless they are forced."""

from sqlalchemy.orm import Session

from app.clock import Millis
from app.domain.calendars.rule_book import RuleBook
from app.domain.text.texts import N_
from app.errors import Conflict
from app.models.base import local_datetime, zone_name
from app.store.calendars import current_book


def require_no_blackout(session: Session, job_id: int, group_id: int, now_ms: Millis) -> None:
    """Raise Conflict if a job must not start now, with the end and the reason of the blackout."""
    refusal = find_refusal(current_book.refresh(session), job_id, group_id, now_ms)
    if refusal is not None:
        raise refusal


def find_refusal(book: RuleBook, job_id: int, group_id: int, now_ms: Millis) -> Conflict | None:
    """Return why a job must not start now; None: it may."""
    closure = book.closure_at(job_id, group_id, now_ms)
    if closure is None:
        return None
    blackouts = book.blackouts_of(job_id, group_id)
    reason = next(blackout.reason for blackout in blackouts if blackout.window_at(now_ms) is not None)
    if closure.until_ms is None:
        return Conflict(N_("a blackout is on, without an end: %(reason)s", reason=reason))
    until = f"{local_datetime(closure.until_ms)} {zone_name()}"
    return Conflict(N_("a blackout is on until %(until)s: %(reason)s", until=until, reason=reason))
