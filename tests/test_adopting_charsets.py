"""Adopting tables that are not utf8mb4, or whose rows are in the format of old servers; MySQL only."""

import pytest
from sqlalchemy import Engine, text

from app.database.engine import session_scope
from app.errors import NotConfigured
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.user import User
from tests.support.databases import migrate
from tests.support.factories import all_rows, only_row
from tests.support.migrations import (
    TABLES_2_4_1,
    bind,
    execute,
    interrupted_after,
    lacks,
    make_2_4_1,
    migrate_to,
)

pytestmark = pytest.mark.databases("mariadb")

#: as in the tables of an operator: a comment with what statements could misread
COMMENT = "100 %, (a:b) `c` 'd',"
COLUMN = "SELECT {} FROM information_schema.columns WHERE table_schema = DATABASE()"


def convert_all(engine: Engine, charset: str, more: str = "") -> None:
    execute(
        engine, *(f"ALTER TABLE {table} CONVERT TO CHARACTER SET {charset} {more}" for table in TABLES_2_4_1)
    )


def charsets(engine: Engine) -> set[str]:
    """Return the character sets of the columns, and of the columns that tables are given next."""
    with engine.connect() as connection:
        tables = connection.scalars(
            text("SELECT table_collation FROM information_schema.tables WHERE table_schema = DATABASE()")
        ).all()
        columns = connection.scalars(text(COLUMN.format("collation_name"))).all()
    return {name.partition("_")[0] for name in (*tables, *columns) if name}


@pytest.mark.parametrize(
    ("charset", "row_format"),
    [("latin1", ""), ("utf8mb3", ", ROW_FORMAT = COMPACT"), ("gbk", ", ROW_FORMAT = REDUNDANT")],
)
def test_every_character_can_be_stored_afterwards(engine: Engine, charset: str, row_format: str) -> None:
    make_2_4_1(engine)
    convert_all(engine, charset, row_format)
    migrate(engine.url.render_as_string(hide_password=False))
    assert lacks(engine) == []
    assert charsets(engine) == {"utf8mb4"}
    bind(engine)
    with session_scope() as session:
        session.get_one(JobLog, 900).handle_msg = "done \U0001f600 完成"
        session.get_one(Job, 7).job_desc = "\U0001f600"
    assert only_row(JobLog).handle_msg == "done \U0001f600 完成"


@pytest.mark.parametrize("revision", ["0011_own_schema", "0004_tasks"])
def test_a_conversion_keeps_texts_and_definitions(engine: Engine, revision: str) -> None:
    make_2_4_1(engine)
    convert_all(engine, "latin1", ", ROW_FORMAT = COMPACT")
    long = "é" * 65_535
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "ALTER TABLE xxl_job_info MODIFY COLUMN misfire_strategy varchar(50) NOT NULL"
            " DEFAULT 'DO_NOTHING' COMMENT %s",
            (COMMENT,),
        )
        connection.exec_driver_sql("UPDATE xxl_job_log SET trigger_msg = 'café', handle_msg = %s", (long,))
    migrate_to(engine, revision)
    migrate(engine.url.render_as_string(hide_password=False))
    bind(engine)
    log = only_row(JobLog)
    assert (log.trigger_msg, log.handle_msg, log.executor_param) == ("café", long, None)
    of_column = " AND table_name = 'xxl_job_info' AND column_name = 'misfire_strategy'"
    with engine.connect() as connection:
        found = connection.execute(
            text(COLUMN.format("column_type, is_nullable, column_default, column_comment") + of_column)
        ).one()
    kind, is_nullable, default, comment = found
    # only MariaDB quotes it
    assert (kind, is_nullable, default.strip("'"), comment) == ("varchar(50)", "NO", "DO_NOTHING", COMMENT)


def test_jobs_of_an_old_server_that_were_upgraded_before_have_room_for_promises(engine: Engine) -> None:
    make_2_4_1(engine)
    migrate_to(engine, "0015_completeness")
    execute(
        engine,
        "ALTER TABLE xxl_job_info DROP COLUMN promises, DROP COLUMN escalation, DROP COLUMN limits,"
        " DROP COLUMN limit_key, DROP COLUMN runs_after,"
        " DROP COLUMN calendar, ROW_FORMAT = COMPACT",
    )
    migrate(engine.url.render_as_string(hide_password=False))
    assert lacks(engine) == []


@pytest.mark.parametrize("row_format", ["COMPACT", "REDUNDANT"])
def test_the_registry_of_an_old_server_gets_an_index_on_whole_texts(engine: Engine, row_format: str) -> None:
    make_2_4_1(engine)
    execute(
        engine,
        "DROP INDEX i_g_k_v ON xxl_job_registry",
        "CREATE INDEX i_g_k_v ON xxl_job_registry (registry_group, registry_key(100), registry_value(100))",
        f"ALTER TABLE xxl_job_registry ROW_FORMAT = {row_format}",
        f"ALTER TABLE xxl_job_user ROW_FORMAT = {row_format}",
    )
    migrate(engine.url.render_as_string(hide_password=False))
    assert lacks(engine) == []
    of_index = "table_schema = DATABASE() AND index_name = 'i_g_k_v' AND sub_part IS NULL AND non_unique = 0"
    with engine.connect() as connection:
        found = connection.scalar(
            text(f"SELECT COUNT(*) FROM information_schema.statistics WHERE {of_index}")
        )
    assert found == 3


