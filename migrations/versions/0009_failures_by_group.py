"""An index that finds the failed runs of some groups or of a job without reading those of the others.

Revision: 0009, after 0008. It takes the place of 0003's: the same rows in the same order, with the group and the job beside them.
The table is not changed; building the index reads it once.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

LOG = "xxl_job_log"
OLD, NEW = "ix_xxl_job_log_failed", "ix_xxl_job_log_failures"
COLUMNS = ["failed", "trigger_time", "id", "job_group", "job_id"]
#: the rows it holds where a database can leave others out
HELD = sa.text("failed = 1")


def upgrade() -> None:
    """Make the new index before the old one goes; a broken-off upgrade can be run again."""
    names = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(LOG)}
    if NEW not in names:
        op.create_index(NEW, LOG, COLUMNS, sqlite_where=HELD, postgresql_where=HELD)
    if OLD in names:
        op.drop_index(OLD, LOG)


def downgrade() -> None:
    """Not offered: a backup is the way back."""
    raise NotImplementedError
