"""What our executors report besides results: schemas of handlers, checkpoints and progress of runs.

Revision: 0010_reports, after 0009_api. Changes are additions only.
Each step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010_reports"
down_revision = "0009_api"

#: table -> its new columns, all without a value at first
COLUMNS = {
    "xxl_job_registry": {"schemas": sa.Text()},
    "xxl_job_log": {"checkpoint": sa.Text(), "progress": sa.Text()},
    "xxl_job_fire": {"repeats_log_id": sa.BigInteger()},
}


def upgrade() -> None:
    """Add what is missing."""
    inspector = sa.inspect(op.get_bind())
    for table, columns in COLUMNS.items():
        present = {column["name"] for column in inspector.get_columns(table)}
        for name, kind in columns.items():
            if name not in present:
                op.add_column(table, sa.Column(name, kind))
