"""What this program adds: columns with defaults, indexes, and its own tables.

Revision: 0002, after 0001. Add-only, so that a 2.4 Java admin still works on the same database. Every step looks
first: databases that commit each statement by itself can run a broken-off upgrade again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

#: SQLite: an id is never given twice, not even after the newest row was deleted
TABLE_OPTIONS = {"mysql_charset": "utf8mb4", "mysql_engine": "InnoDB", "sqlite_autoincrement": True}
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def number(
    name: str, default: str | None = "0", kind: type[sa.types.TypeEngine[int]] = sa.Integer
) -> sa.Column[int]:
    """Return a column of a number that is never null."""
    return sa.Column(name, kind(), nullable=False, server_default=default)


def millis(name: str, default: str | None = "0") -> sa.Column[int]:
    """Return a column of epoch milliseconds."""
    return number(name, default, sa.BigInteger)


def text(name: str, length: int, default: str | None = "") -> sa.Column[str]:
    """Return a VARCHAR column that is never null."""
    return sa.Column(name, sa.String(length), nullable=False, server_default=default)


def primary_key(kind: sa.types.TypeEngine[int] | None = None) -> sa.Column[int]:
    """Return the id column."""
    return sa.Column("id", kind or BIG_ID, primary_key=True, autoincrement=True)


ADDED: dict[str, list[sa.Column[object]]] = {
    "xxl_job_info": [
        text("time_zone", 64),
        millis("not_before_ms"),
        millis("not_after_ms"),
        text("delivery", 20, "auto"),
        number("retry_interval_s"),
        number("retry_backoff_percent", "100"),
        millis("last_fire_ms"),
    ],
    "xxl_job_log": [sa.Column("fire_time", sa.BigInteger())],
    "xxl_job_group": [sa.Column("access_token", sa.String(255)), sa.Column("alarm_urls", sa.Text())],
    "xxl_job_registry": [text("capabilities", 255), text("boot_id", 64)],
    "xxl_job_user": [number("disabled", kind=sa.SmallInteger), text("language", 10), text("time_zone", 64)],
    "xxl_job_logglue": [text("author", 64)],
}
#: (table, column, length): widened where an adopted database has it shorter
WIDENED = [("xxl_job_user", "password", 255), ("xxl_job_group", "title", 64)]
#: (name, table, columns)
INDEXES = [
    ("ix_xxl_job_info_due", "xxl_job_info", ["trigger_status", "trigger_next_time"]),
    ("ix_xxl_job_info_group", "xxl_job_info", ["job_group"]),
    ("ix_xxl_job_log_job", "xxl_job_log", ["job_id", "trigger_time"]),
    ("ix_xxl_job_log_group", "xxl_job_log", ["job_group", "trigger_time"]),
    ("ix_xxl_job_logglue_job", "xxl_job_logglue", ["job_id"]),
]
TABLES: dict[str, list[sa.Column[object] | sa.Index]] = {
    "xxl_job_fire": [
        primary_key(),
        number("job_id", None),
        text("fire_key", 120, None),
        millis("due_time", None),
        text("trigger_type", 20, None),
        sa.Column("executor_param", sa.Text()),
        sa.Column("address_list", sa.Text()),
        sa.Column("sharding_param", sa.String(20)),
        number("fail_retry_count", "-1"),
        text("state", 12, "PENDING"),
        sa.Column("log_id", sa.BigInteger()),
        sa.Column("address", sa.String(255)),
        number("attempt"),
        text("owner", 64),
        number("epoch"),
        millis("lease_until"),
        millis("sent_ms"),
        millis("accepted_ms"),
        millis("deadline_ms"),
        text("boot_id", 64),
        number("probe_count"),
        sa.Index("ux_xxl_job_fire_key", "fire_key", unique=True),
        sa.Index("ix_xxl_job_fire_due", "state", "due_time"),
        sa.Index("ix_xxl_job_fire_lease", "state", "lease_until"),
        sa.Index("ix_xxl_job_fire_look", "state", "deadline_ms"),
        sa.Index("ix_xxl_job_fire_job", "job_id", "state"),
        sa.Index("ix_xxl_job_fire_log", "log_id"),
    ],
    "xxl_job_skip": [
        primary_key(),
        number("job_id", None),
        millis("from_ms", None),
        millis("to_ms", None),
        number("skipped", None),
        text("reason", 20, None),
        millis("recorded_ms", None),
        sa.Index("ix_xxl_job_skip_job", "job_id", "recorded_ms"),
    ],
    "xxl_job_alarm": [
        primary_key(),
        sa.Column("log_id", sa.BigInteger(), nullable=False),
        number("job_id", None),
        text("reason", 20, None),
        text("state", 12, "PENDING"),
        number("attempts"),
        text("owner", 64),
        millis("lease_until"),
        millis("created_ms", None),
        millis("next_ms"),
        sa.Column("outcome", sa.Text()),
        sa.Index("ux_xxl_job_alarm_log", "log_id", unique=True),
        sa.Index("ix_xxl_job_alarm_due", "state", "next_ms"),
        sa.Index("ix_xxl_job_alarm_job", "job_id", "state"),
    ],
    "xxl_job_node": [
        primary_key(sa.Integer()),
        text("name", 64, None),
        text("kind", 12, None),
        number("epoch"),
        millis("started_ms", None),
        millis("heartbeat_ms", None),
        text("version", 32, None),
        text("token_fingerprint", 64),
        sa.Index("ux_xxl_job_node_name", "name", "kind", unique=True),
    ],
    "xxl_job_session": [
        primary_key(),
        text("token_hash", 64, None),
        number("user_id", None),
        number("remember", kind=sa.SmallInteger),
        millis("created_ms", None),
        millis("seen_ms", None),
        millis("expires_ms", None),
        text("address", 64),
        text("agent", 255),
        sa.Index("ux_xxl_job_session_token", "token_hash", unique=True),
        sa.Index("ix_xxl_job_session_user", "user_id"),
    ],
    "xxl_job_throttle": [
        sa.Column("subject", sa.String(120), primary_key=True),
        number("failures"),
        millis("first_ms", None),
        millis("last_ms", None),
        millis("blocked_until_ms"),
    ],
    "xxl_job_right": [
        primary_key(sa.Integer()),
        number("user_id", None),
        number("group_id", None),
        text("rights", 64, None),
        sa.Index("ux_xxl_job_right", "user_id", "group_id", unique=True),
    ],
    "xxl_job_audit": [
        primary_key(),
        millis("at_ms", None),
        sa.Column("user_id", sa.Integer()),
        text("username", 64),
        text("address", 64),
        text("action", 40, None),
        text("object_type", 20),
        millis("object_id"),
        sa.Column("changes", sa.Text()),
        sa.Index("ix_xxl_job_audit_time", "at_ms"),
        sa.Index("ix_xxl_job_audit_object", "object_type", "object_id"),
    ],
}


def upgrade() -> None:
    """Add what is missing."""
    for name, columns in ADDED.items():
        present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(name)}
        for column in columns:
            if column.name not in present:
                op.add_column(name, column)
    for table, column, length in WIDENED:
        widen(table, column, length)
    for name, table, columns in INDEXES:
        if name not in index_names(table):
            op.create_index(name, table, columns)
    make_registry_unique()
    present = set(sa.inspect(op.get_bind()).get_table_names())
    for name, parts in TABLES.items():
        if name not in present:
            op.create_table(name, *parts, **TABLE_OPTIONS)


def index_names(table: str) -> set[str | None]:
    """Return the names of a table's indexes."""
    return {index["name"] for index in sa.inspect(op.get_bind()).get_indexes(table)}


