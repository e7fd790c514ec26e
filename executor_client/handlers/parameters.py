"""Parameters of a handler: its typed arguments, filled from the text of the job's parameter.

``def sync(day: date, limit: int = 100)`` takes ``day=2026-01-31``, ``2026-01-31, 5`` or
``{"day": "2026-01-31", "limit": 5}``. The exact rules:
"Parameters" in docs/reference/executor-client.md.
"""

import inspect
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import Parameter as Argument
from typing import Any

from executor_client.handlers.parameter_scalars import Kind, excerpt, label
from executor_client.handlers.parameter_text import NO_JSON, NamedValue, UnreadableText, Word, read_values
from executor_client.handlers.parameter_types import UnsupportedAnnotation, hints_of, kind_of, property_of
from executor_client.wire.errors import InvalidParameters

#: the probable cause of a surplus word
HINT_QUOTES = "name=value, or quotes around a value with blanks or commas"
#: errors after which the remaining values are not checked
ERRORS_MAX = 50
_VARIADIC = (Argument.VAR_POSITIONAL, Argument.VAR_KEYWORD)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parameter:
    """Argument of a handler."""

    name: str
    kind: Kind
    #: annotation, resolved
    hint: Any
    argument: Argument

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.argument.default is Argument.empty


@dataclass(frozen=True, slots=True)
class Parameters:
    """Signature of a handler with typed arguments."""

    by_name: dict[str, Parameter]
    #: ``*args``: takes further values without a name
    var_positional: Parameter | None
    #: ``**kwargs``: takes values with other names
    var_keyword: Parameter | None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Parameters | None":
        """Return the parameters of a function, None if it is to be called without arguments.

        That is one whose arguments all have a default and no annotation, and, with a warning, one whose
        arguments all have a default and one has an annotation that no text can fill. Raises
        UnsupportedAnnotation.
        """
        try:
            arguments = inspect.signature(function).parameters
        except (ValueError, TypeError):  # a builtin without signature
            return None
        is_required = any(
            argument.default is Argument.empty and argument.kind not in _VARIADIC
            for argument in arguments.values()
        )
        if not is_required and all(argument.annotation is Argument.empty for argument in arguments.values()):
            return None
        try:
            return cls._from_annotations(function, dict(arguments))
        except UnsupportedAnnotation as exc:
            if is_required:
                raise
            name = getattr(function, "__qualname__", repr(function))
            logger.warning(
                "handler called without arguments, no job can fill them handler=%s reason=%s", name, exc
            )
            return None

    @classmethod
    def _from_annotations(cls, function: Callable[..., Any], arguments: dict[str, Argument]) -> "Parameters":
        annotations = {name: argument.annotation for name, argument in arguments.items()}
        hints = hints_of(_annotation_owner(function), annotations, "argument")
        parameters = {name: _parameter(name, argument, hints[name]) for name, argument in arguments.items()}
        var_positional, var_keyword = (
            next((parameter for parameter in parameters.values() if parameter.argument.kind is kind), None)
            for kind in _VARIADIC
        )
        by_name = {
            name: parameter
            for name, parameter in parameters.items()
            if parameter.argument.kind not in _VARIADIC
        }
        return cls(by_name, var_positional, var_keyword)

    def read(self, text: str) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and named arguments for a parameter text; raise InvalidParameters."""
        try:
            pairs = self._named_values(text)
        except UnreadableText as exc:
            raise InvalidParameters(f"parameter: {exc}") from exc
        errors: list[str] = []
        words, extra_words = self._assign(pairs, errors)
        missing = [
            parameter
            for name, parameter in self.by_name.items()
            if parameter.is_required and name not in words
        ]
        values = {name: _read(self._of_name(name), name, value, errors) for name, value in words.items()}
        extra_values = [
            _read(self.var_positional, f"*{place}", value, errors) for place, value in enumerate(extra_words)
        ]
        errors += [f"{parameter.name}: missing; expected {parameter.kind.syntax}" for parameter in missing]
        if errors:
            raise InvalidParameters("\n".join(errors))
        return self._arguments(values, extra_values)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of an object with these parameters."""
        return {
            "type": "object",
            "properties": {
                name: property_of(name, parameter.kind, parameter.hint, parameter.argument.default)
                for name, parameter in self.by_name.items()
            },
            "required": [name for name, parameter in self.by_name.items() if parameter.is_required],
            "additionalProperties": (self.var_keyword.kind.schema or True) if self.var_keyword else False,
        }

    def _named_values(self, text: str) -> list[NamedValue]:
        """Return the values of a text; a single parameter may take all of it, see ``_as_one_value``."""
        if not text.strip():
            return []
        parameters = list(self.by_name.values())
        if len(parameters) != 1 or self.var_positional or self.var_keyword:
            return read_values(text)
        name, kind = parameters[0].name, parameters[0].kind
        if kind.is_text:
            return [(name, _whole_text(name, text))]
        if not kind.structure and text.lstrip()[0] not in "[{":
            return [(name, _unquote(_whole_text(name, text).strip()))]
        return _as_one_value(parameters[0], text.strip(), read_values(text))

    def _assign(self, pairs: list[NamedValue], errors: list[str]) -> tuple[dict[str, Any], list[Any]]:
        """Return the values by name, and those for ``*args``."""
        positional_names = [
            name
            for name, parameter in self.by_name.items()
            if parameter.argument.kind is not Argument.KEYWORD_ONLY
        ]
        words: dict[str, Any] = {}
        extra_words: list[Any] = []
        position = 0
        has_name = False
        for name, value in pairs:
            if len(errors) >= ERRORS_MAX:
                break
            if name is not None:
                has_name = True
                self._take(name, value, words, errors)
            elif has_name:
                errors.append(
                    f"{_excerpt(value)}: value without a name after named ones; expected {HINT_QUOTES}"
                )
            elif position < len(positional_names):
                words[positional_names[position]] = value
                position += 1
            elif self.var_positional:
                extra_words.append(value)
            else:
                errors.append(f"{_excerpt(value)}: one value too many; expected {self._names()}")
        return words, extra_words

    def _take(self, name: str, value: Any, words: dict[str, Any], errors: list[str]) -> None:
        parameter = self._of_name(name)
        if parameter is None:
            errors.append(f"{label(name)}: no such parameter; expected {self._names()}")
        elif name not in words:
            words[name] = value
        elif parameter.kind.structure == "array":
            words[name] = [*_parts(words[name]), *_parts(value)]
        else:
            errors.append(f"{name}: given twice; expected one value, not {_excerpt(value)} as well")

    def _of_name(self, name: str) -> Parameter | None:
        return self.by_name.get(name, self.var_keyword)

    def _names(self) -> str:
        return ", ".join(self.by_name) or "none"

    def _arguments(self, values: dict[str, Any], extra_values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        positional, keywords = [], {name: value for name, value in values.items() if name not in self.by_name}
        for name, parameter in self.by_name.items():
            value = values.get(name, parameter.argument.default)
            if parameter.argument.kind is Argument.KEYWORD_ONLY:
                keywords[name] = value
            else:
                positional.append(value)
        return positional + extra_values, keywords


def _annotation_owner(function: Any) -> Any:
    """Return the function whose globals annotations use: inside a ``partial``, or a class's ``__call__``."""
    while isinstance(function, partial):
        function = function.func
    return function if hasattr(inspect.unwrap(function), "__globals__") else type(function).__call__


def _parameter(name: str, argument: Argument, hint: Any) -> Parameter:
    try:
        # A default of None allows None, as in the implicit Optional of older type checkers.
        kind = kind_of(hint | None if argument.default is None else hint)
        return Parameter(name, kind, hint, argument)
    except UnsupportedAnnotation as exc:
        raise UnsupportedAnnotation(f"argument {name}: {exc}") from exc


def _whole_text(name: str, text: str) -> str:
    """Return the text for a single parameter, which the text may name: ``name=…``, ``{"name": …}``."""
    if text.lstrip().startswith("{"):
        try:
            pairs = read_values(text)
        except UnreadableText:
            return text
        return pairs[0][1] if [pair_name for pair_name, _ in pairs] == [name] else text
    prefix = re.match(rf"\s*{re.escape(name)}[ \t]*=[ \t]*", text)
    if prefix is None:
        return text
    return _unquote(text[prefix.end() :].rstrip())


def _unquote(value: str) -> str:
    is_quoted = re.fullmatch(r""""([^"]|"")*"|'([^']|'')*'""", value)
    return value[1:-1].replace(value[0] * 2, value[0]) if is_quoted else value


def _as_one_value(parameter: Parameter, text: str, pairs: list[NamedValue]) -> list[NamedValue]:
    """Let a single list take all values without a name, and a single dict or dataclass a JSON object."""
    names = [name for name, _ in pairs]
    if parameter.kind.structure == "object" and text.startswith("{") and names != [parameter.name]:
        return [(parameter.name, dict(pairs))]
    is_list = parameter.kind.structure == "array" and all(name is None for name in names)
    if is_list and (text.startswith("[") or len(pairs) > 1):
        return [(parameter.name, [_item(value) for _, value in pairs])]
    return pairs


def _item(value: Any) -> Any:
    if isinstance(value, Word):
        return value.raw if value.json is NO_JSON else value.json
    return value


def _parts(value: Any) -> list[Any]:
    """Return the values that one value contributes to a list."""
    if isinstance(value, Word):
        return value.json if isinstance(value.json, list) else [value.raw]
    return value if isinstance(value, list) else [value]


def _read(parameter: Parameter | None, path: str, value: Any, errors: list[str]) -> Any:
    if parameter is None:  # no such parameter, which is an error already
        return None
    if isinstance(value, Word):
        value = _item(value) if parameter.kind.structure else value.raw
    return parameter.kind.read(value, path, errors)


def _excerpt(value: Any) -> str:
    return excerpt(value.raw if isinstance(value, Word) else value)
