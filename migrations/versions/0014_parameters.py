"""Parameters that are filled in: logical times, what was sent, variables and secrets, longer parameters.

Revision: 0014_parameters, after 0013_copied_texts. Adds columns, tables and indexes of the models, and
widens the parameter of job and run where it is a shorter VARCHAR, which servers do in place.
Each step checks what is present, so that an interrupted upgrade can be repeated.
"""

import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014_parameters"
down_revision = "0013_copied_texts"

PARAMETER, LENGTH = "executor_param", 2_048
#: tables with a parameter that is widened
WIDENED = ("xxl_job_info", "xxl_job_log")
#: table -> columns it gets
ADDED = {
    "xxl_job_info": ("fill_parameter",),
    "xxl_job_log": ("logical_ms", "param_form", "filled_param"),
    "xxl_job_fire": ("logical_ms", "param_form"),
}
CREATED = ("xxl_job_variable", "xxl_job_variable_version")
#: of the column in SHOW CREATE TABLE what stands behind its type, such as collation, default and comment
DEFINITION = re.compile(rf"^  [`\"]{PARAMETER}[`\"] varchar\(\d+\)(.*?),?$", re.MULTILINE)


def upgrade() -> None:
    """Add what is missing and widen what is too short."""
    connection = op.get_bind()
    tables = copied_tables()
    for name in CREATED:
        if not sa.inspect(connection).has_table(name):
            op.execute(sa.schema.CreateTable(tables[name]))
        present = {index["name"] for index in sa.inspect(connection).get_indexes(name)}
        for index in sorted(tables[name].indexes, key=lambda index: str(index.name)):
            if index.name not in present:
                op.execute(sa.schema.CreateIndex(index))
    for name, columns in ADDED.items():
        present = {column["name"] for column in sa.inspect(connection).get_columns(name)}
        for column in columns:
            if column not in present:
                op.add_column(name, tables[name].c[column])
    for name in WIDENED:
        widen(name)


def copied_tables() -> dict[str, sa.Table]:
    """Return name -> table of the models, with the options that 0011_own_schema gives its tables."""
    models = op.get_context().opts["target_metadata"]
    copies = sa.MetaData(naming_convention=models.naming_convention)
    for name in (*CREATED, *ADDED):
        table = models.tables[name].to_metadata(copies)
        table.dialect_kwargs.update(
            {"mysql_charset": "utf8mb4", "mysql_engine": "InnoDB", "sqlite_autoincrement": True}
        )
    return dict(copies.tables)


def widen(table: str) -> None:
    """Widen the parameter of a table, unless it is a TEXT or long enough; anything else of it is kept.

    SQLite has no limit of a text, and would copy the table.
    """
    dialect = op.get_bind().dialect.name
    columns: dict[str, Any] = {each["name"]: each for each in sa.inspect(op.get_bind()).get_columns(table)}
    kind = columns[PARAMETER]["type"]
    if dialect == "sqlite" or not isinstance(kind, sa.VARCHAR) or not kind.length or kind.length >= LENGTH:
        return
    if dialect == "postgresql":
        op.alter_column(table, PARAMETER, existing_type=kind, type_=sa.String(LENGTH))
        return
    (_, created) = op.get_bind().exec_driver_sql(f"SHOW CREATE TABLE {table}").one()
    (rest,) = DEFINITION.findall(created)
    statement = f"ALTER TABLE {table} MODIFY COLUMN `{PARAMETER}` varchar({LENGTH}){rest}"
    op.get_bind().exec_driver_sql(statement.replace("%", "%%"))
