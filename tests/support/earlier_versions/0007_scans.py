"""Time of the last scan of each node, so that every console knows whether jobs are fired.

Revision: 0007_scans, after 0006_console. Changes are additions only.
The step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007_scans"
down_revision = "0006_console"


def upgrade() -> None:
    """Add what is missing."""
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("xxl_job_node")}
    if "scanned_ms" not in present:
        op.add_column(
            "xxl_job_node", sa.Column("scanned_ms", sa.BigInteger(), nullable=False, server_default="0")
        )
