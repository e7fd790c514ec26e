"""Planner hints: expressions that keep the database from using an index that only seems right.

The log's `handle_code` has three values in a million rows. Planners assume a third of the rows for each, so
they find the few running runs by time or group, and the many successful ones by result. Both read hundreds of
thousands of rows. PostgreSQL knows how few run, but takes them to be spread over the log: it reads that from
the wrong end.
"""

from typing import Any

from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class _UnindexedColumn(FunctionElement[Any]):
    """A column wrapped so that some databases use no index for it; the plain column on the others."""

    def __init__(self, column: InstrumentedAttribute[Any]) -> None:
        super().__init__(column)
        self.type = column.type


class unindexed_on_sqlite(_UnindexedColumn):  # noqa: N801 a function, as SQLAlchemy's own
    """SQLite uses no index for this column; the servers have statistics on its values and need no hint."""

    inherit_cache = True


class unindexed_but_on_mysql(_UnindexedColumn):  # noqa: N801 a function, as SQLAlchemy's own
    """SQLite and PostgreSQL use no index for this column."""

    inherit_cache = True


class unindexed_on_postgresql(_UnindexedColumn):  # noqa: N801 a function, as SQLAlchemy's own
    """PostgreSQL uses no index for this column."""

    inherit_cache = True


class unindexed_on_mysql(_UnindexedColumn):  # noqa: N801 a function, as SQLAlchemy's own
    """SQLite, MySQL and MariaDB use no index for this column."""

    inherit_cache = True


@compiles(_UnindexedColumn)
def _compile_plain(element: _UnindexedColumn, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(_UnindexedColumn, "sqlite")
def _with_plus(element: _UnindexedColumn, compiler: SQLCompiler, **options: Any) -> str:
    return f"+{compiler.process(element.clauses, **options)}"


compiles(unindexed_on_postgresql, "sqlite")(_compile_plain)


@compiles(unindexed_on_postgresql, "postgresql")
@compiles(unindexed_but_on_mysql, "postgresql")
@compiles(unindexed_on_mysql, "mysql", "mariadb")
def _compile_coalesce(element: _UnindexedColumn, compiler: SQLCompiler, **options: Any) -> str:
    column = compiler.process(element.clauses, **options)
    return f"coalesce({column}, {column})"
