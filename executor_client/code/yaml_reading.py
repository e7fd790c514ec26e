"""YAML reader: values with their source locations; JSON types only, no tags."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from executor_client.code.source_locations import CodeError, SourceLocation
from executor_client.code.variables import UndefinedVariable, Variables, has_variable

#: largest file in bytes, most values of a file, and deepest nesting: aliases could multiply and nest values
SIZE_MAX = 16 * 1024 * 1024
VALUES_MAX = 400_000
DEPTH_MAX = 50
_MERGE = "tag:yaml.org,2002:merge"
#: tags that values without one get
_TAGS = {
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "timestamp", "value", "merge", "map", "seq")
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _LimitExceeded(Exception):
    """A file has too many or too deeply nested values."""

    def __init__(self, location: SourceLocation, problem: str) -> None:
        super().__init__(problem)
        self.location = location


@dataclass
class Value:
    """Value with its location: a scalar, a list of values, or a mapping to values."""

    content: Any
    location: SourceLocation
    #: of a scalar: whether it was written without quotes
    is_plain: bool = False
    #: of a mapping: location of each key
    keys: dict[str, SourceLocation] = field(default_factory=dict)

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self.content, dict)


class Reader:
    """Reads YAML files and reports their errors."""

    def __init__(self, report: Callable[[CodeError], None]) -> None:
        self._report = report
        self._count = 0

    def read(self, path: Path, name: str) -> Value | None:
        """Return the content of a file, which is ``name`` in messages; None if it is empty or no YAML."""
        try:
            if path.stat().st_size > SIZE_MAX:
                raise ValueError(f"larger than {SIZE_MAX} bytes")
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) else str(exc).splitlines()[0]
            self._report(CodeError(SourceLocation(name), f"cannot be read: {reason}"))
            return None
        return self.parse(text, name)

    def parse(self, text: str, name: str) -> Value | None:
        """Return the content of a text as ``read`` does that of a file."""
        whole_file = SourceLocation(name)
        try:
            _check_depth(text)
            node = yaml.compose(text, Loader=_Loader)
        except yaml.MarkedYAMLError as exc:
            mark = exc.problem_mark or exc.context_mark
            location = (
                SourceLocation(name, mark.line + 1, mark.column + 1) if mark is not None else whole_file
            )
            self._report(CodeError(location, f"not valid YAML: {exc.problem or exc.context}"))
            return None
        except (ValueError, yaml.YAMLError, RecursionError) as exc:
            self._report(CodeError(whole_file, f"cannot be read: {str(exc).splitlines()[0]}"))
            return None
        self._count = 0
        try:
            return None if node is None else self._value(node, name, 0)
        except _LimitExceeded as exc:
            self._report(CodeError(exc.location, str(exc)))
            return None

    def _value(self, node: Any, name: str, depth: int) -> Value:
        location = self._count_node(node, name, depth)
        if str(node.tag) not in _TAGS:
            self._report(CodeError(location, f"the tag {node.tag} is not supported"))
        if isinstance(node, yaml.MappingNode):
            mapping = Value({}, location)
            for key, key_location, value in self._pairs(node, name, depth):
                mapping.content[key] = self._value(value, name, depth + 1)
                mapping.keys[key] = key_location
            return mapping
        if isinstance(node, yaml.SequenceNode):
            return Value([self._value(item, name, depth + 1) for item in node.value], location)
        return Value(node.value, location, is_plain=not node.style)

    def _count_node(self, node: Any, name: str, depth: int) -> SourceLocation:
        """Return the location of a node; raise _LimitExceeded at a limit."""
        self._count += 1
        location = SourceLocation(name, node.start_mark.line + 1, node.start_mark.column + 1)
        if self._count > VALUES_MAX:
            raise _LimitExceeded(location, f"the file has more than {VALUES_MAX} values; are aliases nested?")
        if depth > DEPTH_MAX:
            raise _LimitExceeded(location, f"values are nested deeper than {DEPTH_MAX} levels")
        return location

    def _pairs(self, node: Any, name: str, depth: int) -> Iterator[tuple[str, SourceLocation, Any]]:
        """Yield key, its location and the node of its value; those of ``<<`` first."""
        locations: dict[str, SourceLocation] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(source, yaml.MappingNode):
                        self._count_node(source, name, depth + 1)
                        yield from self._pairs(source, name, depth + 1)
        for key, value in node.value:
            location = SourceLocation(name, key.start_mark.line + 1, key.start_mark.column + 1)
            if key.tag == _MERGE:
                continue
            if not isinstance(key, yaml.ScalarNode):
                self._report(CodeError(location, "a key must be a string"))
                continue
            if key.value in locations:
                self._report(
                    CodeError(
                        location, f"{key.value} is given twice, first in line {locations[key.value].line}"
                    )
                )
                continue
            locations[key.value] = location
            yield key.value, location, value


def _check_depth(text: str) -> None:
    """Raise ValueError for a text nested too deeply: composing it would overflow the stack of libyaml."""
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_MAX:
            raise ValueError(f"line {event.start_mark.line + 1}: nested deeper than {DEPTH_MAX} levels")


class Resolver:
    """Turns values into JSON: replaces variables, and gives unquoted scalars their types."""

    def __init__(self, variables: Variables, report: Callable[[CodeError], None]) -> None:
        self._variables, self._report = variables, report

    def plain(self, value: Value, *, is_literal: bool = False, is_parameter: bool = False) -> Any:
        """Return JSON of a value.

        In a literal text nothing is a variable; in a parameter placeholders of the console stay as they are.
        """
        if isinstance(value.content, dict):
            return {name: self.plain(item) for name, item in value.content.items()}
        if isinstance(value.content, list):
            return [self.plain(item) for item in value.content]
        text = str(value.content) if value.content is not None else ""
        if not is_literal and has_variable(text):
            try:
                variables = self._variables
                text = variables.resolve_parameter(text) if is_parameter else variables.resolve(text)
            except UndefinedVariable as exc:
                self._report(CodeError(value.location, str(exc)))
        return scalar(text) if value.is_plain and not is_literal else text


def scalar(text: str) -> Any:
    """Return the value of a scalar without quotes: a number, true, false, null, or else the text."""
    if _INTEGER.fullmatch(text):
        return int(text)
    word = text.lower()
    return _WORDS.get(word, text)
