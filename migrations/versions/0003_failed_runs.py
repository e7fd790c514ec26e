"""What a run came from, an index that finds failed runs whatever the size of the log, and how wrong a node's clock is.

Revision: 0003, after 0002. Add-only: a 2.4 Java admin still works on the same database. `failed` is computed by the database
itself, so it is true for rows others write. On PostgreSQL the new column rewrites `xxl_job_log` once: on a log of millions of
rows that takes minutes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

LOG, NODE = "xxl_job_log", "xxl_job_node"
#: spec/scheduling.md, 6.2: a run is failed when its sending failed or its result is neither open nor a success
FAILED = "CASE WHEN trigger_code NOT IN (0, 200) OR handle_code NOT IN (0, 200) THEN 1 ELSE 0 END"
#: (name, columns, rows it holds where a database can leave others out)
INDEXES = [
    ("ix_xxl_job_log_failed", ["failed", "trigger_time"], "failed = 1"),
    ("ix_xxl_job_log_source", ["source_log_id"], "source_log_id IS NOT NULL"),
]


def upgrade() -> None:
    """Add what is missing."""
    stored = True if op.get_bind().dialect.name == "postgresql" else None
    added: list[tuple[str, sa.Column[object]]] = [
        (LOG, sa.Column("trigger_type", sa.String(20))),
        (LOG, sa.Column("source_log_id", sa.BigInteger())),
        (LOG, sa.Column("failed", sa.SmallInteger(), sa.Computed(FAILED, persisted=stored))),
        (NODE, sa.Column("skew_ms", sa.BigInteger(), nullable=False, server_default="0")),
    ]
    present = {
        (table, column["name"])
        for table in (LOG, NODE)
        for column in sa.inspect(op.get_bind()).get_columns(table)
    }
    for table, column in added:
        if (table, column.name) not in present:
            op.add_column(table, column)
    names = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(LOG)}
    for name, indexed, held in INDEXES:
        if name not in names:
            op.create_index(name, LOG, indexed, sqlite_where=sa.text(held), postgresql_where=sa.text(held))


def downgrade() -> None:
    """Not offered: a backup is the way back."""
    raise NotImplementedError
