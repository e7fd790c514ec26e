"""Structures: job fields with members of their own, stored as JSON text of a pydantic model."""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from app.domain.jobs.job_field import JobField
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import Text
from app.errors import InvalidInput

#: fields of a job that its group has, too: for the jobs that have none of their own
GROUP_STRUCTURES = ("promises", "escalation")


def stored_structure(field: JobField, text: str) -> str:
    """Return the JSON text of a structure as it is stored, with the defaults of its model.

    Raises InvalidInput with an error for each wrong member, such as ``promises.1.at``.
    """
    # Imported here, because it takes 0.06 s, and only fields with a structure need it.
    from pydantic import ValidationError

    model, text = _adapter(field.model), text or field.default
    try:
        return str(model.dump_json(model.validate_json(text)).decode())
    except ValidationError as exc:
        errors = InputErrors()
        for problem in exc.errors():
            with errors:
                place = ".".join((field.error_name, *_place(text, problem["loc"])))
                raise InvalidInput(place, Text(problem["msg"], {})) from exc
        errors.raise_all()
        raise


def structure_column(field: JobField, text: str) -> str | None:
    """Return a structure as its column has it: null where it is that of a new job. Raises InvalidInput."""
    value = stored_structure(field, text)
    return None if value == field.default else value


def read_structure(field: JobField, text: str | None) -> Any:
    """Return the JSON value of a stored structure.

    The default in place of what another program has stored and the model refuses.
    """
    default: str = field.default
    return json.loads(default if not text or text == default else _valid_text(field, text))


@lru_cache(maxsize=1_024)
def _valid_text(field: JobField, text: str) -> str:
    try:
        return stored_structure(field, text)
    except InvalidInput:
        return str(field.default)


@lru_cache
def _adapter(model: Callable[[], Any]) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(model())


def _place(text: str, location: Sequence[int | str]) -> list[str]:
    """Return the place of an error in a text; pydantic names the alternatives of a union, which are none."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    place = list[str]()
    for number, part in enumerate(location, 1):
        is_there = part in value if isinstance(value, dict) else isinstance(value, list)
        if is_there:
            value = value[part]
        if is_there or number == len(location):
            place.append(str(part))
    return place
