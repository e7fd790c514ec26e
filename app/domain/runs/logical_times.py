"""Logical time: the instant that a run stands for. docs/reference/pipeline.md, section 3."""

from typing import Protocol

from app.clock import DAY_MS, MINUTE_MS, SECOND_MS, Millis
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: how far ahead of now a given logical time may lie; a look-up reads the runs from as long before it on
AHEAD_DAYS = 31
#: logical times that are at least this far from the trigger are shown
SHOWN_FROM_MS: Millis = MINUTE_MS


class HasLogicalTime(Protocol):
    """The columns of a log row that its logical time comes from."""

    @property
    def logical_ms(self) -> Millis | None:
        """What the run stands for; None: an adopted row, or one of a Java admin."""

    @property
    def fire_time(self) -> Millis | None:
        """When a scheduled run was due."""

    @property
    def trigger_time(self) -> Millis | None:
        """When it was triggered."""


def logical_of(row: HasLogicalTime) -> Millis | None:
    """Return the logical time of a run, by the one rule for all rows; None: it has no time at all."""
    if row.logical_ms is not None:
        return row.logical_ms
    return row.fire_time if row.fire_time is not None else row.trigger_time


def shown_logical_of(row: HasLogicalTime) -> Millis | None:
    """Return the logical time of a run where it differs from its trigger so much that it is shown."""
    logical_ms, trigger_ms = logical_of(row), row.trigger_time
    if logical_ms is None or trigger_ms is None or abs(logical_ms - trigger_ms) < SHOWN_FROM_MS:
        return None
    return logical_ms


def second_of(at_ms: Millis) -> Millis:
    """Return the beginning of a second: the logical time of a run that is triggered in it."""
    return at_ms // SECOND_MS * SECOND_MS


def chosen_logical(
    given_ms: Millis | None, former_ms: Millis | None, *, due_ms: Millis, now_ms: Millis
) -> Millis:
    """Return the logical time of a triggered run: what is given, that of a run before, or its due second.

    Raises InvalidInput for one that cannot be given.
    """
    if given_ms is not None:
        check_logical(given_ms, now_ms=now_ms)
        return given_ms
    return second_of(due_ms) if former_ms is None else former_ms


def check_logical(logical_ms: Millis, *, now_ms: Millis) -> None:
    """Raise InvalidInput for a logical time that cannot be given."""
    if not 0 <= logical_ms <= now_ms + AHEAD_DAYS * DAY_MS:
        raise InvalidInput(
            "logicalTime",
            N_("The logical time must lie between 1970 and %(days)s days from now", days=AHEAD_DAYS),
        )
