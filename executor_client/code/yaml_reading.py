"""YAML files as values whose places are known; only the types of JSON, and no tags."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from executor_client.code.places import CodeError, Place
from executor_client.code.variables import UndefinedVariable, Variables, has_variable

#: largest file, in bytes, and most values of a file: aliases could multiply them
SIZE_MAX = 16 * 1024 * 1024
VALUES_MAX = 1_000_000
_TAGS = "tag:yaml.org,2002:"
_MERGE = f"{_TAGS}merge"
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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
        whole = Place(name)
        try:
            if path.stat().st_size > SIZE_MAX:
                raise ValueError(f"larger than {SIZE_MAX} bytes")
            node = yaml.compose(path.read_text(encoding="utf-8-sig"), Loader=_Loader)
        except yaml.MarkedYAMLError as exc:
            mark = exc.problem_mark or exc.context_mark
            place = Place(name, mark.line + 1, mark.column + 1) if mark is not None else whole
            self._report(CodeError(place, f"no YAML: {exc.problem or exc.context}"))
            return None
        except (OSError, ValueError, yaml.YAMLError, RecursionError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) else str(exc).splitlines()[0]
            self._report(CodeError(whole, f"cannot be read: {reason}"))
            return None
        self._count = 0
        return None if node is None else self._value(node, name)

    def _value(self, node: Any, name: str) -> Value:
        self._count += 1
        place = Place(name, node.start_mark.line + 1, node.start_mark.column + 1)
        if self._count > VALUES_MAX:
            return Value(None, place)
        if not str(node.tag).startswith(_TAGS):
            self._report(CodeError(place, f"the tag {node.tag} means nothing here"))
        if isinstance(node, yaml.MappingNode):
            found = Value({}, place)
            for key, key_place, value in self._pairs(node, name):
                found.content[key] = self._value(value, name)
                found.keys[key] = key_place
            return found
        if isinstance(node, yaml.SequenceNode):
            return Value([self._value(each, name) for each in node.value], place)
        return Value(node.value, place, is_plain=not node.style)

    def _pairs(self, node: Any, name: str) -> Iterator[tuple[str, Place, Any]]:
        """Yield key, its place and the node of its value; those of ``<<`` first."""
        own: dict[str, Place] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(merged, yaml.MappingNode) and merged is not node:
                        yield from self._pairs(merged, name)
        for key, value in node.value:
            place = Place(name, key.start_mark.line + 1, key.start_mark.column + 1)
            if key.tag == _MERGE:
                continue
            if not isinstance(key, yaml.ScalarNode):
                self._report(CodeError(place, "a key must be a text"))
                continue
            if key.value in own:
                self._report(
                    CodeError(place, f"{key.value} is here twice, first in line {own[key.value].line}")
                )
                continue
            own[key.value] = place
            yield key.value, place, value


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