def widen(table: str, column: str, length: int) -> None:
    """Make a VARCHAR column at least so long."""
    found = next(c for c in sa.inspect(op.get_bind()).get_columns(table) if c["name"] == column)
    if getattr(found["type"], "length", length) < length:
        with op.batch_alter_table(table) as batch:
            batch.alter_column(
                column, type_=sa.String(length), existing_type=found["type"], existing_nullable=False
            )


def make_registry_unique() -> None:
    """Replace the plain index of releases before 2.5 by a unique one; of equal rows the last stays."""
    indexes = {
        index["name"]: index["unique"] for index in sa.inspect(op.get_bind()).get_indexes("xxl_job_registry")
    }
    if indexes.get("i_g_k_v"):
        return
    columns = ["registry_group", "registry_key", "registry_value"]
    table = sa.table(
        "xxl_job_registry", sa.column("id", sa.BigInteger), *(sa.column(name, sa.String) for name in columns)
    )
    keys = [table.c[name] for name in columns]
    kept = sa.select(sa.func.max(table.c.id).label("id")).group_by(*keys).subquery()
    op.execute(sa.delete(table).where(table.c.id.not_in(sa.select(kept.c.id))))
    if "i_g_k_v" in indexes:
        op.drop_index("i_g_k_v", "xxl_job_registry")
    op.create_index("i_g_k_v", "xxl_job_registry", columns, unique=True)


def downgrade() -> None:
    """Not offered: a backup is the way back."""
    raise NotImplementedError
