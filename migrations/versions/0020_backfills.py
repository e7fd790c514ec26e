"""Backfills, and the misfire strategy that runs all missed instants.

Revision: 0020_backfills, after 0019_calendars. Adds tables, columns and indexes of the models. Each
step checks what is present, so that an interrupted upgrade can be repeated.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020_backfills"
down_revision = "0019_calendars"

CREATED = ("xxl_job_backfill", "xxl_job_backfill_instant")
#: table -> columns it gets
ADDED = {"xxl_job_info": ("misfire_max", "misfire_max_age_s")}


def upgrade() -> None:
    """Add what is missing."""
    connection = op.get_bind()
    tables = copied_tables()
    for name in CREATED:
        if not sa.inspect(connection).has_table(name):
            op.execute(sa.schema.CreateTable(tables[name]))
    for name, columns in ADDED.items():
        present = {column["name"] for column in sa.inspect(connection).get_columns(name)}
        for column in columns:
            if column not in present:
                op.add_column(name, tables[name].c[column])
    for name in CREATED:
        present = {index["name"] for index in sa.inspect(connection).get_indexes(name)}
        for index in sorted(tables[name].indexes, key=lambda index: str(index.name)):
            if index.name not in present:
                op.execute(sa.schema.CreateIndex(index))


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
