"""Values of one parameter: ``column IN (…)`` whose text does not depend on how many values there are.

SQLAlchemy writes a statement with IN anew for every list, and the database then plans it anew. So the list is
one parameter, JSON on SQLite and an array on PostgreSQL; MySQL and MariaDB have no arrays and get the IN.
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

#: parameter of ``among``: numbers or texts
WANTED = "wanted"


class _List(UserDefinedType[Sequence[Any]]):
    """A list as one parameter."""

    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """Return the conversion for the driver."""
        return json.dumps if dialect.name == "sqlite" else list


class among(FunctionElement[bool]):  # noqa: N801 a function, as SQLAlchemy's own
    """The condition that a column has one of the values of the parameter WANTED.

    For statements that are made once: making one costs a small transaction as much as executing it.
    """

    inherit_cache = True

    def __init__(self, column: ColumnElement[Any] | InstrumentedAttribute[Any]) -> None:
        super().__init__(
            column, bindparam(WANTED, type_=_List()), column.in_(bindparam(WANTED, expanding=True))
        )
        self.type = Boolean()

    def self_group(self, against: OperatorType | None = None) -> Self:
        """Return itself: SQLAlchemy would add ``= 1``, with which SQLite finds no index."""
        return self


@compiles(among)
def _expanded(element: among, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses.clauses[2], **options)


@compiles(among, "sqlite")
def _from_json(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, wanted = (compiler.process(clause, **options) for clause in element.clauses.clauses[:2])
    return f"{column} IN (SELECT value FROM json_each({wanted}))"


@compiles(among, "postgresql")
def _in_array(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, wanted = (compiler.process(clause, **options) for clause in element.clauses.clauses[:2])
    return f"{column} = ANY({wanted})"
