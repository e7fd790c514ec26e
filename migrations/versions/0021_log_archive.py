"""Log archive, and how long runs and archived logs are kept, by job and group.

Revision: 0021_log_archive, after 0020_backfills. Adds tables, columns and indexes of the models. Each
step checks what is present, so that an interrupted upgrade can be repeated. A database that has jobs
archives nothing until that is set; a new one archives the logs of runs that fail.
"""

import sqlalchemy as sa
from alembic import op

revision = "0021_log_archive"
down_revision = "0020_backfills"

CREATED = ("xxl_job_log_archive", "xxl_job_log_archive_day", "xxl_job_setting")
#: table -> columns it gets
ADDED = {
    "xxl_job_info": ("log_archive", "log_days", "run_days"),
    "xxl_job_group": ("log_archive", "log_days", "run_days"),
}
NAME = "log_archive"


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
    _choose_default(connection, tables)


def _choose_default(connection: sa.Connection, tables: dict[str, sa.Table]) -> None:
    settings, jobs = tables["xxl_job_setting"], tables["xxl_job_info"]
    if connection.scalar(sa.select(settings.c.id).where(settings.c.name == NAME)) is not None:
        return
    has_jobs = connection.scalar(sa.select(jobs.c.id).limit(1)) is not None
    value = "off" if has_jobs else "failed"
    connection.execute(sa.insert(settings).values(name=NAME, value=value))


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
