"""Statements as a database driver takes them: text and parameters, made once.

They are handed to the driver directly by ``app.single`` and ``app.store.driver``.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Delete, Dialect, Select, Update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import ReturningDelete

Statement = Select[Any] | Delete | ReturningDelete[Any] | Update


class Written(NamedTuple):
    """A statement for the driver."""

    sql: str
    #: names, each with its constant and the conversion of what is given; in order if the driver counts them
    parameters: Sequence[tuple[str, Any, Callable[[Any], Any] | None]]
    #: whether the driver takes the parameters by name
    is_named: bool
    #: of columns that are neither texts nor numbers, by their index
    conversions: Sequence[tuple[int, Callable[[Any], Any]]]

    def values(self, given: Mapping[str, Any]) -> Sequence[Any] | Mapping[str, Any]:
        """Return the parameters for the driver: those given, constants for the rest."""
        values = tuple(
            constant if name not in given else given[name] if convert is None else convert(given[name])
            for name, constant, convert in self.parameters
        )
        return (
            {each[0]: value for each, value in zip(self.parameters, values, strict=True)}
            if self.is_named
            else values
        )

    def converted(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """Return rows of the driver with the values of Python."""
        for index, convert in self.conversions:
            rows = [(*row[:index], convert(row[index]), *row[index + 1 :]) for row in rows]
        return rows


@cache
def written(statement: Statement, dialect: Dialect) -> Written:
    """Return a statement made once, with ``bindparam`` for what changes; a constant IN has its values."""
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    if compiled.post_compile_params and isinstance(statement, Select):
        filled = statement.params({bind.key: None for bind in compiled.binds.values() if bind.required})
        compiled = filled.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
        assert isinstance(compiled, SQLCompiler)
    columns = () if isinstance(statement, Delete | Update) else tuple(statement.exported_columns)
    found = [column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns]
    conversions = [(index, convert) for index, convert in enumerate(found) if convert is not None]
    names = compiled.positiontup if compiled.positional else list(compiled.params)
    parameters = [_parameter(compiled, name, dialect) for name in names or ()]
    return Written(compiled.string, parameters, not compiled.positional, conversions)


def _parameter(
    compiled: SQLCompiler, name: str, dialect: Dialect
) -> tuple[str, Any, Callable[[Any], Any] | None]:
    constant, bind = compiled.params[name], compiled.binds.get(name)
    convert = bind.type.dialect_impl(dialect).bind_processor(dialect) if bind is not None else None
    return name, constant.value if isinstance(constant, Enum) else constant, convert


def error_of(exc: Any, sql: str, connection: Any, dialect: Dialect) -> DBAPIError:
    """Return an error of the driver as SQLAlchemy's; the caller drops a connection that is lost."""
    kinds = dialect.loaded_dbapi.Error
    is_lost = dialect.is_disconnect(exc, connection, None)
    error = DBAPIError.instance(sql, None, exc, kinds, dialect=dialect, connection_invalidated=is_lost)
    assert isinstance(error, DBAPIError)
    return error
