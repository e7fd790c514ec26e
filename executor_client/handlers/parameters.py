"""Parameters of a handler: its typed arguments, filled from the text of the job's parameter.

``def sync(day: date, limit: int = 100)`` takes ``day=2026-01-31``, ``2026-01-31, 5`` or
``{"day": "2026-01-31", "limit": 5}``. See "Parameters" in docs/executor.md for the exact rules.
"""

import inspect
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import Parameter as Argument
from typing import Any

from executor_client.handlers.parameter_scalars import Kind, label, shown
from executor_client.handlers.parameter_text import NO_JSON, Given, UnreadableText, Word, read_given
from executor_client.handlers.parameter_types import UnsupportedAnnotation, hints_of, kind_of, property_of
from executor_client.wire.errors import InvalidParameters

#: what is probably wrong when a word has no place
HINT_QUOTES = "name=value, or quotes around a value with blanks or commas"
#: values that are refused, before the others are not looked at any more
ERRORS_MAX = 50
_REST = (Argument.VAR_POSITIONAL, Argument.VAR_KEYWORD)

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

    fixed: dict[str, Parameter]
    #: ``*args``: takes further values without a name
    rest: Parameter | None
    #: ``**kwargs``: takes values with other names
    others: Parameter | None

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
            each.default is Argument.empty and each.kind not in _REST for each in arguments.values()
        )
        if not is_required and all(each.annotation is Argument.empty for each in arguments.values()):
            return None
        try:
            return cls._described(function, dict(arguments))
        except UnsupportedAnnotation as exc:
            if is_required:
                raise
            name = getattr(function, "__qualname__", repr(function))
            logger.warning(
                "handler called without arguments, no job can fill them handler=%s reason=%s", name, exc
            )
            return None

    @classmethod
    def _described(cls, function: Callable[..., Any], arguments: dict[str, Argument]) -> "Parameters":
        given = {name: each.annotation for name, each in arguments.items()}
        hints = hints_of(_annotated(function), given, "argument")
        found = {name: _parameter(name, each, hints[name]) for name, each in arguments.items()}
        rest, others = (
            next((each for each in found.values() if each.argument.kind is kind), None) for kind in _REST
        )
        fixed = {name: each for name, each in found.items() if each.argument.kind not in _REST}
        return cls(fixed, rest, others)

    def read(self, text: str) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and named arguments for a parameter text; raise InvalidParameters."""
        try:
            given = self._given(text)
        except UnreadableText as exc:
            raise InvalidParameters(f"parameter: {exc}") from exc
        errors: list[str] = []
        named, rest = self._assigned(given, errors)
        missing = [each for name, each in self.fixed.items() if each.is_required and name not in named]
        values = {name: _read(self._of_name(name), name, value, errors) for name, value in named.items()}
        further = [_read(self.rest, f"*{place}", value, errors) for place, value in enumerate(rest)]
        errors += [f"{each.name}: missing; expected {each.kind.expected}" for each in missing]
        if errors:
            raise InvalidParameters("\n".join(errors))
        return self._arguments(values, further)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of an object with these parameters."""
        return {
            "type": "object",
            "properties": {
                name: property_of(name, each.kind, each.hint, each.argument.default)
                for name, each in self.fixed.items()
            },
            "required": [name for name, each in self.fixed.items() if each.is_required],
            "additionalProperties": (self.others.kind.schema or True) if self.others else False,
        }

    def _given(self, text: str) -> list[Given]:
        """Return the values of a text; a single parameter may take all of it, see ``_whole``."""
        if not text.strip():
            return []
        only = list(self.fixed.values())
        if len(only) != 1 or self.rest or self.others:
            return read_given(text)
        name, kind = only[0].name, only[0].kind
        if kind.is_text:
            return [(name, _whole_text(name, text))]
        if not kind.structure and text.lstrip()[0] not in "[{":
            return [(name, _unquoted(_whole_text(name, text).strip()))]
        return _whole(only[0], text.strip(), read_given(text))

    def _assigned(self, given: list[Given], errors: list[str]) -> tuple[dict[str, Any], list[Any]]:
        """Return the values by name, and those for ``*args``."""
        places = [
            name for name, each in self.fixed.items() if each.argument.kind is not Argument.KEYWORD_ONLY
        ]
        named: dict[str, Any] = {}
        rest: list[Any] = []
        position = 0
        is_named = False
        for name, value in given:
            if len(errors) >= ERRORS_MAX:
                break
            if name is not None:
                is_named = True
                self._take(name, value, named, errors)
            elif is_named:
                errors.append(
                    f"{_shown(value)}: value without a name after named ones; expected {HINT_QUOTES}"
                )
            elif position < len(places):
                named[places[position]] = value
                position += 1
            elif self.rest:
                rest.append(value)
            else:
                errors.append(f"{_shown(value)}: one value too many; expected {self._names()}")
        return named, rest

    def _take(self, name: str, value: Any, named: dict[str, Any], errors: list[str]) -> None:
        parameter = self._of_name(name)
        if parameter is None:
            errors.append(f"{label(name)}: no such parameter; expected {self._names()}")
        elif name not in named:
            named[name] = value
        elif parameter.kind.structure == "array":
            named[name] = [*_parts(named[name]), *_parts(value)]
        else:
            errors.append(f"{name}: given twice; expected one value, not {_shown(value)} as well")

    def _of_name(self, name: str) -> Parameter | None:
        return self.fixed.get(name, self.others)

    def _names(self) -> str:
        return ", ".join(self.fixed) or "none"

    def _arguments(self, values: dict[str, Any], rest: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        positional, named = [], {name: value for name, value in values.items() if name not in self.fixed}
        for name, each in self.fixed.items():
            value = values.get(name, each.argument.default)
            if each.argument.kind is Argument.KEYWORD_ONLY:
                named[name] = value
            else:
                positional.append(value)
        return positional + rest, named


def _annotated(function: Any) -> Any:
    """Return what has the names that annotations use: behind a ``partial`` or an object with ``__call__``."""
    while isinstance(function, partial):
        function = function.func
    return function if hasattr(inspect.unwrap(function), "__globals__") else type(function).__call__


def _parameter(name: str, argument: Argument, hint: Any) -> Parameter:
    try:
        # a default of None allows None, as type checkers once had it
        kind = kind_of(hint | None if argument.default is None else hint)
        return Parameter(name, kind, hint, argument)
    except UnsupportedAnnotation as exc:
        raise UnsupportedAnnotation(f"argument {name}: {exc}") from exc


def _whole_text(name: str, text: str) -> str:
    """Return the text for a single parameter, which the text may name: ``name=…``, ``{"name": …}``."""
    if text.lstrip().startswith("{"):
        try:
            given = read_given(text)
        except UnreadableText:
            return text
        return given[0][1] if [each for each, _ in given] == [name] else text
    named = re.match(rf"\s*{re.escape(name)}[ \t]*=[ \t]*", text)
    if named is None:
        return text
    return _unquoted(text[named.end() :].rstrip())


def _unquoted(value: str) -> str:
    is_quoted = re.fullmatch(r""""([^"]|"")*"|'([^']|'')*'""", value)
    return value[1:-1].replace(value[0] * 2, value[0]) if is_quoted else value


def _whole(only: Parameter, text: str, given: list[Given]) -> list[Given]:
    """Let a single list take all values without a name, and a single dict or dataclass a JSON object."""
    names = [name for name, _ in given]
    if only.kind.structure == "object" and text.startswith("{") and names != [only.name]:
        return [(only.name, dict(given))]
    is_list = only.kind.structure == "array" and all(name is None for name in names)
    if is_list and (text.startswith("[") or len(given) > 1):
        return [(only.name, [_item(value) for _, value in given])]
    return given


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


def _shown(value: Any) -> str:
    return shown(value.raw if isinstance(value, Word) else value)
