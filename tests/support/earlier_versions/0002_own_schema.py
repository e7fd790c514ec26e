"""Own schema: columns and indexes added to the original's tables, and the tables the original does not have.

Revision: 0002_own_schema, after 0001. Add-only: a Java admin of 2.3 or later can still use the database.
Each step checks what is present, so that an interrupted upgrade can be repeated without transactional DDL.
Tables of XXL-JOB before 2.3, which have one cron per job instead of a schedule type, are completed.
On PostgreSQL the column `failed` rewrites `xxl_job_log` once; a log of millions of rows takes minutes.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002_own_schema"
down_revision = "0001"
#: revisions before the first release that this one replaces; the last of them has the same schema
REPLACES = ("0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010")

#: SQLite: never reuse an id, not even that of the newest row after its deletion
TABLE_OPTIONS = {"mysql_charset": "utf8mb4", "mysql_engine": "InnoDB", "sqlite_autoincrement": True}
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JOB, LOG, GROUP, REGISTRY = "xxl_job_info", "xxl_job_log", "xxl_job_group", "xxl_job_registry"
#: a run has failed if it could not be sent, or if its result is neither pending nor a success
FAILED = "CASE WHEN trigger_code NOT IN (0, 200) OR handle_code NOT IN (0, 200) THEN 1 ELSE 0 END"
#: the cron column of XXL-JOB before 2.3
OLD_CRON = "job_cron"


def number(
    name: str, default: str | None = "0", kind: type[sa.types.TypeEngine[int]] = sa.Integer
) -> sa.Column[int]:
    """Return a NOT NULL column for a number."""
    return sa.Column(name, kind(), nullable=False, server_default=default)


def millis(name: str, default: str | None = "0") -> sa.Column[int]:
    """Return a NOT NULL column for epoch milliseconds."""
    return number(name, default, sa.BigInteger)


def text(name: str, length: int, default: str | None = "") -> sa.Column[str]:
    """Return a NOT NULL VARCHAR column."""
    return sa.Column(name, sa.String(length), nullable=False, server_default=default)


def exact_text(name: str, length: int) -> sa.Column[str]:
    """Return a NOT NULL VARCHAR column compared by code point, on MySQL too."""
    kind = sa.String(length).with_variant(sa.String(length, collation="utf8mb4_bin"), "mysql", "mariadb")
    return sa.Column(name, kind, nullable=False)


def primary_key(kind: sa.types.TypeEngine[int] | None = None) -> sa.Column[int]:
    """Return the id column."""
    return sa.Column("id", kind or BIG_ID, primary_key=True, autoincrement=True)


ADDED: dict[str, list[sa.Column[object]]] = {
    JOB: [
        text("time_zone", 64),
        millis("not_before_ms"),
        millis("not_after_ms"),
        text("delivery", 20, "auto"),
        number("retry_interval_s"),
        number("retry_backoff_percent", "100"),
        millis("last_fire_ms"),
        text("schedule_type", 50, "NONE"),
        sa.Column("schedule_conf", sa.String(128)),
        text("misfire_strategy", 50, "DO_NOTHING"),
    ],
    LOG: [
        sa.Column("fire_time", sa.BigInteger()),
        sa.Column("trigger_type", sa.String(20)),
        sa.Column("source_log_id", sa.BigInteger()),
    ],
    GROUP: [
        sa.Column("access_token", sa.String(255)),
        sa.Column("alarm_urls", sa.Text()),
        sa.Column("update_time", sa.DateTime()),
    ],
    REGISTRY: [text("capabilities", 255), text("boot_id", 64)],
    "xxl_job_user": [number("disabled", kind=sa.SmallInteger), text("language", 10), text("time_zone", 64)],
    "xxl_job_logglue": [text("author", 64)],
    "xxl_job_log_report": [sa.Column("update_time", sa.DateTime())],
}
#: (table, column, type): widened in an adopted database that has it shorter
WIDENED = [
    ("xxl_job_user", "password", sa.String(255)),
    (GROUP, "title", sa.String(64)),
    (GROUP, "address_list", sa.Text()),
]
TABLES: dict[str, list[sa.Column[object]]] = {
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
        *map(millis, ("lease_until", "sent_ms", "accepted_ms", "deadline_ms")),
        text("boot_id", 64),
        number("probe_count"),
    ],
    "xxl_job_skip": [
        primary_key(),
        number("job_id", None),
        millis("from_ms", None),
        millis("to_ms", None),
        number("skipped", None),
        text("reason", 20, None),
        millis("recorded_ms", None),
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
        sa.Column("mute_id", sa.Integer()),
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
        millis("skew_ms"),
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
    ],
    "xxl_job_drain": [
        primary_key(sa.Integer()),
        number("group_id", None),
        text("address", 255, None),
        millis("since_ms", None),
        text("username", 64),
    ],
    "xxl_job_tag": [primary_key(), number("job_id", None), text("tag", 30, None), exact_text("tag_key", 90)],
    "xxl_job_favourite": [primary_key(), number("user_id", None), number("job_id", None)],
    "xxl_job_view": [
        primary_key(sa.Integer()),
        number("user_id", None),
        text("list_name", 10, None),
        text("name", 40, None),
        exact_text("name_key", 120),
        sa.Column("filters", sa.Text(), nullable=False),
    ],
    "xxl_job_start_page": [primary_key(sa.Integer()), number("user_id", None), text("target", 20, None)],
    "xxl_job_group_day": [
        primary_key(sa.Integer()),
        millis("trigger_day", None),
        number("job_group", None),
        *map(number, ("running_count", "suc_count", "fail_count")),
    ],
    "xxl_job_mute": [
        primary_key(sa.Integer()),
        *map(number, ("job_id", "group_id")),
        millis("since_ms", None),
        millis("until_ms", None),
        text("username", 64),
        text("reason", 200),
        number("attempts"),
        text("owner", 64),
        millis("next_ms"),
        sa.Column("outcome", sa.Text()),
    ],
    "xxl_job_seen": [
        primary_key(),
        exact_text("app_name", 255),
        exact_text("address", 255),
        millis("seen_ms", None),
        text("capabilities", 255),
    ],
    "xxl_job_once": [primary_key(), text("name", 64, None), millis("done_ms", None)],
}
#: (name, table, columns); unique where the name starts with ux_
INDEXES = [
    ("ix_xxl_job_info_due", JOB, ["trigger_status", "trigger_next_time"]),
    ("ix_xxl_job_info_group", JOB, ["job_group"]),
    ("ix_xxl_job_log_job", LOG, ["job_id", "trigger_time"]),
    ("ix_xxl_job_log_group", LOG, ["job_group", "trigger_time"]),
    ("ix_xxl_job_logglue_job", "xxl_job_logglue", ["job_id"]),
    ("ux_xxl_job_fire_key", "xxl_job_fire", ["fire_key"]),
    ("ix_xxl_job_fire_due", "xxl_job_fire", ["state", "due_time"]),
    ("ix_xxl_job_fire_lease", "xxl_job_fire", ["state", "lease_until"]),
    ("ix_xxl_job_fire_look", "xxl_job_fire", ["state", "deadline_ms"]),
    ("ix_xxl_job_fire_job", "xxl_job_fire", ["job_id", "state"]),
    ("ix_xxl_job_fire_log", "xxl_job_fire", ["log_id"]),
    ("ix_xxl_job_skip_job", "xxl_job_skip", ["job_id", "recorded_ms"]),
    ("ux_xxl_job_alarm_log", "xxl_job_alarm", ["log_id"]),
    ("ix_xxl_job_alarm_due", "xxl_job_alarm", ["state", "next_ms"]),
    ("ix_xxl_job_alarm_job", "xxl_job_alarm", ["job_id", "state"]),
    ("ix_xxl_job_alarm_mute", "xxl_job_alarm", ["mute_id", "job_id"]),
    ("ux_xxl_job_node_name", "xxl_job_node", ["name", "kind"]),
    ("ux_xxl_job_session_token", "xxl_job_session", ["token_hash"]),
    ("ix_xxl_job_session_user", "xxl_job_session", ["user_id"]),
    ("ux_xxl_job_right", "xxl_job_right", ["user_id", "group_id"]),
    ("ix_xxl_job_audit_time", "xxl_job_audit", ["at_ms"]),
    ("ix_xxl_job_audit_object", "xxl_job_audit", ["object_type", "object_id"]),
    ("ux_xxl_job_drain", "xxl_job_drain", ["group_id", "address"]),
    ("ux_xxl_job_tag_job", "xxl_job_tag", ["job_id", "tag_key"]),
    ("ix_xxl_job_tag_key", "xxl_job_tag", ["tag_key", "job_id"]),
    ("ux_xxl_job_favourite", "xxl_job_favourite", ["user_id", "job_id"]),
    ("ix_xxl_job_favourite_job", "xxl_job_favourite", ["job_id"]),
    ("ux_xxl_job_view", "xxl_job_view", ["user_id", "list_name", "name_key"]),
    ("ux_xxl_job_start_page_user", "xxl_job_start_page", ["user_id"]),
    ("ux_xxl_job_group_day", "xxl_job_group_day", ["trigger_day", "job_group"]),
    ("ux_xxl_job_mute", "xxl_job_mute", ["job_id", "group_id"]),
    ("ix_xxl_job_mute_due", "xxl_job_mute", ["until_ms", "next_ms"]),
    ("ux_xxl_job_seen", "xxl_job_seen", ["app_name", "address"]),
    ("ux_xxl_job_once", "xxl_job_once", ["name"]),
]
#: (name, columns, condition); the indexes are partial where the database supports it
LOG_INDEXES = [
    ("ix_xxl_job_log_failures", ["failed", "trigger_time", "id", "job_group", "job_id"], "failed = 1"),
    ("ix_xxl_job_log_source", ["source_log_id"], "source_log_id IS NOT NULL"),
]
#: replaced by the first of LOG_INDEXES
OLD_INDEX = "ix_xxl_job_log_failed"
#: the registry of an old server, whose row format allows 191 characters in an index
COMPACT_REGISTRY = """
    SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()
    AND table_name = 'xxl_job_registry' AND row_format IN ('Compact', 'Redundant')
