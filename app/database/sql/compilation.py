"""Precompiled statements: SQL text and parameter order, cached per dialect.

``app.database.driver`` executes them, for ``app.database.single_statement`` and ``app.database.sql.direct``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import CompoundSelect, Delete, Dialect, Select, Update
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.dml import ReturningDelete

Statement = Select[Any] | CompoundSelect[Any] | Delete | ReturningDelete[Any] | Update


class CompiledStatement(NamedTuple):
    """Statement for the driver: text and parameter order."""

    sql: str
    #: names of all parameters, in the order of their marks
    names: Sequence[str]
    #: whether the driver takes the parameters by name
    is_named: bool
    #: values of parameters that are part of the statement, by name
    constants: Mapping[str, Any]
    #: encoders of parameters that the driver does not accept as they are, by name
    encoders: Sequence[tuple[str, Callable[[Any], Any]]]
    #: conversions of columns that are neither texts nor numbers, by their index
    conversions: Sequence[tuple[int, Callable[[Any], Any]]]

    def values(self, parameters: Mapping[str, Any]) -> Sequence[Any] | Mapping[str, Any]:
        """Return all parameters for the driver; ``parameters`` must have all except the constants."""
        values = {**self.constants, **parameters}
        for name, encode in self.encoders:
            values[name] = encode(values[name])
        if self.is_named:
            return {name: values[name] for name in self.names}
        return tuple([values[name] for name in self.names])

    def to_python(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        """Return rows of the driver with the values of Python."""
        if not rows or not self.conversions:
            return rows
        columns = list[Iterable[Any]](zip(*rows, strict=True))
        for index, convert in self.conversions:
            columns[index] = map(convert, columns[index])
        return list(zip(*columns, strict=True))


@cache
def compile_statement(statement: Statement, dialect: Dialect) -> CompiledStatement:
    """Compile a statement with ``bindparam`` for its variable values; a SELECT may have a constant IN."""
    sql = _compile(statement, dialect)
    unset = {bind.key: None for bind in sql.binds.values() if bind.required}
    if sql.post_compile_params and isinstance(statement, Select | CompoundSelect):
        sql = _compile(statement.params(unset), dialect, render_postcompile=True)
    names = (sql.positiontup or []) if sql.positional else [*sql.params]
    constants = {name: value for name, value in sql.params.items() if name not in unset}
    columns = () if isinstance(statement, Delete | Update) else tuple(statement.exported_columns)
    processors = [column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns]
    return CompiledStatement(
        sql.string,
        names,
        not sql.positional,
        {name: value.value if isinstance(value, Enum) else value for name, value in constants.items()},
        [(name, encode) for name in {*names} if (encode := _encoder(sql, name, dialect))],
        [(index, convert) for index, convert in enumerate(processors) if convert is not None],
    )


def _compile(statement: Statement, dialect: Dialect, **options: bool) -> SQLCompiler:
    sql = statement.compile(dialect=dialect, compile_kwargs=options)
    assert isinstance(sql, SQLCompiler)
    return sql


def _encoder(sql: SQLCompiler, name: str, dialect: Dialect) -> Callable[[Any], Any] | None:
    bind = sql.binds.get(name)
    return bind.type.dialect_impl(dialect).bind_processor(dialect) if bind is not None else None
