"""When executors were last there, and what forms have asked for already.

Revision: 0008, after 0007. Two small tables of our own; the original's are not touched, and a Java admin never reads them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

#: SQLite: an id is never given twice, not even after the newest row was deleted
TABLE_OPTIONS = {"mysql_charset": "utf8mb4", "mysql_engine": "InnoDB", "sqlite_autoincrement": True}
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
#: only the same values are equal, on MySQL too
EXACT = sa.String(255).with_variant(sa.String(255, collation="utf8mb4_bin"), "mysql", "mariadb")


def primary_key() -> sa.Column[int]:
    """Return the id column."""
    return sa.Column("id", BIG_ID, primary_key=True, autoincrement=True)


TABLES: dict[str, list[sa.Column[object]]] = {
    "xxl_job_seen": [
        primary_key(),
        sa.Column("app_name", EXACT, nullable=False),
        sa.Column("address", EXACT, nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.Column("capabilities", sa.String(255), nullable=False, server_default=""),
    ],
    "xxl_job_once": [
        primary_key(),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("done_ms", sa.BigInteger(), nullable=False),
    ],
}
#: (name, table, columns); no two rows may have the same
INDEXES = [
    ("ux_xxl_job_seen", "xxl_job_seen", ["app_name", "address"]),
    ("ux_xxl_job_once", "xxl_job_once", ["name"]),
]


def upgrade() -> None:
    """Add what is missing: databases that commit each statement by itself can run a broken-off upgrade again."""
    present = set(sa.inspect(op.get_bind()).get_table_names())
    for name, columns in TABLES.items():
        if name not in present:
            op.create_table(name, *columns, **TABLE_OPTIONS)
    for name, table, columns in INDEXES:
        if name not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}:
            op.create_index(name, table, columns, unique=True)


def downgrade() -> None:
    """Not offered: a backup is the way back."""
    raise NotImplementedError
