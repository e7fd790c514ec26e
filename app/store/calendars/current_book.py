"""The rule book of this process: read anew once a statement finds that it has changed."""

import threading
import time
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.database import single_statement
from app.database.engine import call_at_commit, read_scope
from app.domain.calendars.rule_book import RuleBook
from app.models.calendar import RuleChange
from app.store.calendars import rules

#: column of the statements that scan and claim make anyway
NUMBER: Final = select(func.coalesce(func.max(RuleChange.number), 0)).scalar_subquery()
#: a page goes by a book that was compared with the database up to so long ago
CHECK_S: Final = 1.0
#: key of a session that has changed the book
_HAS_CHANGED: Final = "has_changed_rules"
_CHANGED = select(func.coalesce(func.max(RuleChange.number), 0))


class _Cache:
    """What this process has read last."""

    def __init__(self) -> None:
        self.book = RuleBook()
        #: number of a former book, in whose place the present one is
        self.former = 0
        self.checked_s = 0.0
        self.lock = threading.Lock()


_cache = _Cache()


def of_number(number: int) -> RuleBook:
    """Return the book; reads it, in a transaction of its own, if it is not the one of this number."""
    if number == _cache.book.number or (number and number == _cache.former):
        return _cache.book
    if not number:  # The tables are new.
        _cache.book = RuleBook()
        return _cache.book
    with _cache.lock:
        if _cache.book.number != number:
            with read_scope() as session:
                _cache.book = rules.read_book(session)
            # It has changed since the number was read. One that is not committed yet is no former one.
            _cache.former = number if number < _cache.book.number else 0
    return _cache.book


def current() -> RuleBook:
    """Return the book as it was at most CHECK_S ago."""
    if time.monotonic() - _cache.checked_s < CHECK_S or not _cache.lock.acquire(blocking=False):
        return _cache.book
    try:
        number = single_statement.read(_CHANGED, {})[0][0]
        _cache.checked_s = time.monotonic()
        if number != _cache.book.number:
            with read_scope() as session:
                _cache.book = rules.read_book(session) if number else RuleBook()
    finally:
        _cache.lock.release()
    return _cache.book


def refresh(session: Session) -> RuleBook:
    """Return the book as a transaction sees it, and keep it for this process, if it is committed."""
    if session.info.get(_HAS_CHANGED):
        return of_transaction(session)
    number = rules.find_number(session)
    if number != _cache.book.number:
        _cache.book = rules.read_book(session) if number else RuleBook()
    return _cache.book


def of_transaction(session: Session) -> RuleBook:
    """Return the book as a transaction sees it, with changes of its own, which others must not go by yet."""
    return _cache.book if rules.find_number(session) == _cache.book.number else rules.read_book(session)


def forget_at_commit(session: Session) -> None:
    """Have the next page of this process compare the book with the database, once a change is committed."""
    session.info[_HAS_CHANGED] = True
    call_at_commit(session, _forget)


def _forget() -> None:
    _cache.checked_s = 0.0


def reset() -> None:
    """Read the book anew when it is used next: this process works on another database from now on."""
    _cache.book, _cache.former, _cache.checked_s = RuleBook(), 0, 0.0
