"""Duration in milliseconds and kills of runs; alarm channels of their own.

Revision: 0006_console, after 0005_security. Changes are additions only.
Each step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006_console"
down_revision = "0005_security"

TABLE_OPTIONS = {"mysql_charset": "utf8mb4", "mysql_engine": "InnoDB"}


def number(name: str, kind: type[sa.types.TypeEngine[int]] = sa.Integer) -> sa.Column[int]:
    """Return a column of a number that is never null."""
    return sa.Column(name, kind(), nullable=False, server_default="0")


def primary_key() -> sa.Column[int]:
    """Return the id column."""
    return sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True)


COLUMNS: dict[str, list[sa.Column[object]]] = {
    "xxl_job_log": [sa.Column("duration_ms", sa.BigInteger()), number("killed", sa.SmallInteger)],
}
TABLES: dict[str, list[sa.Column[object]]] = {
    "xxl_job_channel": [
        primary_key(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("settings", sa.Text().with_variant(sa.String(255), "sqlite"), nullable=False),
        number("for_all", sa.SmallInteger),
        number("updated_ms", sa.BigInteger),
    ],
    "xxl_job_channel_scope": [
        primary_key(),
        sa.Column("channel_id", sa.Integer(), nullable=False),
        number("group_id"),
        number("job_id"),
    ],
}
#: (name, table, columns, unique)
INDEXES = [
    ("ux_xxl_job_channel_name", "xxl_job_channel", ["name"], True),
    ("ux_xxl_job_channel_scope", "xxl_job_channel_scope", ["channel_id", "group_id", "job_id"], True),
]


def upgrade() -> None:
    """Add what is missing."""
    inspector = sa.inspect(op.get_bind())
    for table, columns in COLUMNS.items():
        present = {column["name"] for column in inspector.get_columns(table)}
        for column in columns:
            if column.name not in present:
                op.add_column(table, column)
    for table, columns in TABLES.items():
        if not inspector.has_table(table):
            op.create_table(table, *columns, **TABLE_OPTIONS)
    for name, table, keys, unique in INDEXES:
        if name not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}:
            op.create_index(name, table, keys, unique=unique)
