"""Calendars and blackouts: on which days schedules run, and when they must not.

Revision: 0019_calendars, after 0018_rounds. Adds tables, columns and indexes of the models. Each
step checks what is present, so that an interrupted upgrade can be repeated.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019_calendars"
down_revision = "0018_rounds"

CREATED = (
    "xxl_job_calendar",
    "xxl_job_calendar_version",
    "xxl_job_blackout",
    "xxl_job_blackout_job",
    "xxl_job_rule_change",
)
#: table -> columns it gets
ADDED = {
    "xxl_job_info": ("calendar",),
    "xxl_job_span": ("calendar", "explained_ms"),
    "xxl_job_day": ("excluded",),
}
INDEXED = CREATED


#: jobs of an old server, whose row format has no room for further texts
COMPACT_JOBS = """
    SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()
    AND table_name = 'xxl_job_info' AND row_format IN ('Compact', 'Redundant')
"""


def upgrade() -> None:
    """Add what is missing."""
    connection = op.get_bind()
    if connection.dialect.name in ("mysql", "mariadb") and connection.scalar(sa.text(COMPACT_JOBS)):
        op.execute("ALTER TABLE xxl_job_info ROW_FORMAT = DYNAMIC")
    tables = copied_tables()
    for name in CREATED:
        if not sa.inspect(connection).has_table(name):
            op.execute(sa.schema.CreateTable(tables[name]))
    for name, columns in ADDED.items():
        present = {column["name"] for column in sa.inspect(connection).get_columns(name)}
        for column in columns:
            if column not in present:
                op.add_column(name, tables[name].c[column])
    for name in INDEXED:
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
