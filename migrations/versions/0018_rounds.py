"""Rounds: which jobs run after which, what has arrived, and the chains that users trigger.

Revision: 0018_rounds, after 0017_limits. Adds tables, columns and indexes of the models. Each
step checks what is present, so that an interrupted upgrade can be repeated.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018_rounds"
down_revision = "0017_limits"

CREATED = ("xxl_job_after", "xxl_job_round", "xxl_job_arrival")
#: table -> columns it gets
ADDED = {
    "xxl_job_info": ("runs_after", "has_followers"),
    "xxl_job_fire": ("chain", "round_id"),
    "xxl_job_log": ("chain", "round_id"),
    "xxl_job_skip": ("round_id",),
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
