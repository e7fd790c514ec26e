"""Parameter types: what an annotation accepts, from ``int`` to lists of dataclasses."""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from executor_client.handlers.parameter_scalars import ANYTHING, SCALARS, Kind, excerpt, label, scalar
from executor_client.runs.results import plain

_LISTS: dict[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
}
_UNIONS = (typing.Union, types.UnionType)


class UnsupportedAnnotation(TypeError):
    """No value of this type can be read from a job's parameter; the text names the annotation."""


def kind_of(annotation: Any, within: tuple[type, ...] = ()) -> Kind:
    """Return the kind of an annotation; raise UnsupportedAnnotation.

    ``within`` are the dataclasses that are being described: one that contains itself is not supported.
    """
    if annotation in (Any, object, inspect.Parameter.empty):
        return ANYTHING
    if annotation in SCALARS:
        return SCALARS[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return kind_of(arguments[0], within)
    if origin in _UNIONS:
        return _optional(annotation, arguments, within)
    if origin is typing.Literal:
        return _choice({_word(value): value for value in arguments})
    if (origin or annotation) in _LISTS:
        return _list(origin or annotation, arguments, within)
    if (origin or annotation) is dict:
        return _dict(arguments or (Any, Any), within)
    return _of_class(annotation, within)


def doc_of(annotation: Any) -> str | None:
    """Return the text of ``Annotated[int, "rows at most"]``, None without one."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return None
    return next((text for text in annotation.__metadata__ if isinstance(text, str)), None)


def hints_of(owner: Any, names: dict[str, Any], kind: str) -> dict[str, Any]:
    """Resolve annotations by the names of the module of ``owner``; raise UnsupportedAnnotation."""
    if isinstance(owner, type):
        scope = vars(inspect.getmodule(owner) or types)
    else:
        scope = getattr(inspect.unwrap(owner), "__globals__", {})
    return {name: _resolve(name, annotation, scope, kind) for name, annotation in names.items()}


def _resolve(name: str, annotation: Any, scope: dict[str, Any], kind: str) -> Any:
    holder = types.SimpleNamespace(__annotations__={name: annotation})
    try:
        return typing.get_type_hints(holder, scope, include_extras=True)[name]
    except Exception as exc:
        raise UnsupportedAnnotation(f"{kind} {name}: {annotation!r} cannot be resolved: {exc}") from exc


def _of_class(annotation: Any, within: tuple[type, ...]) -> Kind:
    if isinstance(annotation, typing.NewType):
        return kind_of(annotation.__supertype__, within)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _enum(annotation)
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        if annotation in within:
            raise UnsupportedAnnotation(f"{annotation.__name__} contains itself")
        return _dataclass(annotation, (*within, annotation))
    raise UnsupportedAnnotation(f"{_type_name(annotation)} is not supported")


def _type_name(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


def _word(value: object) -> str:
    """Return how a choice is written in text: ``true`` for True."""
    return str(plain(value)).lower() if isinstance(value, bool) else str(plain(value))


def _choice(choices: dict[str, Any]) -> Kind:
    def convert(value: object) -> Any:
        for choice in choices.values():
            if value == plain(choice) and isinstance(value, bool) == isinstance(plain(choice), bool):
                return choice
        if not isinstance(value, str) or value.strip() not in choices:
            raise ValueError(value)
        return choices[value.strip()]

    syntax = ", ".join(choices)
    return scalar(
        convert, "one of the choices", syntax, {"enum": [plain(value) for value in choices.values()]}
    )


def _enum(annotation: type[Enum]) -> Kind:
    """Return the kind of an enum: values, and names as well, as long as they are no other member's value."""
    members = list(annotation)
    kind = _choice({_word(member): member for member in members})
    member_by_name = {member.name: member for member in members}

    def read(value: object, path: str, errors: list[str]) -> Any:
        value_errors: list[str] = []
        member = kind.read(value, path, value_errors)
        if value_errors and isinstance(value, str) and value.strip() in member_by_name:
            return member_by_name[value.strip()]
        errors += value_errors
        return member

    return dataclasses.replace(kind, read=read)


def _optional(annotation: Any, arguments: tuple[Any, ...], within: tuple[type, ...]) -> Kind:
    """Return the kind of ``T | None``: None is JSON's null, and, unless T is text, ``null`` or nothing."""
    value_types = [argument for argument in arguments if argument is not type(None)]
    if len(value_types) != 1 or len(value_types) == len(arguments):
        raise UnsupportedAnnotation(f"{annotation}: a union is supported with None only")
    kind = kind_of(value_types[0], within)
    null_values = (None,) if kind.is_text else (None, "", "null")

    def read(value: object, path: str, errors: list[str]) -> Any:
        is_none = value is None or isinstance(value, str) and value in null_values
        return None if is_none else kind.read(value, path, errors)

    schema = dict(kind.schema)
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = [*kinds, "null"]
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    return dataclasses.replace(kind, read=read, schema=schema)


def _list(origin: Any, arguments: tuple[Any, ...], within: tuple[type, ...]) -> Kind:
    """Return the kind of a list: a JSON array, or text that is split at its commas."""
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        return _tuple([kind_of(argument, within) for argument in arguments])
    item = kind_of(arguments[0] if arguments else Any, within)
    syntax = "a JSON array, or values separated by commas"

    def read(value: object, path: str, errors: list[str]) -> Any:
        values = _items(value)
        if values is None:
            errors.append(f"{path}: {excerpt(value)} is not a list; expected {syntax}")
            return None
        elements = [item.read(element, f"{path}[{index}]", errors) for index, element in enumerate(values)]
        if origin not in (set, frozenset):
            return _LISTS[origin](elements)
        try:
            return _LISTS[origin](elements)
        except TypeError:
            errors.append(f"{path}: {excerpt(value)} has a list or an object; expected single values")
            return None

    schema: dict[str, Any] = {"type": "array", "items": item.schema}
    if origin in (set, frozenset):
        schema["uniqueItems"] = True
    return Kind(read, syntax, schema, structure="array")


def _items(value: object) -> list[Any] | None:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")] if value.strip() else []
    return value if isinstance(value, list) else None


def _tuple(kinds: list[Kind]) -> Kind:
    """Return the kind of ``tuple[str, int]``."""
    size = len(kinds)
    syntax = f"a list of {size}: {', '.join(kind.syntax for kind in kinds)}"

    def read(value: object, path: str, errors: list[str]) -> Any:
        values = _items(value)
        if values is None or len(values) != size:
            errors.append(f"{path}: {excerpt(value)} is not a list of {size}; expected {syntax}")
            return None
        pairs = enumerate(zip(kinds, values, strict=True))
        return tuple(kind.read(element, f"{path}[{index}]", errors) for index, (kind, element) in pairs)

    schema = {
        "type": "array",
        "prefixItems": [kind.schema for kind in kinds],
        "items": False,
        "minItems": size,
        "maxItems": size,
    }
    return Kind(read, syntax, schema, structure="array")


def _dict(arguments: tuple[Any, ...], within: tuple[type, ...]) -> Kind:
    key, item = (kind_of(argument, within) for argument in arguments)

    def read(value: object, path: str, errors: list[str]) -> Any:
        if not isinstance(value, dict):
            errors.append(f"{path}: {excerpt(value)} is not an object; expected a JSON object")
            return None
        return {
            key.read(name, f"{path}[{name!r}]", errors): item.read(element, f"{path}[{name!r}]", errors)
            for name, element in value.items()
        }

    if key.structure:
        raise UnsupportedAnnotation("keys of a dict must be single values")
    schema = {"type": "object", "additionalProperties": item.schema or True}
    return Kind(read, "a JSON object", schema, structure="object")


def _dataclass(annotation: type, within: tuple[type, ...]) -> Kind:
    fields = {field.name: field for field in dataclasses.fields(annotation) if field.init}
    hints: dict[str, Any] = {}
    for name, field in fields.items():
        hints |= hints_of(_declaring(annotation, field), {name: field.type}, "field")
    kinds = {name: kind_of(hint, within) for name, hint in hints.items()}
    required_names = [name for name, field in fields.items() if _is_required(field)]
    syntax = f"a JSON object with {', '.join(fields) or 'nothing'}"

    def read(value: object, path: str, errors: list[str]) -> Any:
        if not isinstance(value, dict):
            errors.append(f"{path}: {excerpt(value)} is not an object; expected {syntax}")
            return None
        before = len(errors)
        unknown = [label(name) for name in value if name not in kinds]
        errors += [f"{path}.{name}: no such field; expected {', '.join(fields)}" for name in unknown]
        errors += [
            f"{path}.{name}: missing; expected {kinds[name].syntax}"
            for name in required_names
            if name not in value
        ]
        arguments = {
            name: kinds[name].read(element, f"{path}.{name}", errors)
            for name, element in value.items()
            if name in kinds
        }
        return _construct(annotation, arguments, path, errors) if len(errors) == before else None

    properties = {name: _property(name, kinds[name], hints[name], fields[name].default) for name in fields}
    schema = {
        "type": "object",
        "properties": properties,
        "required": required_names,
        "additionalProperties": False,
    }
    return Kind(read, syntax, schema, structure="object")


def _declaring(annotation: type, field: "dataclasses.Field[Any]") -> type:
    """Return the class, this one or a base, that declares a field: its annotation uses names from there."""
    bases = reversed(annotation.__mro__)
    return next(base for base in bases if field in getattr(base, "__dataclass_fields__", {}).values())


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _construct(annotation: type, arguments: dict[str, Any], path: str, errors: list[str]) -> Any:
    try:
        return annotation(**arguments)
    except Exception as exc:
        errors.append(f"{path}: {str(exc) or type(exc).__name__}")
        return None


def _property(name: str, kind: Kind, hint: Any, default: Any) -> dict[str, Any]:
    """Return the JSON Schema of a parameter or field, with its title and default."""
    schema = {**kind.schema, "title": doc_of(hint) or name}
    if default is not dataclasses.MISSING and default is not inspect.Parameter.empty:
        schema["default"] = plain(default)
    return schema


property_of = _property
