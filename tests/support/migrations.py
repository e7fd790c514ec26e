"""Helpers of the tests of migrations, for all that need them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.command import upgrade
from alembic.config import Config as AlembicConfig
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, event

from app.database.engine import bind_engine
from app.models.base import Base
from app.settings.config import Config
from tests.support.databases import ROOT
from tests.support.factories import T0

#: the eight tables of 2.4.1 as MySQL types; other databases get plainer ones
TABLES_2_4_1 = {
    "xxl_job_info": """
        id ID, job_group int(11) NOT NULL, job_desc varchar(255) NOT NULL, add_time datetime, update_time
        datetime, author varchar(64), alarm_email varchar(255), schedule_type varchar(50) NOT NULL DEFAULT
        'NONE', schedule_conf varchar(128), misfire_strategy varchar(50) NOT NULL DEFAULT 'DO_NOTHING',
        executor_route_strategy varchar(50), executor_handler varchar(255), executor_param varchar(512),
        executor_block_strategy varchar(50), executor_timeout int(11) NOT NULL DEFAULT 0,
        executor_fail_retry_count int(11) NOT NULL DEFAULT 0, glue_type varchar(50) NOT NULL, glue_source
        mediumtext, glue_remark varchar(128), glue_updatetime datetime, child_jobid varchar(255),
        trigger_status tinyint(4) NOT NULL DEFAULT 0, trigger_last_time bigint(13) NOT NULL DEFAULT 0,
        trigger_next_time bigint(13) NOT NULL DEFAULT 0
    """,
    "xxl_job_log": """
        id BIGID, job_group int(11) NOT NULL, job_id int(11) NOT NULL, executor_address varchar(255),
        executor_handler varchar(255), executor_param varchar(512), executor_sharding_param varchar(20),
        executor_fail_retry_count int(11) NOT NULL DEFAULT 0, trigger_time datetime, trigger_code int(11)
        NOT NULL, trigger_msg text, handle_time datetime, handle_code int(11) NOT NULL, handle_msg text,
        alarm_status tinyint(4) NOT NULL DEFAULT 0
    """,
    "xxl_job_log_report": """
        id ID, trigger_day datetime, running_count int(11) NOT NULL DEFAULT 0, suc_count int(11) NOT NULL
        DEFAULT 0, fail_count int(11) NOT NULL DEFAULT 0, update_time datetime
    """,
    "xxl_job_logglue": """
        id ID, job_id int(11) NOT NULL, glue_type varchar(50), glue_source mediumtext, glue_remark
        varchar(128) NOT NULL, add_time datetime, update_time datetime
    """,
    "xxl_job_registry": """
        id ID, registry_group varchar(50) NOT NULL, registry_key varchar(255) NOT NULL, registry_value
        varchar(255) NOT NULL, update_time datetime
    """,
    "xxl_job_group": """
        id ID, app_name varchar(64) NOT NULL, title varchar(12) NOT NULL, address_type tinyint(4) NOT NULL
        DEFAULT 0, address_list text, update_time datetime
    """,
    "xxl_job_user": """
        id ID, username varchar(50) NOT NULL, password varchar(50) NOT NULL, role tinyint(4) NOT NULL,
        permission varchar(255)
    """,
    "xxl_job_lock": "lock_name varchar(50) NOT NULL PRIMARY KEY",
}


INDEXES_2_4_1 = [
    "CREATE INDEX I_trigger_time ON xxl_job_log (trigger_time)",
    "CREATE INDEX I_handle_code ON xxl_job_log (handle_code)",
    "CREATE UNIQUE INDEX i_trigger_day ON xxl_job_log_report (trigger_day)",
    "CREATE INDEX i_g_k_v ON xxl_job_registry (registry_group, registry_key, registry_value)",
    "CREATE UNIQUE INDEX i_username ON xxl_job_user (username)",
]


PLAINER = {
    "mysql": {
        "BIGID": "bigint(20) NOT NULL AUTO_INCREMENT PRIMARY KEY",
        "ID": "int(11) NOT NULL AUTO_INCREMENT PRIMARY KEY",
    },
    "postgresql": {
        "BIGID": "bigserial PRIMARY KEY",
        "ID": "serial PRIMARY KEY",
        "int(11)": "integer",
        "bigint(13)": "bigint",
        "tinyint(4)": "smallint",
        "datetime": "timestamp",
        "mediumtext": "text",
    },
    "sqlite": {
        "BIGID": "integer PRIMARY KEY AUTOINCREMENT",
        "ID": "integer PRIMARY KEY AUTOINCREMENT",
        "int(11)": "integer",
        "bigint(13)": "bigint",
        "tinyint(4)": "smallint",
        "mediumtext": "text",
    },
}


#: rows as a Java admin writes them, without our columns
ROWS_2_4_1 = [
    "INSERT INTO xxl_job_group (id, app_name, title, address_type) VALUES (1, 'xxl-job-executor-sample',"
    " 'sample', 0)",
    "INSERT INTO xxl_job_info (id, job_group, job_desc, schedule_type, schedule_conf, glue_type,"
    " glue_updatetime, executor_route_strategy,"
    " executor_handler, executor_param, trigger_status, trigger_next_time) VALUES (7, 1, 'daily', 'CRON',"
    " '0 0 0 * * ? *', 'BEAN',"
    f" '2018-11-03 22:21:31', 'FIRST', 'demoJobHandler', '', 1, {T0})",
    "INSERT INTO xxl_job_log (id, job_group, job_id, trigger_time, trigger_code, handle_code,"
    " trigger_msg, handle_msg)"
    " VALUES (900, 1, 7, '2024-05-01 08:00:00', 200, 200, 'old', 'done')",
    "INSERT INTO xxl_job_user (username, password, role) VALUES ('admin',"
    " 'e10adc3949ba59abbe56e057f20f883e', 1)",
    "INSERT INTO xxl_job_lock (lock_name) VALUES ('schedule_lock')",
    *(
        "INSERT INTO xxl_job_registry (registry_group, registry_key, registry_value, update_time)"
        f" VALUES ('EXECUTOR', 'app', 'http://10.0.0.{number}:9999/', '2024-05-01 08:00:0{second}')"
        for second, number in enumerate([1, 2, 1, 1])
    ),
]


def execute(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def make_2_4_1(engine: Engine) -> None:
    """Build the schema of XXL-JOB 2.4.1 with some rows."""
    for table, columns in TABLES_2_4_1.items():
        for placeholder, meaning in PLAINER[engine.dialect.name].items():
            columns = re.sub(
                rf"(?<= ){re.escape(placeholder)}(?=[ ,]|$)", meaning, columns, flags=re.MULTILINE
            )
        execute(engine, f"CREATE TABLE {table} ({columns})")
    quote = '"' if engine.dialect.name == "postgresql" else ""
    execute(
        engine,
        *(re.sub(r"INDEX (\w+)", rf"INDEX {quote}\1{quote}", statement) for statement in INDEXES_2_4_1),
        *ROWS_2_4_1,
    )
    if engine.dialect.name == "postgresql":
        for table in ("xxl_job_group", "xxl_job_info", "xxl_job_log"):
            execute(
                engine,
                f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))",
            )


def differences(engine: Engine) -> list[Any]:
    """Return the differences of the database from the models.

    Types are not compared on SQLite, whose columns take any length: to widen one would copy its table.
    """
    compares_types = engine.dialect.name != "sqlite"
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": compares_types, "target_metadata": Base.metadata}
        )
        return compare_metadata(context, Base.metadata)


def lacks(engine: Engine) -> list[Any]:
    """Return what the database lacks; an adopted one keeps the original's narrower numbers."""
    return [
        found for found in differences(engine) if isinstance(found, tuple) and found[0].startswith("add_")
    ]