def test_names_that_differ_stay_different(engine: Engine) -> None:
    make_2_4_1(engine)
    convert_all(engine, "utf8mb3 COLLATE utf8mb3_bin")
    names = ("ana", "Ana", "ána")
    execute(
        engine,
        *(f"INSERT INTO xxl_job_user (username, password, role) VALUES ('{n}', 'x', 0)" for n in names),
    )
    migrate(engine.url.render_as_string(hide_password=False))
    bind(engine)
    assert {user.username for user in all_rows(User)} == {"admin", *names}
    exact = " AND table_name = 'xxl_job_registry' AND column_name LIKE 'registry_%'"
    with engine.connect() as connection:
        assert set(connection.scalars(text(COLUMN.format("collation_name") + exact))) == {"utf8mb4_bin"}


@pytest.mark.parametrize(
    ("collation", "names", "expected"),
    [
        ("latin1 COLLATE latin1_general_ci", ("ana", "ána"), "utf8mb4_bin"),
        ("latin1 COLLATE latin1_general_cs", ("ana", "Ana"), "utf8mb4_bin"),
        ("gbk COLLATE gbk_chinese_ci", ("ana", "ａna", "王伟"), "utf8mb4_bin"),
        ("gbk COLLATE gbk_chinese_ci", ("ana", "王伟"), "utf8mb4_unicode_ci"),
        ("utf8mb3 COLLATE utf8mb3_uca1400_as_cs", ("ana", "Ana"), "utf8mb4_uca1400_as_cs"),
    ],
)
def test_names_stay_different_where_the_new_collation_is_coarser(
    engine: Engine, collation: str, names: tuple[str, ...], expected: str
) -> None:
    make_2_4_1(engine)
    if "uca1400" in collation and (engine.dialect.server_version_info or ()) < (10, 10):
        pytest.skip("this server does not have the collation")
    convert_all(engine, collation)
    execute(
        engine,
        *(f"INSERT INTO xxl_job_user (username, password, role) VALUES ('{n}', 'x', 0)" for n in names),
    )
    migrate(engine.url.render_as_string(hide_password=False))
    with engine.connect() as connection:
        of_names = " AND table_name = 'xxl_job_user' AND column_name = 'username'"
        assert connection.scalar(text(COLUMN.format("collation_name") + of_names)) == expected
    bind(engine)
    assert {user.username for user in all_rows(User)} == {"admin", *names}


def test_a_text_too_long_for_its_type_gets_a_larger_one(engine: Engine) -> None:
    make_2_4_1(engine)
    convert_all(engine, "utf8mb3")
    execute(
        engine,
        "ALTER TABLE xxl_job_info MODIFY executor_param varchar(20000) COMMENT 'long'",
        "UPDATE xxl_job_info SET executor_param = REPEAT('x', 20000)",
    )
    migrate(engine.url.render_as_string(hide_password=False))
    bind(engine)
    assert only_row(Job).executor_param == "x" * 20_000


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("ALTER TABLE xxl_job_log MODIFY executor_param varchar(16000)", "Row size too large"),
        (
            "CREATE INDEX mine ON xxl_job_log (executor_address, executor_handler, executor_param)",
            "key was too long",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_table(engine: Engine, statement: str, reason: str) -> None:
    make_2_4_1(engine)
    convert_all(engine, "utf8mb3" if "INDEX" in statement else "latin1")
    execute(engine, statement)
    with pytest.raises(
        NotConfigured, match=f"cannot be upgraded: xxl_job_log: .*{reason}.*run the upgrade again"
    ):
        migrate(engine.url.render_as_string(hide_password=False))


def test_an_interrupted_conversion_is_continued(engine: Engine) -> None:
    make_2_4_1(engine)
    convert_all(engine, "utf8mb3")
    url = engine.url.render_as_string(hide_password=False)
    migrate(url)
    execute(
        engine,
        "ALTER TABLE xxl_job_log CONVERT TO CHARACTER SET utf8mb3",
        "UPDATE alembic_version SET version_num = '0011_own_schema'",
    )
    migrate(url)
    assert charsets(engine) == {"utf8mb4"}


def test_tables_of_the_original_are_not_rebuilt(engine: Engine) -> None:
    make_2_4_1(engine)
    migrate_to(engine, "0011_own_schema")
    with interrupted_after(0):
        migrate_to(engine, "0012_utf8mb4")


def test_a_date_that_is_none_does_not_stop_a_strict_server(engine: Engine) -> None:
    make_2_4_1(engine)
    convert_all(engine, "utf8mb3")
    execute(
        engine,
        "SET SESSION sql_mode = ''",
        "UPDATE xxl_job_group SET update_time = '0000-00-00'",
        "UPDATE xxl_job_log SET handle_time = '2024-00-00'",
    )
    strict = engine.url.update_query_dict({"sql_mode": "TRADITIONAL"})
    migrate(strict.render_as_string(hide_password=False))
    bind(engine)
    assert (only_row(Group).update_time, only_row(JobLog).handle_time) == (None, None)
