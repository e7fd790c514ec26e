"""Models of the job fields with members; pydantic is imported when one is first needed."""

from typing import Any


def promises() -> Any:
    """Return the model of promises."""
    from app.domain.promises.document import Promises

    return Promises


def escalation() -> Any:
    """Return the model of an escalation."""
    from app.domain.promises.document import Escalation

    return Escalation | None


def limits() -> Any:
    """Return the model of named limits."""
    from app.domain.limits.document import JobLimits

    return JobLimits


def runs_after() -> Any:
    """Return the model of what a job runs after."""
    from app.domain.rounds.document import JobRunsAfter

    return JobRunsAfter | None


def calendar() -> Any:
    """Return the model of a day rule."""
    from app.domain.calendars.document import JobCalendarRule

    return JobCalendarRule | None
