"""Conditions that keep a planner away from an index which only seems to be the right one.

The log's `handle_code` has three values and a million rows: planners take a third of the rows for each value, and look for the few
runs under way by their time or their group, or for the many that succeeded by their result. Both read hundreds of thousands of rows.
"""

from typing import Any

from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class _Unindexed(FunctionElement[Any]):
    """A column as no index knows it, on some databases; the column itself on the others."""

    def __init__(self, column: InstrumentedAttribute[Any]) -> None:
        super().__init__(column)
        self.type = column.type


class unindexed_on_sqlite(_Unindexed):  # noqa: N801 a function, as SQLAlchemy's own
    """On SQLite no index is used for this column; servers count how often a value occurs, and need no help."""

    inherit_cache = True


class unindexed_on_mysql(_Unindexed):  # noqa: N801 a function, as SQLAlchemy's own
    """On SQLite, MySQL and MariaDB no index is used for this column."""

    inherit_cache = True


@compiles(_Unindexed)
def _as_it_is(element: _Unindexed, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(_Unindexed, "sqlite")
def _with_a_plus(element: _Unindexed, compiler: SQLCompiler, **options: Any) -> str:
    return f"+{compiler.process(element.clauses, **options)}"


@compiles(unindexed_on_mysql, "mysql", "mariadb")
def _coalesced(element: _Unindexed, compiler: SQLCompiler, **options: Any) -> str:
    column = compiler.process(element.clauses, **options)
    return f"coalesce({column}, {column})"
