"""Access tokens of the API, versions of jobs, what is managed as code, and the triggers of runs.

Revision: 0009_api, after 0008_handlers. Changes are additions only.
Each step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import MEDIUMTEXT

revision = "0009_api"
down_revision = "0008_handlers"

_BIG_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_LONG_TEXT = sa.Text().with_variant(MEDIUMTEXT, "mysql", "mariadb")


def _number(name: str, kind: type[sa.Integer] | type[sa.BigInteger] = sa.BigInteger) -> sa.Column[int]:
    return sa.Column(name, kind(), nullable=False, server_default="0")


def _text(name: str, length: int) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=False, server_default="")


def _exact(name: str, length: int) -> sa.Column[str]:
    exact = sa.String(length).with_variant(sa.String(length, collation="utf8mb4_bin"), "mysql", "mariadb")
    return sa.Column(name, exact, nullable=False)


def _id(kind: sa.types.TypeEngine[int] = _BIG_ID) -> sa.Column[int]:
    return sa.Column("id", kind, nullable=False, primary_key=True, autoincrement=True)


#: table -> its columns
TABLES = {
    "xxl_job_token": lambda: (
        _id(sa.Integer()),
        _exact("name", 64),
        sa.Column("token_hash", sa.String(64), nullable=False),
        _text("hint", 16),
        _number("user_id", sa.Integer),
        _text("rights", 64),
        sa.Column("group_ids", sa.Text()),
        _number("created_ms"),
        _text("created_by", 64),
        _number("expires_ms"),
        _number("revoked_ms"),
        _number("last_used_ms"),
        _text("last_address", 64),
    ),
    "xxl_job_idempotency": lambda: (
        _id(),
        sa.Column("key_hash", sa.String(64), nullable=False),
        _text("request_hash", 64),
        _number("created_ms"),
        _number("status", sa.Integer),
        _text("location", 255),
        sa.Column("body", _LONG_TEXT),
    ),
    "xxl_job_version": lambda: (
        _id(),
        _number("job_id", sa.Integer),
        _number("number", sa.Integer),
        _number("at_ms"),
        _text("username", 64),
        _text("source", 255),
        sa.Column("fields", _LONG_TEXT, nullable=False),
    ),
    "xxl_job_managed": lambda: (
        _id(),
        _text("kind", 16),
        _exact("managed_key", 190),
        _number("object_id", sa.Integer),
        sa.Column("fields", _LONG_TEXT, nullable=False),
        _text("source", 255),
        _number("apply_id"),
        _number("applied_ms"),
    ),
    "xxl_job_apply": lambda: (
        _id(),
        _number("at_ms"),
        _text("username", 64),
        _text("source", 255),
        sa.Column("plan", _LONG_TEXT, nullable=False),
        sa.Column("before", _LONG_TEXT, nullable=False),
        _number("undone_ms"),
    ),
}

#: name -> table, columns, unique
INDEXES = {
    "ux_xxl_job_token_hash": ("xxl_job_token", ["token_hash"], True),
    "ix_xxl_job_token_user": ("xxl_job_token", ["user_id"], False),
    "ux_xxl_job_idempotency_key": ("xxl_job_idempotency", ["key_hash"], True),
    "ix_xxl_job_idempotency_created": ("xxl_job_idempotency", ["created_ms"], False),
    "ux_xxl_job_version_number": ("xxl_job_version", ["job_id", "number"], True),
    "ux_xxl_job_managed_key": ("xxl_job_managed", ["kind", "managed_key"], True),
    "ux_xxl_job_managed_object": ("xxl_job_managed", ["kind", "object_id"], True),
}


def upgrade() -> None:
    """Add what is missing."""
    inspector = sa.inspect(op.get_bind())
    present = set(inspector.get_table_names())
    for name, columns in TABLES.items():
        if name not in present:
            op.create_table(name, *columns(), mysql_charset="utf8mb4", mysql_engine="InnoDB")
    if "via" not in {column["name"] for column in inspector.get_columns("xxl_job_audit")}:
        op.add_column("xxl_job_audit", _text("via", 80))
    for name, (table, columns, unique) in INDEXES.items():
        if name not in {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}:
            op.create_index(name, table, columns, unique=unique)
    _add_trigger_key()


def _add_trigger_key() -> None:
    """Add the column of runs and its index, which is partial where the database supports it."""
    inspector, name, where = (
        sa.inspect(op.get_bind()),
        "ix_xxl_job_log_trigger",
        sa.text("trigger_key IS NOT NULL"),
    )
    if "trigger_key" not in {column["name"] for column in inspector.get_columns("xxl_job_log")}:
        op.add_column("xxl_job_log", sa.Column("trigger_key", sa.BigInteger()))
    if name not in {index["name"] for index in inspector.get_indexes("xxl_job_log")}:
        op.create_index(name, "xxl_job_log", ["trigger_key"], sqlite_where=where, postgresql_where=where)
