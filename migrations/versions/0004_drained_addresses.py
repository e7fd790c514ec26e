"""Addresses of executor groups that get no new runs.

Revision: 0004, after 0003. Add-only: a 2.4 Java admin on the same database works as before, and knows nothing of drained addresses.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

DRAIN = "xxl_job_drain"
INDEX = "ux_xxl_job_drain"


def upgrade() -> None:
    """Add what is missing: databases that commit each statement by itself can run a broken-off upgrade again."""
    if not sa.inspect(op.get_bind()).has_table(DRAIN):
        op.create_table(
            DRAIN,
            sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
            sa.Column("group_id", sa.Integer(), nullable=False),
            sa.Column("address", sa.String(255), nullable=False),
            sa.Column("since_ms", sa.BigInteger(), nullable=False),
            sa.Column("username", sa.String(64), nullable=False, server_default=""),
            mysql_charset="utf8mb4",
            mysql_engine="InnoDB",
            sqlite_autoincrement=True,
        )
    if INDEX not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(DRAIN)}:
        op.create_index(INDEX, DRAIN, ["group_id", "address"], unique=True)


def downgrade() -> None:
    """Not offered: a backup is the way back."""
    raise NotImplementedError
