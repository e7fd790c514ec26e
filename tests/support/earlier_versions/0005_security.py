"""Columns for encrypted tokens, weak passwords and sign-on; app names are compared exactly.

Revision: 0005_security, after 0004_tasks. Changes are additions, but for two columns' width and, on MySQL and
MariaDB, the collation of app names and addresses: there ``A`` and ``a`` were the same executor group.
Each step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005_security"
down_revision = "0004_tasks"

EXACT = "utf8mb4_bin"


def number(name: str, kind: type[sa.types.TypeEngine[int]] = sa.SmallInteger) -> sa.Column[int]:
    """Return a column of a number that is never null."""
    return sa.Column(name, kind(), nullable=False, server_default="0")


def exact_text(name: str, length: int, *, nullable: bool = False) -> sa.Column[str]:
    """Return a VARCHAR column compared by code point."""
    kind = sa.String(length).with_variant(sa.String(length, collation=EXACT), "mysql", "mariadb")
    return sa.Column(name, kind, nullable=nullable)


COLUMNS: dict[str, list[sa.Column[object]]] = {
    "xxl_job_group": [
        sa.Column("former_token", sa.Text().with_variant(sa.String(255), "sqlite")),
        number("changeover_ms", sa.BigInteger),
    ],
    "xxl_job_session": [number("confirmed_ms", sa.BigInteger), number("sign_on")],
    "xxl_job_user": [number("weak_password"), exact_text("identity", 255, nullable=True)],
    "xxl_job_node": [sa.Column("key_fingerprint", sa.String(64), nullable=False, server_default="")],
}
#: (table, column, length)
EXACT_COLUMNS = [
    ("xxl_job_registry", "registry_group", 50),
    ("xxl_job_registry", "registry_key", 255),
    ("xxl_job_registry", "registry_value", 255),
    ("xxl_job_group", "app_name", 64),
]
IDENTITY_INDEX = "ux_xxl_job_user_identity"
#: tables of old servers whose rows are in a format in which 191 characters of an index are the most
COMPACT_TABLES = """
    SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()
    AND table_name IN ('xxl_job_registry', 'xxl_job_user') AND row_format IN ('Compact', 'Redundant')
"""


def upgrade() -> None:
    """Add what is missing, widen the token, make comparisons exact."""
    dialect = op.get_bind().dialect.name
    if dialect in ("mysql", "mariadb"):
        for table in op.get_bind().scalars(sa.text(COMPACT_TABLES)).all():
            op.execute(f"ALTER TABLE {table} ROW_FORMAT = DYNAMIC")
    for table, columns in COLUMNS.items():
        present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}
        for column in columns:
            if column.name not in present:
                op.add_column(table, column)
    indexes = {index["name"] for index in sa.inspect(op.get_bind()).get_indexes("xxl_job_user")}
    if IDENTITY_INDEX not in indexes:
        op.create_index(IDENTITY_INDEX, "xxl_job_user", ["identity"], unique=True)
    if dialect != "sqlite":  # which knows no lengths
        op.alter_column("xxl_job_group", "access_token", type_=sa.Text(), existing_nullable=True)
    if dialect in ("mysql", "mariadb"):
        for table, column, length in EXACT_COLUMNS:
            op.alter_column(
                table,
                column,
                type_=sa.String(length, collation=EXACT),
                existing_type=sa.String(length),
                existing_nullable=False,
            )
