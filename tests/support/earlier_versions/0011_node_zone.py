"""The time zone of each node: nodes of one database must agree on it.

Revision: 0011_node_zone, after 0010_reports. Changes are additions only.
The step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011_node_zone"
down_revision = "0010_reports"


def upgrade() -> None:
    """Add the column if it is missing; nodes of an earlier version do not write it."""
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("xxl_job_node")}
    if "time_zone" not in present:
        zone = sa.Column("time_zone", sa.String(64), nullable=False, server_default="")
        op.add_column("xxl_job_node", zone)
