"""Jobs and executor groups whose alarms are muted, and which alarms a mute holds back.

Revision: 0007, after 0006. Add-only: one table of ours, and one column of our own table of alarms.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

MUTE, ALARM = "xxl_job_mute", "xxl_job_alarm"
#: (name, table, columns, whether no two rows may have the same)
INDEXES = [
    ("ux_xxl_job_mute", MUTE, ["job_id", "group_id"], True),
    ("ix_xxl_job_mute_due", MUTE, ["until_ms", "next_ms"], False),
    ("ix_xxl_job_alarm_mute", ALARM, ["mute_id", "job_id"], False),
]


def upgrade() -> None:
    """Add what is missing: databases that commit each statement by itself can run a broken-off upgrade again."""
    present = sa.inspect(op.get_bind())
    if not present.has_table(MUTE):
        op.create_table(
            MUTE,
            sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
            sa.Column("job_id", sa.Integer(), nullable=False, server_default="0"),
            sa.Column("group_id", sa.Integer(), nullable=False, server_default="0"),
            sa.Column("since_ms", sa.BigInteger(), nullable=False),
            sa.Column("until_ms", sa.BigInteger(), nullable=False),
            sa.Column("username", sa.String(64), nullable=False, server_default=""),
            sa.Column("reason", sa.String(200), nullable=False, server_default=""),
            sa.Column("attempts", sa.Integer(), nullable=False, server_default="0"),
            sa.Column("owner", sa.String(64), nullable=False, server_default=""),
            sa.Column("next_ms", sa.BigInteger(), nullable=False, server_default="0"),
            sa.Column("outcome", sa.Text(), nullable=True),
            mysql_charset="utf8mb4",
            mysql_engine="InnoDB",
            sqlite_autoincrement=True,
        )
    if "mute_id" not in {column["name"] for column in present.get_columns(ALARM)}:
        op.add_column(ALARM, sa.Column("mute_id", sa.Integer(), nullable=True))
    for name, table, columns, unique in INDEXES:
        if name not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}:
            op.create_index(name, table, columns, unique=unique)


def downgrade() -> None:
    """Not offered: a backup is the way back."""
    raise NotImplementedError
