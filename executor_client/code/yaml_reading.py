"""YAML files as values whose places are known; only the types of JSON, and no tags."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from executor_client.code.source_locations import CodeError, Place
from executor_client.code.variables import UndefinedVariable, Variables, has_variable

#: largest file, in bytes; most values of a file, and deepest ones: aliases could multiply and nest them
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


class _TooMuch(Exception):
    """A file has more or deeper values than any document."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(problem)
        self.place = place


@dataclass
class Value:
    """Value with its place: a scalar, a list of values, or a mapping to values."""

    content: Any
    place: Place
    #: of a scalar: whether it was written without quotes
    is_plain: bool = False
    #: of a mapping: place of each key
    keys: dict[str, Place] = field(default_factory=dict)

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self.content, dict)


class Reader:
    """Reads files and collects their errors."""

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
            self._report(CodeError(Place(name), f"cannot be read: {reason}"))
            return None
        return self.parse(text, name)

    def parse(self, text: str, name: str) -> Value | None:
        """Return the content of a text as ``read`` does that of a file."""
        whole = Place(name)
        try:
            _check_depth(text)
            node = yaml.compose(text, Loader=_Loader)
        except yaml.MarkedYAMLError as exc:
            mark = exc.problem_mark or exc.context_mark
            place = Place(name, mark.line + 1, mark.column + 1) if mark is not None else whole
            self._report(CodeError(place, f"not valid YAML: {exc.problem or exc.context}"))
            return None
        except (ValueError, yaml.YAMLError, RecursionError) as exc:
            self._report(CodeError(whole, f"cannot be read: {str(exc).splitlines()[0]}"))
            return None
        self._count = 0
        try:
            return None if node is None else self._value(node, name, 0)
        except _TooMuch as exc:
            self._report(CodeError(exc.place, str(exc)))
            return None

    def _value(self, node: Any, name: str, depth: int) -> Value:
        place = self._counted(node, name, depth)
        if str(node.tag) not in _TAGS:
            self._report(CodeError(place, f"the tag {node.tag} is not supported"))
        if isinstance(node, yaml.MappingNode):
            found = Value({}, place)
            for key, key_place, value in self._pairs(node, name, depth):
                found.content[key] = self._value(value, name, depth + 1)
                found.keys[key] = key_place
            return found
        if isinstance(node, yaml.SequenceNode):
            return Value([self._value(each, name, depth + 1) for each in node.value], place)
        return Value(node.value, place, is_plain=not node.style)

    def _counted(self, node: Any, name: str, depth: int) -> Place:
        """Return the place of a node; raise _TooMuch at a limit."""
        self._count += 1
        place = Place(name, node.start_mark.line + 1, node.start_mark.column + 1)
        if self._count > VALUES_MAX:
            raise _TooMuch(place, f"the file has more than {VALUES_MAX} values; are aliases nested?")
        if depth > DEPTH_MAX:
            raise _TooMuch(place, f"values are nested deeper than {DEPTH_MAX} levels")
        return place

    def _pairs(self, node: Any, name: str, depth: int) -> Iterator[tuple[str, Place, Any]]:
        """Yield key, its place and the node of its value; those of ``<<`` first."""
        own: dict[str, Place] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(merged, yaml.MappingNode):
                        self._counted(merged, name, depth + 1)
                        yield from self._pairs(merged, name, depth + 1)
        for key, value in node.value:
            place = Place(name, key.start_mark.line + 1, key.start_mark.column + 1)
            if key.tag == _MERGE:
                continue
            if not isinstance(key, yaml.ScalarNode):
                self._report(CodeError(place, "a key must be a string"))
                continue
            if key.value in own:
                self._report(
                    CodeError(place, f"{key.value} is given twice, first in line {own[key.value].line}")
                )
                continue
            own[key.value] = place
            yield key.value, place, value


def _check_depth(text: str) -> None:
    """Raise ValueError for a text nested too deeply: composing it would overflow the stack of libyaml."""
    depth = 0
    event: Any
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_MAX:
            raise ValueError(f"line {event.start_mark.line + 1}: nested deeper than {DEPTH_MAX} levels")


class Resolver:
    """Turns values into plain ones: variables replaced, and the types of unquoted scalars found."""

    def __init__(self, variables: Variables, report: Callable[[CodeError], None]) -> None:
        self._variables, self._report = variables, report

    def plain(self, value: Value, *, is_literal: bool = False) -> Any:
        """Return JSON of a value; in a literal text nothing is a variable."""
        if isinstance(value.content, dict):
            return {name: self.plain(each) for name, each in value.content.items()}
        if isinstance(value.content, list):
            return [self.plain(each) for each in value.content]
        text = str(value.content) if value.content is not None else ""
        if not is_literal and has_variable(text):
            try:
                text = self._variables.resolve(text)
            except UndefinedVariable as exc:
                self._report(CodeError(value.place, str(exc)))
        return scalar(text) if value.is_plain and not is_literal else text


def scalar(text: str) -> Any:
    """Return the value of a scalar without quotes: a number, true, false, null, or else the text."""
    if _INTEGER.fullmatch(text):
        return int(text)
    word = text.lower()
    return _WORDS.get(word, text)
