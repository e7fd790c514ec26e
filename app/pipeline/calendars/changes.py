"""Changes of calendars and blackouts."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.clock import Clock, Millis
from app.models.calendar import RuleChange
from app.store.base import locks
from app.store.calendars import current_book, rules


@dataclass(frozen=True, slots=True)
class Change:
    """A change that has begun."""

    session: Session
    #: when it was begun, read under the lock
    now_ms: Millis

    def finish(self, session: Session, job_ids: Collection[int] | None = None) -> None:
        """Give the book a new number."""
        number = max(self.now_ms * 1_000, rules.find_number(session) + 1)
        session.add(RuleChange(number=number))
        session.flush()
        current_book.forget_at_commit(session)


def begin_change(session: Session, *, clock: Clock) -> Change:
    """Take the schedule lock."""
    locks.take_schedule_lock(session)
    return Change(session, clock())
