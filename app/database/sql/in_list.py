"""IN lists with constant statement text, so the statement cache hits.

SQLAlchemy writes a statement with IN anew for every list, and the database then plans it anew. So the list is
one parameter: JSON on SQLite, an array on PostgreSQL, on MySQL and MariaDB a list that the driver writes.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Self

from sqlalchemy import Boolean, ColumnElement, Dialect, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import UserDefinedType

from app.database.list_parameters import Numbers, list_of

#: parameter of ``among``: numbers or texts
WANTED = "wanted"


class _List(UserDefinedType[Sequence[Any]]):
    """A list as one parameter, converted for the driver."""

    cache_ok = True

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        self.convert = convert

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """Return the conversion."""
        return self.convert


def _on_mysql(values: Sequence[Any]) -> list[Any]:
    items = list_of(values) or [None]  # An IN needs a value, and nothing equals this one.
    return items if isinstance(items, Numbers) else list(items)


_LIST = _List(list_of).with_variant(_List(json.dumps), "sqlite").with_variant(_List(_on_mysql), "mysql")


class among(FunctionElement[bool]):  # noqa: N801 a function, as SQLAlchemy's own
    """The condition that a column has one of the values, by default those of the parameter ``name``.

    The parameter is for statements that are made once: making one costs a small transaction as much as
    executing it. Values are for conditions with thousands.
    """

    inherit_cache = True

    def __init__(
        self,
        column: ColumnElement[Any] | InstrumentedAttribute[Any],
        values: Sequence[Any] | None = None,
        *,
        name: str = WANTED,
    ) -> None:
        parameter = bindparam(name, type_=_LIST)
        if values is not None:
            parameter = bindparam(WANTED, list(values), type_=_LIST, unique=True)
        super().__init__(column, parameter)
        self.type = Boolean()

    def self_group(self, against: OperatorType | None = None) -> Self:
        """Return itself: SQLAlchemy would add ``= 1``, with which SQLite finds no index."""
        return self


@compiles(among)
def _in_list(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, values = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} IN {values}"


@compiles(among, "sqlite")
def _from_json(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, values = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({values}))"  # nosec B608  # compiled clauses, no values


@compiles(among, "postgresql")
def _in_array(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, values = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} = ANY({values})"
