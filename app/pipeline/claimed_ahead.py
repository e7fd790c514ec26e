"""Runs that are claimed ahead: a change of their schedules waits until they have begun."""

from collections.abc import Collection
from threading import Event

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Clock
from app.pipeline.claimed_run import CLAIM_AHEAD_MS
from app.store.fires import scheduled_fires


def wait_for_claimed(session: Session, job_ids: Collection[int], *, clock: Clock) -> None:
    """Wait for the instants of these jobs' runs that are claimed but not sent yet, CLAIM_AHEAD_MS at most."""
    now_ms = clock()
    due_ms = scheduled_fires.find_claimed_ahead(session, job_ids, after_ms=now_ms)
    if due_ms is not None:  # An instant that is due later can be sent sooner, by a node whose clock is ahead.
        Event().wait(min(due_ms - now_ms, CLAIM_AHEAD_MS) / SECOND_MS)
