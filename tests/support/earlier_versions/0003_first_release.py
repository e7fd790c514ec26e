"""First release: rename the table of former executors to `xxl_job_last_seen`.

Revision: 0003_first_release, after 0002_own_schema. Only tables of our own change.
Each step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003_first_release"
down_revision = "0002_own_schema"

OLD_TABLE, NEW_TABLE = "xxl_job_seen", "xxl_job_last_seen"
#: (table, old name, new name)
COLUMNS = [(NEW_TABLE, "seen_ms", "last_seen_ms"), ("xxl_job_session", "seen_ms", "last_seen_ms")]
OLD_INDEX, NEW_INDEX = "ux_xxl_job_seen", "ux_xxl_job_last_seen"


def upgrade() -> None:
    """Rename the table, its index and the columns."""
    if not sa.inspect(op.get_bind()).has_table(NEW_TABLE):
        op.rename_table(OLD_TABLE, NEW_TABLE)
    for table, old, new in COLUMNS:
        if old in {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}:
            rename_column(table, old, new)
    indexes = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(NEW_TABLE)}
    if NEW_INDEX not in indexes:
        op.create_index(NEW_INDEX, NEW_TABLE, ["app_name", "address"], unique=True)
    if OLD_INDEX in indexes:
        op.drop_index(OLD_INDEX, NEW_TABLE)


def rename_column(table: str, old: str, new: str) -> None:
    """Rename a column of epoch milliseconds; on SQLite without Alembic's copy of the table."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    else:
        op.alter_column(
            table, old, new_column_name=new, existing_type=sa.BigInteger(), existing_nullable=False
        )
