"""Structures: job fields with members of their own, stored as JSON text of a pydantic model."""

from app.domain.jobs.fields import JobField
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import Text
from app.errors import InvalidInput


def stored_structure(field: JobField, text: str) -> str:
    """Return the JSON text of a structure as it is stored, with the defaults of its model.

    Raises InvalidInput with an error for each wrong member, such as ``promises.1.at``.
    """
    # Imported here, because it takes 0.06 s, and only fields with a structure need it.
    from pydantic import TypeAdapter, ValidationError

    model = TypeAdapter(field.model)
    try:
        return model.dump_json(model.validate_json(text or field.default)).decode()
    except ValidationError as exc:
        errors = InputErrors()
        for problem in exc.errors():
            with errors:
                place = ".".join(map(str, (field.error_name, *problem["loc"])))
                raise InvalidInput(place, Text(problem["msg"], {})) from exc
        errors.raise_all()
        raise
