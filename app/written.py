"""Statements as SQLite's driver takes them: text and parameters, made once.

They are handed to the driver directly by ``app.single`` and ``app.store.driver``.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Delete, Select, Update
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import ReturningDelete

Statement = Select[Any] | Delete | ReturningDelete[Any] | Update
DIALECT = SQLiteDialect()


class Written(NamedTuple):
    """A statement for the driver."""

    sql: str
    #: names in order, each with its constant
    parameters: Sequence[tuple[str, Any]]
    #: of columns that are neither texts nor numbers, by their index
    conversions: Sequence[tuple[int, Callable[[Any], Any]]]

    def values(self, given: Mapping[str, Any]) -> list[Any]:
        """Return the parameters in order: those given, constants for the rest."""
        return [given.get(name, constant) for name, constant in self.parameters]


@cache
def written(statement: Statement) -> Written:
    """Return a statement made once, with ``bindparam`` for what changes; a constant IN has its values."""
    compiled = statement.compile(dialect=DIALECT)
    assert isinstance(compiled, SQLCompiler)
    if compiled.post_compile_params and isinstance(statement, Select):
        filled = statement.params({bind.key: None for bind in compiled.binds.values() if bind.required})
        compiled = filled.compile(dialect=DIALECT, compile_kwargs={"render_postcompile": True})
        assert isinstance(compiled, SQLCompiler)
    columns = () if isinstance(statement, Delete | Update) else tuple(statement.exported_columns)
    found = [column.type.dialect_impl(DIALECT).result_processor(DIALECT, None) for column in columns]
    conversions = [(index, convert) for index, convert in enumerate(found) if convert is not None]
    parameters = [(name, compiled.params[name]) for name in compiled.positiontup or ()]
    return Written(compiled.string, parameters, conversions)
