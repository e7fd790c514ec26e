"""List parameters that drivers serialise in one step.

psycopg finds the type of an array from its elements, PyMySQL the conversion of each: with hundreds of ids
that takes longer than the statement.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

#: PostgreSQL's types BIGINT[] and TEXT[]
_NUMBERS_TYPE, _TEXTS_TYPE = 1016, 1009


class Numbers(list[int | None]):
    """Whole numbers."""


class Texts(list[str | None]):
    """Texts."""


def list_of(values: Iterable[Any]) -> list[Any]:
    """Return values of one kind as a parameter; if the first is neither a number nor a text, as they are."""
    items = list(values)
    kind = next((type(value) for value in items if value is not None), None)
    if kind is int:
        return Numbers(items)
    return Texts(items) if kind is str else items


def mysql_encoders() -> dict[type, Callable[[Any, Any], str]]:
    """Return encoders of numbers for the drivers of MySQL, for an IN."""
    return {Numbers: lambda values, _mapping: f"({_join(values)})"}


def _join(values: Numbers) -> str:
    """Return the numbers with commas; raises TypeError for anything else, which would be SQL."""
    if None in values:
        return ",".join(["NULL" if value is None else int.__repr__(value) for value in values])
    return ",".join(map(int.__repr__, values))


def _quote(value: str | None) -> str:
    return "NULL" if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


@cache
def register_with_psycopg() -> None:
    """Let psycopg write the lists as arrays."""
    from psycopg import adapters  # Other databases need no psycopg.
    from psycopg.adapt import Dumper

    class NumbersDumper(Dumper):
        oid = _NUMBERS_TYPE

        def dump(self, obj: Numbers) -> bytes:
            return f"{{{_join(obj)}}}".encode()

    class TextsDumper(Dumper):
        oid = _TEXTS_TYPE

        def dump(self, obj: Texts) -> bytes:
            return f"{{{','.join(map(_quote, obj))}}}".encode()

    adapters.register_dumper(Numbers, NumbersDumper)
    adapters.register_dumper(Texts, TextsDumper)
