"""Own schema: the tables, columns and indexes of the models that a database lacks.

Revision: 0011_own_schema, after 0001. Completes new databases, those of XXL-JOB 2.2 and later, and those of
the revisions it replaces. A Java admin of 2.3 or later can still use the database.
Each step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
On PostgreSQL the column `failed` rewrites `xxl_job_log` once; a log of millions of rows takes minutes.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011_own_schema"
down_revision = "0001"
#: revisions before the first release that this one replaces; the last of them has the same schema
REPLACES = (
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0002_own_schema",
    "0003_first_release",
    "0004_tasks",
    "0005_security",
    "0006_console",
    "0007_scans",
    "0008_handlers",
    "0009_api",
    "0010_reports",
    "0011_node_zone",
)

#: SQLite: never reuse an id, not even that of the newest row after its deletion
TABLE_OPTIONS = {"mysql_charset": "utf8mb4", "mysql_engine": "InnoDB", "sqlite_autoincrement": True}
JOB, LOG, GROUP, REGISTRY = "xxl_job_info", "xxl_job_log", "xxl_job_group", "xxl_job_registry"
LAST_SEEN = "xxl_job_last_seen"
#: (table, old name, new name) of columns of epoch milliseconds
RENAMED = [(LAST_SEEN, "seen_ms", "last_seen_ms"), ("xxl_job_session", "seen_ms", "last_seen_ms")]
#: (table, column): widened in an adopted or earlier database that has it shorter
WIDENED = [("xxl_job_user", "password"), (GROUP, "title"), (GROUP, "address_list"), (GROUP, "access_token")]
#: (table, column): compared by code point; on MySQL and MariaDB ``A`` and ``a`` were the same executor group
EXACT = [
    (REGISTRY, "registry_group"),
    (REGISTRY, "registry_key"),
    (REGISTRY, "registry_value"),
    (GROUP, "app_name"),
]
#: (name, table) of indexes that others have replaced
OLD_INDEXES = [("ix_xxl_job_log_failed", LOG), ("ux_xxl_job_seen", LAST_SEEN)]
#: the cron column of XXL-JOB before 2.3
OLD_CRON = "job_cron"
#: tables of old servers, whose row format allows 191 characters in an index, and few long texts in a row
COMPACT_TABLES = """
    SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()
    AND table_name IN ('xxl_job_registry', 'xxl_job_user', 'xxl_job_info')
    AND row_format IN ('Compact', 'Redundant')
