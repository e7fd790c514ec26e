"""The runs of each executor group by day, for the charts of users who see some groups only.

Revision: 0006, after 0005. Add-only; the days that are there already are counted by the workers, some at a time.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

GROUP_DAY = "xxl_job_group_day"
INDEX = "ux_xxl_job_group_day"
COUNTS = ("running_count", "suc_count", "fail_count")


def upgrade() -> None:
    """Add what is missing: databases that commit each statement by itself can run a broken-off upgrade again."""
    if not sa.inspect(op.get_bind()).has_table(GROUP_DAY):
        op.create_table(
            GROUP_DAY,
            sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
            sa.Column("trigger_day", sa.BigInteger(), nullable=False),
            sa.Column("job_group", sa.Integer(), nullable=False),
            *(sa.Column(name, sa.Integer(), nullable=False, server_default="0") for name in COUNTS),
            mysql_charset="utf8mb4",
            mysql_engine="InnoDB",
            sqlite_autoincrement=True,
        )
    if INDEX not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(GROUP_DAY)}:
        op.create_index(INDEX, GROUP_DAY, ["trigger_day", "job_group"], unique=True)


def downgrade() -> None:
    """Not offered: a backup is the way back."""
    raise NotImplementedError
