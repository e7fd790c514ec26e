"""Exact texts: by the collations of MySQL and MariaDB ``a`` equals ``A``, and a blank at the end is none."""

from typing import Any

from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class exact(FunctionElement[Any]):  # noqa: N801 a function, as SQLAlchemy's own
    """A column of texts, to group by: each text is a group of its own on every database."""

    inherit_cache = True

    def __init__(self, column: InstrumentedAttribute[str]) -> None:
        super().__init__(column)
        self.type = column.type


@compiles(exact)
def _plain(element: exact, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(exact, "mysql", "mariadb")
def _bytes(element: exact, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **options)} AS BINARY)"