"""


def upgrade() -> None:
    """Add whatever is missing."""
    connection = op.get_bind()
    on_mysql = connection.dialect.name in ("mysql", "mariadb")
    tables = tables_of_models()
    rename()
    for table in tables.values():
        if not sa.inspect(connection).has_table(table.name):
            op.execute(sa.schema.CreateTable(table))
    if on_mysql:
        for name in connection.scalars(sa.text(COMPACT_TABLES)).all():
            op.execute(f"ALTER TABLE {name} ROW_FORMAT = DYNAMIC")
    make_registry_unique()
    for name, column in WIDENED:
        widen(tables[name].c[column])
    for name, column in EXACT if on_mysql else ():
        alter_column(name, column, columns_of(name)[column], type_=tables[name].c[column].type)
    for table in tables.values():
        complete(table)
    for name, indexed in OLD_INDEXES:
        if name in indexes_of(indexed):
            op.drop_index(name, indexed)
    if sa.inspect(connection).has_table("xxl_job_once"):
        op.drop_table("xxl_job_once")
    convert_crons()
    lock = tables["xxl_job_lock"]
    if connection.execute(sa.select(lock)).first() is None:
        op.bulk_insert(lock, [{"lock_name": "schedule_lock"}])


def tables_of_models() -> dict[str, sa.Table]:
    """Return name -> table of the models, with the options that would load every dialect in all processes."""
    models = op.get_context().opts["target_metadata"]
    copies = sa.MetaData(naming_convention=models.naming_convention)
    for model in models.sorted_tables:
        table = model.to_metadata(copies)
        table.dialect_kwargs.update(TABLE_OPTIONS)
        for index in table.indexes:
            if "sqlite_where" in index.dialect_kwargs:
                index.dialect_kwargs["postgresql_where"] = index.dialect_kwargs["sqlite_where"]
    return dict(copies.tables)


def complete(table: sa.Table) -> None:
    """Add the columns that a table lacks, and its indexes."""
    present = columns_of(table.name)
    for column in table.columns:
        if column.name not in present:
            op.add_column(table.name, column)
    indexes = {str(name).lower() for name in indexes_of(table.name)}
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        if str(index.name).lower() not in indexes:
            op.execute(sa.schema.CreateIndex(index))


def columns_of(table: str) -> dict[str, Any]:
    """Return the columns of a table by name."""
    return {column["name"]: column for column in sa.inspect(op.get_bind()).get_columns(table)}


def indexes_of(table: str) -> dict[str | None, bool]:
    """Return index name -> whether it is unique."""
    return {index["name"]: index["unique"] for index in sa.inspect(op.get_bind()).get_indexes(table)}


def rename() -> None:
    """Rename the table of former executors, and columns; on SQLite without Alembic's copy of the table."""
    inspector = sa.inspect(op.get_bind())
    if inspector.has_table("xxl_job_seen") and not inspector.has_table(LAST_SEEN):
        op.rename_table("xxl_job_seen", LAST_SEEN)
    for table, old, new in RENAMED:
        if not sa.inspect(op.get_bind()).has_table(table) or old not in columns_of(table):
            continue
        if op.get_bind().dialect.name == "sqlite":
            op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
        else:
            existing: dict[str, Any] = {"existing_type": sa.BigInteger(), "existing_nullable": False}
            op.alter_column(table, old, new_column_name=new, **existing)


def widen(column: sa.Column[Any]) -> None:
    """Widen a column that is narrower in the database."""
    table = column.table.name
    present = columns_of(table).get(column.name)
    if present is None:
        return
    kinds = (present["type"], column.type.dialect_impl(op.get_bind().dialect))
    length, full_length = (getattr(kind, "length", None) for kind in kinds)
    if length is not None and (full_length is None or length < full_length):
        alter_column(table, column.name, present, type_=column.type)


def alter_column(table: str, name: str, present: dict[str, Any], **changes: Any) -> None:
    """Alter a column; anything not in ``changes`` is kept."""
    with op.batch_alter_table(table) as batch:
        batch.alter_column(
            name, **{"existing_type": present["type"], "existing_nullable": present["nullable"], **changes}
        )


def make_registry_unique() -> None:
    """Make the index of XXL-JOB before 2.5 unique; of equal rows the last one is kept."""
    name, columns = "i_g_k_v", ["registry_group", "registry_key", "registry_value"]
    indexes = indexes_of(REGISTRY)
    if indexes.get(name):
        return
    table = sa.table(
        REGISTRY, sa.column("id", sa.BigInteger), *(sa.column(name, sa.String) for name in columns)
    )
    keys = [table.c[column] for column in columns]
    newest = sa.select(sa.func.max(table.c.id).label("id")).group_by(*keys).subquery()
    op.execute(sa.delete(table).where(table.c.id.not_in(sa.select(newest.c.id))))
    if name in indexes:
        op.drop_index(name, REGISTRY)
    op.create_index(name, REGISTRY, columns, unique=True)


def convert_crons() -> None:
    """Convert the crons of XXL-JOB before 2.3 to schedules, once: afterwards the old column is nullable."""
    cron = columns_of(JOB).get(OLD_CRON)
    if cron is None or cron["nullable"]:
        return
    names = (OLD_CRON, "schedule_type", "schedule_conf")
    job = sa.table(JOB, *(sa.column(name, sa.String) for name in names))
    unscheduled = (job.c.schedule_type == "NONE", job.c.schedule_conf.is_(None), job.c.job_cron != "")
    op.execute(sa.update(job).where(*unscheduled).values(schedule_type="CRON", schedule_conf=job.c.job_cron))
    alter_column(JOB, OLD_CRON, cron, nullable=True)
