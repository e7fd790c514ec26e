"""Handlers that executors announce with their registration.

Revision: 0008_handlers, after 0007_scans. Changes are additions only.
Each step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008_handlers"
down_revision = "0007_scans"


def upgrade() -> None:
    """Add what is missing."""
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("xxl_job_registry")}
    if "handlers" not in present:
        op.add_column("xxl_job_registry", sa.Column("handlers", sa.Text()))
