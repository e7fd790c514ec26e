"""Parameter fields: form fields made from the JSON Schema of a typed handler, and their values as JSON."""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from enum import StrEnum
from math import inf
from typing import Any, NamedTuple

from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: schemas with more parameters are not shown as fields
FIELDS_MAX = 30
#: longer lists of choices are not shown: the value is entered, and the handler checks it
CHOICES_MAX = 500
#: characters of a name, and of a hint
NAME_MAX, HINT_MAX = 100, 300
REQUIRED = N_("This parameter is required")


class Kind(StrEnum):
    """How a parameter is entered."""

    TEXT = "text"
    #: text, or a JSON value
    JSON = "json"
    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    CHECK = "check"
    CHOICE = "choice"


class ParameterField(NamedTuple):
    """Field of one parameter."""

    name: str
    kind: Kind
    is_required: bool
    #: JSON value of the default; None: none is known
    default: Any = None
    #: JSON values of a CHOICE
    choices: tuple[Any, ...] = ()
    hint: str = ""
    title: str = ""

    @property
    def label(self) -> str:
        """What the field is called."""
        return self.title or self.name

    @property
    def default_text(self) -> str:
        """The default as it is entered; empty without one."""
        return "" if self.default is None else text_of(self.default)


def text_of(value: Any) -> str:
    """Return a JSON value as it is entered in a field; lone surrogates, unfit for a page, become "?"."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode("utf-8")


def fields_of(schema: Any) -> tuple[ParameterField, ...]:
    """Return the fields of a schema, in its order; none if it cannot be shown as fields."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not 0 < len(properties) <= FIELDS_MAX:
        return ()
    required_names = schema.get("required")
    names = required_names if isinstance(required_names, list) else []
    if any(not isinstance(member, dict) or len(name) > NAME_MAX for name, member in properties.items()):
        return ()
    if any(text_of(name) != name or not name.strip() for name in properties):
        return ()
    return tuple(_field(name, member, is_required=name in names) for name, member in properties.items())


def _field(name: str, schema: dict[str, Any], *, is_required: bool) -> ParameterField:
    kinds = schema.get("type")
    type_names = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"]
    default, hint = schema.get("default"), schema.get("description")
    kind = _kind_of(type_names[0] if len(type_names) == 1 else None, schema)
    choices: tuple[Any, ...] = ()
    if isinstance(enum := schema.get("enum"), list):
        kind, choices = Kind.CHOICE, _choices_of(enum)
        if len(choices) > CHOICES_MAX:
            kind = Kind.TEXT if all(isinstance(choice, str) for choice in choices) else Kind.JSON
    elif kind is Kind.CHECK and not is_required and not isinstance(default, bool):
        kind, choices = Kind.CHOICE, (True, False)
    hint_text = text_of(hint[:HINT_MAX]) if isinstance(hint, str) else ""
    title = schema.get("title")
    label = text_of(title[:NAME_MAX]) if isinstance(title, str) and title != name else ""
    return ParameterField(name, kind, is_required, default, choices, hint_text, label)


def _choices_of(enum: list[Any]) -> tuple[Any, ...]:
    """Return what can be chosen, each text once: an empty field is the default, and so is None."""
    choice_by_text: dict[str, Any] = {}
    for choice in enum:
        if choice is not None and (text := _one_line_end(text_of(choice))).strip():
            choice_by_text.setdefault(text, choice)
    return tuple(choice_by_text.values())


def _one_line_end(text: str) -> str:
    """Return a text with the line ends that browsers send for all of them made one."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _kind_of(type_name: Any, schema: dict[str, Any]) -> Kind:
    if type_name == "string":
        return Kind.DATE if schema.get("format") == "date" else Kind.TEXT
    kinds = {"integer": Kind.INTEGER, "number": Kind.NUMBER, "boolean": Kind.CHECK}
    return kinds.get(type_name, Kind.JSON) if isinstance(type_name, str) else Kind.JSON


def values_of(fields: Sequence[ParameterField], text: str) -> dict[str, str] | None:
    """Return the texts of the fields for a parameter; None if only the text itself shows it."""
    if not text.strip():
        return {field.name: field.default_text for field in fields if field.kind is Kind.CHECK}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    field_by_name = {field.name: field for field in fields}
    if not isinstance(value, dict) or not value.keys() <= field_by_name.keys():
        return None
    if not all(_can_show(field_by_name[name], member) for name, member in value.items()):
        return None
    checks = {field.name: field.default_text for field in fields if field.kind is Kind.CHECK}
    return checks | {name: text_of(member) for name, member in value.items()}


def _can_show(field: ParameterField, value: Any) -> bool:
    """Return whether a field sends a value back as it is: an input has one line, and empty is the default."""
    text = text_of(value)
    if not text.strip() or (field.kind is not Kind.CHOICE and text != _one_line_end(text).replace("\n", "")):
        return False
    try:
        parsed_value = _value(field, text)
    except InvalidInput:
        return False
    return type(parsed_value) is type(value) and bool(parsed_value == value)


def compose(fields: Sequence[ParameterField], texts: Mapping[str, str]) -> str:
    """Return the parameter as JSON text; raises InvalidInput, with all errors, each for the field's name.

    Empty fields are left out: the handler's defaults apply.
    """
    errors, values = InputErrors(), {}
    for field in fields:
        text = texts.get(field.name, "")
        with errors:
            if text.strip() or field.kind is Kind.CHECK:
                values[field.name] = _value(field, text)
            elif field.is_required:
                raise InvalidInput(field.name, REQUIRED)
    errors.raise_all()
    return text_of(json.dumps(values, ensure_ascii=False, separators=(",", ":"))) if values else ""


def _value(field: ParameterField, text: str) -> Any:
    """Return the JSON value of one field."""
    if field.kind is Kind.TEXT:
        return text
    if field.kind is Kind.CHECK:
        return text.strip() not in ("", "false")
    if field.kind is Kind.JSON:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    if field.kind is Kind.CHOICE:
        line = _one_line_end(text)
        matches = [choice for choice in field.choices if _one_line_end(text_of(choice)) == line]
        if not matches:
            raise InvalidInput(field.name, N_('"%(value)s" is not one of the choices', value=text))
        return matches[0]
    return _check(field, text.strip())


def _check(field: ParameterField, text: str) -> Any:
    try:
        if field.kind is Kind.DATE:
            return date.fromisoformat(text).isoformat()
        value = json.loads(text.removeprefix("+"))
        is_number = type(value) is int or (field.kind is Kind.NUMBER and isinstance(value, float))
        if is_number and -inf < value < inf:  # isfinite() fails for large integers.
            return value
    except (ValueError, RecursionError):
        pass
    if field.kind is Kind.DATE:
        raise InvalidInput(field.name, N_('"%(value)s" is not a date such as 2024-05-01', value=text))
    if field.kind is Kind.INTEGER:
        raise InvalidInput(field.name, N_('"%(value)s" is not a whole number', value=text))
    raise InvalidInput(field.name, N_('"%(value)s" is not a number', value=text))
