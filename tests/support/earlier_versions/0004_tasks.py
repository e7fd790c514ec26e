"""Tables of background tasks and their results; `xxl_job_once` is dropped.

Revision: 0004_tasks, after 0003_first_release. Only tables of our own change.
Each step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import MEDIUMTEXT

revision = "0004_tasks"
down_revision = "0003_first_release"

#: SQLite: an id is never given twice, not even after the newest row was deleted
TABLE_OPTIONS = {"mysql_charset": "utf8mb4", "mysql_engine": "InnoDB", "sqlite_autoincrement": True}
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LONG_TEXT = sa.Text().with_variant(MEDIUMTEXT, "mysql", "mariadb")


def primary_key() -> sa.Column[int]:
    """Return the id column."""
    return sa.Column("id", BIG_ID, primary_key=True, autoincrement=True)


def number(name: str, default: str | None = "0") -> sa.Column[int]:
    """Return a column of a number that is never null."""
    return sa.Column(name, sa.Integer(), nullable=False, server_default=default)


def big_number(name: str, default: str | None = "0") -> sa.Column[int]:
    """Return a column of a 64-bit number that is never null."""
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default=default)


def text(name: str, length: int, default: str | None = "") -> sa.Column[str]:
    """Return a VARCHAR column that is never null."""
    return sa.Column(name, sa.String(length), nullable=False, server_default=default)


TABLES: dict[str, list[sa.Column[object]]] = {
    "xxl_job_task": [
        primary_key(),
        text("idempotency_key", 64, None),
        text("kind", 20, None),
        text("action", 20),
        sa.Column("parameters", LONG_TEXT, nullable=False),
        number("user_id", None),
        text("username", 64),
        text("address", 64),
        text("state", 12, "PENDING"),
        number("total"),
        number("done"),
        sa.Column("error", sa.Text()),
        big_number("created_ms", None),
        big_number("started_ms"),
        big_number("updated_ms"),
        big_number("finished_ms"),
        text("owner", 64),
        number("epoch"),
        number("claims"),
        big_number("lease_until"),
    ],
    "xxl_job_task_line": [
        primary_key(),
        big_number("task_id", None),
        number("number", None),
        number("object_id"),
        text("name", 255),
        text("outcome", 12, None),
        sa.Column("detail", LONG_TEXT),
    ],
}
#: (name, table, columns, unique)
INDEXES = [
    ("ux_xxl_job_task_key", "xxl_job_task", ["idempotency_key"], True),
    ("ix_xxl_job_task_due", "xxl_job_task", ["state", "lease_until"], False),
    ("ix_xxl_job_task_user", "xxl_job_task", ["user_id", "id"], False),
    ("ix_xxl_job_task_finished", "xxl_job_task", ["finished_ms"], False),
    ("ux_xxl_job_task_line", "xxl_job_task_line", ["task_id", "number"], True),
]


def upgrade() -> None:
    """Add what is missing, drop `xxl_job_once`."""
    present = set(sa.inspect(op.get_bind()).get_table_names())
    for name, columns in TABLES.items():
        if name not in present:
            op.create_table(name, *columns, **TABLE_OPTIONS)
    for name, table, columns, unique in INDEXES:
        if name not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}:
            op.create_index(name, table, columns, unique=unique)
    if "xxl_job_once" in present:
        op.drop_table("xxl_job_once")