#: the migrations of earlier commits as they were, which 0011_own_schema has replaced
EARLIER_VERSIONS = ROOT / "tests" / "support" / "earlier_versions"


def migrate_to(engine: Engine, revision: str) -> None:
    """Upgrade to a revision of today or of an earlier commit."""
    config = AlembicConfig(ROOT / "migrations" / "alembic.ini")
    config.attributes["url"] = engine.url.render_as_string(hide_password=False)
    if (EARLIER_VERSIONS / f"{revision}.py").exists():
        config.set_main_option("version_locations", str(EARLIER_VERSIONS))
    upgrade(config, revision)


def bind(engine: Engine) -> None:
    bind_engine(
        Config(database_url=engine.url.render_as_string(hide_password=False), time_zone="Asia/Shanghai")
    )


class Interrupted(Exception):
    """An upgrade was stopped between two statements."""


@contextmanager
def interrupted_after(allowed: int) -> Iterator[None]:
    """Let the upgrade execute this many schema statements, then stop it."""
    executed = 0

    def count(_connection: Any, _cursor: Any, sql: str, *_rest: Any) -> None:
        nonlocal executed
        if sql.lstrip().startswith(("CREATE", "ALTER", "DROP")):
            executed += 1
            if executed > allowed:
                raise Interrupted

    event.listen(Engine, "before_cursor_execute", count)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", count)
