"""Models of the job fields that are structures; pydantic is loaded when one is read or described."""

from typing import Any


def promises() -> Any:
    """Return the model of `promises`."""
    from app.domain.promises.document import Promises

    return Promises


def escalation() -> Any:
    """Return the model of `escalation`."""
    from app.domain.promises.document import Escalation

    return Escalation | None


def limits() -> Any:
    """Return the model of `limits`."""
    from app.domain.limits.document import JobLimits

    return JobLimits


def runs_after() -> Any:
    """Return the model of `runs_after`."""
    from app.domain.rounds.document import JobRunsAfter

    return JobRunsAfter | None


def calendar() -> Any:
    """Return the model of `calendar`."""
    from app.domain.calendars.document import JobCalendarRule

    return JobCalendarRule | None
