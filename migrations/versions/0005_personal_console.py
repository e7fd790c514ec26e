"""Tags of jobs, and what each user of the console keeps: favourites, saved views, a start page.

Revision: 0005, after 0004. Four tables of our own; the original's are not touched, and neither the scan nor the dispatch reads them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

#: SQLite: an id is never given twice, not even after the newest row was deleted
TABLE_OPTIONS = {"mysql_charset": "utf8mb4", "mysql_engine": "InnoDB", "sqlite_autoincrement": True}
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def primary_key(kind: sa.types.TypeEngine[int]) -> sa.Column[int]:
    """Return the id column."""
    return sa.Column("id", kind, primary_key=True, autoincrement=True)


def number(name: str) -> sa.Column[int]:
    """Return a column of an id of another table."""
    return sa.Column(name, sa.Integer(), nullable=False)


def text(name: str, length: int, *, exact: bool = False) -> sa.Column[str]:
    """Return a VARCHAR column; of an ``exact`` one only the same values are equal, on MySQL too."""
    kind: sa.types.TypeEngine[str] = sa.String(length)
    if exact:
        kind = sa.String(length).with_variant(sa.String(length, collation="utf8mb4_bin"), "mysql", "mariadb")
    return sa.Column(name, kind, nullable=False)


TABLES: dict[str, list[sa.Column[object]]] = {
    "xxl_job_tag": [primary_key(BIG_ID), number("job_id"), text("tag", 30), text("tag_key", 90, exact=True)],
    "xxl_job_favourite": [primary_key(BIG_ID), number("user_id"), number("job_id")],
    "xxl_job_view": [
        primary_key(sa.Integer()),
        number("user_id"),
        text("list_name", 10),
        text("name", 40),
        text("name_key", 120, exact=True),
        sa.Column("filters", sa.Text(), nullable=False),
    ],
    "xxl_job_start_page": [primary_key(sa.Integer()), number("user_id"), text("target", 20)],
}
#: (name, table, columns, whether no two rows may have the same)
INDEXES = [
    ("ux_xxl_job_tag_job", "xxl_job_tag", ["job_id", "tag_key"], True),
    ("ix_xxl_job_tag_key", "xxl_job_tag", ["tag_key", "job_id"], False),
    ("ux_xxl_job_favourite", "xxl_job_favourite", ["user_id", "job_id"], True),
    ("ix_xxl_job_favourite_job", "xxl_job_favourite", ["job_id"], False),
    ("ux_xxl_job_view", "xxl_job_view", ["user_id", "list_name", "name_key"], True),
    ("ux_xxl_job_start_page_user", "xxl_job_start_page", ["user_id"], True),
]


def upgrade() -> None:
    """Add what is missing: databases that commit each statement by itself can run a broken-off upgrade again."""
    present = set(sa.inspect(op.get_bind()).get_table_names())
    for name, columns in TABLES.items():
        if name not in present:
            op.create_table(name, *columns, **TABLE_OPTIONS)
    for name, table, columns, unique in INDEXES:
        if name not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}:
            op.create_index(name, table, columns, unique=unique)


def downgrade() -> None:
    """Not offered: a backup is the way back."""
    raise NotImplementedError
