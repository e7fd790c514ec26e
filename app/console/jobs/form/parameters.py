"""Parameter form: a field for each parameter of a typed handler, beside the raw text."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from flask import request
from wtforms import BooleanField, SelectField, StringField
from wtforms.fields.core import Field

from app.console.ui.forms.base_form import ConsoleForm
from app.console.web.language import _
from app.database.flask_db import read_scope
from app.domain.enums import GlueType
from app.domain.jobs.parameter_fields import Kind, ParameterField, compose, text_of, values_of
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.jobs import choices as job_choices

#: input that is sent only if the fields are shown, and not the text; its value names them
FIELDS_INPUT = "typed"
FIELDS_CHANGED = N_("The handler's parameters have changed. Check the value and send it again.")
_INPUT_TYPES = {Kind.INTEGER: "number", Kind.NUMBER: "number", Kind.DATE: "date"}


class ParameterForm:
    """Fields of a handler's parameters, with the values of a parameter or of the request."""

    def __init__(self, handler: str, fields: Sequence[ParameterField], text: str) -> None:
        self.handler = handler
        self._fields = fields
        names = "\n".join(f"{parameter.kind} {parameter.name}" for parameter in fields)
        #: of these fields: those of another version of the handler have another one
        self.version = sha256(names.encode()).hexdigest()[:16]
        self.is_sent = request.form.get(FIELDS_INPUT) == self.version
        values = values_of(fields, text)
        #: whether the fields are shown at first, and not the text
        self.starts_with_fields = values is not None
        inputs = {f"parameter{number}": _input(parameter) for number, parameter in enumerate(fields)}
        texts = values_of(fields, "") if values is None else values
        start_texts = [_data(parameter, (texts or {}).get(parameter.name, "")) for parameter in fields]
        data = {f"parameter{number}": value for number, value in enumerate(start_texts)}
        form_class = type("Parameters", (ConsoleForm,), inputs)
        self.form: ConsoleForm = form_class(request.form if self.is_sent else None, data=data)
        for parameter, field in zip(fields, self.form, strict=True):
            field.flags.needed = parameter.is_required
        #: the fields were sent as they are filled in
        self.is_unchanged = self.is_sent and [field.data or "" for field in self.form] == [
            value or "" for value in start_texts
        ]
        if self.is_sent:
            self.starts_with_fields = True

    def compose(self) -> str:
        """Return the parameter that was sent as fields; raises InvalidInput, shown at the fields."""
        texts = {}
        for field, input_field in zip(self._fields, self.form, strict=True):
            check_text = "true" if input_field.data else ""
            texts[field.name] = check_text if field.kind is Kind.CHECK else (input_field.data or "")
        try:
            return compose(self._fields, texts)
        except InvalidInput as exc:
            names = {field.name: f"parameter{number}" for number, field in enumerate(self._fields)}
            for error in exc.errors:
                error.field = names[error.field]
            self.form.refuse(exc)
            raise


def parameters_of(group_id: int, handler: str, glue_type: str, text: str) -> ParameterForm | None:
    """Return the fields of a typed handler, with the values of a parameter; None for other handlers."""
    if glue_type != GlueType.BEAN:
        return None
    with read_scope() as session:
        fields = job_choices.parameter_fields(session, group_id, handler)
    return ParameterForm(handler, fields, text) if fields else None


def sent_parameter(parameters: ParameterForm | None) -> str | None:
    """Return the parameter that was sent as fields, None if it was sent as text; raises InvalidInput."""
    if FIELDS_INPUT not in request.form:
        return None
    if parameters is None or not parameters.is_sent:
        raise InvalidInput("executor_param", FIELDS_CHANGED)
    return parameters.compose()


def _data(field: ParameterField, text: str) -> Any:
    return text == "true" if field.kind is Kind.CHECK else text


def _input(field: ParameterField) -> Field:
    """Return the unbound field of a parameter."""
    # under a title of its own, a parameter is named as well: that is what the text needs
    hint = " · ".join(filter(None, (field.name if field.title else "", field.hint)))
    if field.kind is Kind.CHECK:
        return BooleanField(field.label, description=hint)
    if field.kind is Kind.CHOICE:
        none = _("Default: %(value)s", value=field.default_text) if field.default_text else ""
        choices = {"": none} | {text_of(choice): text_of(choice) for choice in field.choices}
        return SelectField(field.label, choices=choices, validate_choice=False, description=hint)
    if field.kind is Kind.DATE and field.default_text:
        hint = " ".join(filter(None, (hint, _("Default: %(value)s", value=field.default_text))))
    attributes = {"type": _INPUT_TYPES.get(field.kind, "text"), "placeholder": field.default_text}
    if field.kind is Kind.NUMBER:
        attributes["step"] = "any"
    return StringField(field.label, description=hint, render_kw=attributes)
