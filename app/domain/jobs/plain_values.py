"""Values of plain fields: a choice or a number as it is stored, for jobs and for executor groups."""

from typing import Any

from app.domain.jobs.job_field import JobField, Kind
from app.domain.text.texts import N_
from app.errors import InvalidInput


def checked_value(field: JobField, value: Any) -> Any:
    """Return a choice or a number as it is stored; raises InvalidInput."""
    return checked_choice(field, value) if field.kind is Kind.CHOICE else checked_number(field, value)


def checked_choice(field: JobField, value: str) -> str:
    """Return a choice; raises InvalidInput for another value."""
    if value not in list(field.choices):
        raise InvalidInput(field.error_name, field.invalid)
    return value


def checked_number(field: JobField, value: int) -> int:
    """Return a number within the limits of its field; raises InvalidInput."""
    number = max(value, 0) if field.negative_is_zero else value
    if not field.low <= number <= field.high:
        raise InvalidInput(
            field.error_name,
            N_(
                "%(field)s must lie between %(low)s and %(high)s",
                field=field.error_name,
                low=field.low,
                high=field.high,
            ),
        )
    return number