"""


def upgrade() -> None:
    """Add whatever is missing."""
    for table, columns in TABLES.items():
        if not sa.inspect(op.get_bind()).has_table(table):
            op.create_table(table, *columns, **TABLE_OPTIONS)
    persisted = True if op.get_bind().dialect.name == "postgresql" else None
    failed = sa.Column("failed", sa.SmallInteger(), sa.Computed(FAILED, persisted=persisted))
    for table, columns in {**TABLES, **ADDED, LOG: [*ADDED[LOG], failed]}.items():
        present = columns_of(table)
        for column in columns:
            if column.name not in present:
                op.add_column(table, column)
    widen()
    make_registry_unique()
    for name, table, indexed in INDEXES:
        if name not in indexes_of(table):
            op.create_index(name, table, indexed, unique=name.startswith("ux_"))
    for name, indexed, where in LOG_INDEXES:
        if name not in indexes_of(LOG):
            op.create_index(name, LOG, indexed, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
    if OLD_INDEX in indexes_of(LOG):
        op.drop_index(OLD_INDEX, LOG)
    convert_crons()


def columns_of(table: str) -> dict[str, Any]:
    """Return the columns of a table by name."""
    return {column["name"]: column for column in sa.inspect(op.get_bind()).get_columns(table)}


def indexes_of(table: str) -> dict[str | None, bool]:
    """Return index name -> whether it is unique."""
    return {index["name"]: index["unique"] for index in sa.inspect(op.get_bind()).get_indexes(table)}


def widen() -> None:
    """Widen columns that are narrower in databases adopted from older versions of XXL-JOB."""
    for table, name, kind in WIDENED:
        found = columns_of(table)[name]
        length = getattr(found["type"], "length", None)
        if length is not None and length < (kind.length or length + 1):
            alter_column(table, name, found, type_=kind)


def alter_column(table: str, name: str, found: dict[str, Any], **changes: Any) -> None:
    """Alter a column; anything not in ``changes`` is kept."""
    with op.batch_alter_table(table) as batch:
        batch.alter_column(
            name, **{"existing_type": found["type"], "existing_nullable": found["nullable"], **changes}
        )


def make_registry_unique() -> None:
    """Make the index of XXL-JOB before 2.5 unique; of equal rows the last one is kept."""
    name, columns = "i_g_k_v", ["registry_group", "registry_key", "registry_value"]
    indexes = indexes_of(REGISTRY)
    if indexes.get(name):
        return
    table = sa.table(
        REGISTRY, sa.column("id", sa.BigInteger), *(sa.column(name, sa.String) for name in columns)
    )
    keys = [table.c[column] for column in columns]
    kept = sa.select(sa.func.max(table.c.id).label("id")).group_by(*keys).subquery()
    op.execute(sa.delete(table).where(table.c.id.not_in(sa.select(kept.c.id))))
    if name in indexes:
        op.drop_index(name, REGISTRY)
    is_mysql = op.get_bind().dialect.name in ("mysql", "mariadb")
    if is_mysql and op.get_bind().scalar(sa.text(COMPACT_REGISTRY)):
        op.execute(f"ALTER TABLE {REGISTRY} ROW_FORMAT = DYNAMIC")
    op.create_index(name, REGISTRY, columns, unique=True)


def convert_crons() -> None:
    """Convert the crons of XXL-JOB before 2.3 to schedules, once: afterwards the old column is nullable."""
    found = columns_of(JOB).get(OLD_CRON)
    if found is None or found["nullable"]:
        return
    names = (OLD_CRON, "schedule_type", "schedule_conf")
    job = sa.table(JOB, *(sa.column(name, sa.String) for name in names))
    unscheduled = (job.c.schedule_type == "NONE", job.c.schedule_conf.is_(None), job.c.job_cron != "")
    op.execute(sa.update(job).where(*unscheduled).values(schedule_type="CRON", schedule_conf=job.c.job_cron))
    alter_column(JOB, OLD_CRON, found, nullable=True)
