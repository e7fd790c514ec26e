"""The eight tables of XXL-JOB; existing ones of an ``xxl_job`` database are left unchanged.

Revision: 0001, the first. Source of names, types and defaults: docs/reference/schema.md (XXL-JOB 2.4.1).
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import MEDIUMTEXT

revision = "0001"
down_revision = None

#: SQLite: never reuse an id, not even that of the newest row after its deletion
TABLE_OPTIONS = {"mysql_charset": "utf8mb4", "mysql_engine": "InnoDB", "sqlite_autoincrement": True}
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LONG_TEXT = sa.Text().with_variant(MEDIUMTEXT(), "mysql", "mariadb")


def number(
    name: str, default: str | None = "0", kind: type[sa.types.TypeEngine[int]] = sa.Integer
) -> sa.Column[int]:
    """Return a NOT NULL column for a number."""
    return sa.Column(name, kind(), nullable=False, server_default=default)


def text(name: str, length: int, *, nullable: bool = True, default: str | None = None) -> sa.Column[str]:
    """Return a VARCHAR column."""
    return sa.Column(name, sa.String(length), nullable=nullable, server_default=default)


def primary_key(kind: sa.types.TypeEngine[int] | None = None) -> sa.Column[int]:
    """Return the id column."""
    return sa.Column("id", kind or sa.Integer(), primary_key=True, autoincrement=True)


TABLES: dict[str, list[sa.Column[object] | sa.Index]] = {
    "xxl_job_info": [
        primary_key(),
        number("job_group", None),
        text("job_desc", 255, nullable=False),
        sa.Column("add_time", sa.DateTime()),
        sa.Column("update_time", sa.DateTime()),
        text("author", 64),
        text("alarm_email", 255),
        text("schedule_type", 50, nullable=False, default="NONE"),
        text("schedule_conf", 128),
        text("misfire_strategy", 50, nullable=False, default="DO_NOTHING"),
        text("executor_route_strategy", 50),
        text("executor_handler", 255),
        text("executor_param", 512),
        text("executor_block_strategy", 50),
        number("executor_timeout"),
        number("executor_fail_retry_count"),
        text("glue_type", 50, nullable=False),
        sa.Column("glue_source", LONG_TEXT),
        text("glue_remark", 128),
        sa.Column("glue_updatetime", sa.DateTime()),
        text("child_jobid", 255),
        number("trigger_status", kind=sa.SmallInteger),
        number("trigger_last_time", kind=sa.BigInteger),
        number("trigger_next_time", kind=sa.BigInteger),
    ],
    "xxl_job_log": [
        primary_key(BIG_ID),
        number("job_group", None),
        number("job_id", None),
        text("executor_address", 255),
        text("executor_handler", 255),
        text("executor_param", 512),
        text("executor_sharding_param", 20),
        number("executor_fail_retry_count"),
        sa.Column("trigger_time", sa.DateTime()),
        number("trigger_code", None),
        sa.Column("trigger_msg", sa.Text()),
        sa.Column("handle_time", sa.DateTime()),
        number("handle_code", None),
        sa.Column("handle_msg", sa.Text()),
        number("alarm_status", kind=sa.SmallInteger),
        sa.Index("I_trigger_time", "trigger_time"),
        sa.Index("I_handle_code", "handle_code"),
    ],
    "xxl_job_log_report": [
        primary_key(),
        sa.Column("trigger_day", sa.DateTime()),
        number("running_count"),
        number("suc_count"),
        number("fail_count"),
        sa.Column("update_time", sa.DateTime()),
        sa.Index("i_trigger_day", "trigger_day", unique=True),
    ],
    "xxl_job_logglue": [
        primary_key(),
        number("job_id", None),
        text("glue_type", 50),
        sa.Column("glue_source", LONG_TEXT),
        text("glue_remark", 128, nullable=False),
        sa.Column("add_time", sa.DateTime()),
        sa.Column("update_time", sa.DateTime()),
    ],
    "xxl_job_registry": [
        primary_key(BIG_ID),
        text("registry_group", 50, nullable=False),
        text("registry_key", 255, nullable=False),
        text("registry_value", 255, nullable=False),
        sa.Column("update_time", sa.DateTime()),
        sa.Index("i_g_k_v", "registry_group", "registry_key", "registry_value", unique=True),
    ],
    "xxl_job_group": [
        primary_key(),
        text("app_name", 64, nullable=False),
        text("title", 64, nullable=False),
        number("address_type", kind=sa.SmallInteger),
        sa.Column("address_list", sa.Text()),
        sa.Column("update_time", sa.DateTime()),
    ],
    "xxl_job_user": [
        primary_key(),
        text("username", 50, nullable=False),
        text("password", 255, nullable=False),
        number("role", None, sa.SmallInteger),
        text("permission", 255),
        sa.Index("i_username", "username", unique=True),
    ],
    "xxl_job_lock": [sa.Column("lock_name", sa.String(50), primary_key=True)],
}


def upgrade() -> None:
    """Create the missing tables, and the lock row."""
    present = set(sa.inspect(op.get_bind()).get_table_names())
    for name, parts in TABLES.items():
        if name not in present:
            op.create_table(name, *parts, **TABLE_OPTIONS)
    lock = sa.table("xxl_job_lock", sa.column("lock_name", sa.String))
    if op.get_bind().execute(sa.select(lock)).first() is None:
        op.bulk_insert(lock, [{"lock_name": "schedule_lock"}])
