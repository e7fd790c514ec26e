"""Access cache: reuse an access decision for one second.

A program that triggers runs sends the same credentials a hundred times a second. The gate checks them once a
second; in between their pass is used, unless this process has changed anything that decides on access since.
What another process changes counts when the pass is over.
"""

import itertools
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import Connection, Engine, event

from app.clock import Millis, monotonic_ms

Value = TypeVar("Value")
#: a pass is used for this long
KEPT_MS: Millis = 1_000
#: at this age one request is checked again, so that at its end not all are
RENEWED_MS: Millis = 500
PASSES_MAX = 1_000
#: tables that decide who may do what
TABLES = ("xxl_job_user", "xxl_job_session", "xxl_job_token", "xxl_job_right", "xxl_job_group")
_CHANGED = "access_changed"


class AccessChanges:
    """Counts what this process changes in TABLES."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.count = 0

    def note(self) -> None:
        """Count a change."""
        self.count = next(self._numbers)

    def watch(self, engine: Engine) -> None:
        """Count changes made through an engine: when they are made, and again after their transaction."""
        if not event.contains(engine, "checkin", self._after_transaction):
            event.listen(engine, "after_cursor_execute", self._after_statement)
            event.listen(engine, "checkin", self._after_transaction)

    def _after_statement(
        self, connection: Connection, _cursor: Any, sql: str, _parameters: Any, _context: Any, _many: bool
    ) -> None:
        if not sql.startswith("SELECT") and any(table in sql for table in TABLES):
            connection.info[_CHANGED] = True
            self.note()

    def _after_transaction(self, _connection: Any, record: Any) -> None:
        if record.info.pop(_CHANGED, False):
            self.note()


#: of this process
access_changes = AccessChanges()


class Ticket(NamedTuple):
    """What a pass depends on, noted before the checks of its request."""

    changes: int
    since_ms: Millis


@dataclass(slots=True)
class _Pass(Generic[Value]):
    value: Value
    ticket: Ticket
    renewing: bool = False

    @property
    def age_ms(self) -> Millis:
        return monotonic_ms() - self.ticket.since_ms


class Passes(Generic[Value]):
    """Passes by what the gate's decision depends on. Thread-safe."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Pass[Value]] = {}

    def find(self, key: Hashable) -> Value | None:
        """Return what a request is let through with; None: it has to be checked."""
        kept = self._valid(key)
        if kept is not None and not kept.renewing and kept.age_ms > RENEWED_MS:
            kept.renewing = True
            return None
        return None if kept is None else kept.value

    def has(self, key: Hashable) -> bool:
        """Whether there is a pass; if ``find`` returned None, the request is the one that renews it."""
        return self._valid(key) is not None

    def _valid(self, key: Hashable) -> _Pass[Value] | None:
        kept = self._kept.get(key)
        is_valid = kept and kept.ticket.changes == access_changes.count and kept.age_ms <= KEPT_MS
        return kept if is_valid else None

    def ticket(self) -> Ticket:
        """Return the ticket of a request that is about to be checked."""
        return Ticket(access_changes.count, monotonic_ms())

    def keep(self, key: Hashable, value: Value, ticket: Ticket) -> None:
        """Keep what a request was let through with."""
        if len(self._kept) >= PASSES_MAX:
            self._kept = {}
        self._kept[key] = _Pass(value, ticket)
