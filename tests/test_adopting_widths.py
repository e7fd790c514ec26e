"""Adopting tables whose job texts users have widened: the columns with copies of them follow; MySQL only."""

import pytest
from sqlalchemy import Engine, text

from app.database.engine import session_scope
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from tests.support.databases import migrate
from tests.support.factories import only_row
from tests.support.migrations import bind, execute, interrupted_after, lacks, make_2_4_1, migrate_to

pytestmark = pytest.mark.databases("mariadb")

TYPES = """
    SELECT CONCAT(table_name, '.', column_name), column_type FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name IN ('xxl_job_log', 'xxl_job_fire')
    AND column_name IN ('executor_handler', 'executor_param')
"""
DEFINED = """
    SELECT is_nullable, column_comment, collation_name FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'xxl_job_log' AND column_name = 'executor_param'
"""


def types(engine: Engine) -> dict[str, str]:
    with engine.connect() as connection:
        return dict(connection.execute(text(TYPES)).tuples().all())


@pytest.mark.parametrize(
    ("kind", "of_log", "of_fire"),
    [
        ("varchar(600)", "varchar(2048)", "text"),
        ("varchar(2000)", "text", "text"),
        ("text", "text", "text"),
        ("mediumtext", "mediumtext", "mediumtext"),
        ("longtext", "longtext", "longtext"),
    ],
)
def test_copies_of_a_parameter_get_the_width_of_the_job(
    engine: Engine, kind: str, of_log: str, of_fire: str
) -> None:
    make_2_4_1(engine)
    execute(engine, f"ALTER TABLE xxl_job_info MODIFY executor_param {kind}")
    migrate(engine.url.render_as_string(hide_password=False))
    assert lacks(engine) == []
    assert types(engine) == {
        "xxl_job_log.executor_handler": "varchar(255)",
        "xxl_job_log.executor_param": of_log,
        "xxl_job_fire.executor_param": of_fire,
    }


def test_copies_of_a_handler_get_the_width_of_the_job(engine: Engine) -> None:
    make_2_4_1(engine)
    execute(engine, "ALTER TABLE xxl_job_info MODIFY executor_handler varchar(500)")
    migrate(engine.url.render_as_string(hide_password=False))
    assert types(engine)["xxl_job_log.executor_handler"] == "varchar(500)"


def test_a_widened_column_keeps_its_definition_and_its_texts(engine: Engine) -> None:
    make_2_4_1(engine)
    execute(
        engine,
        "UPDATE xxl_job_log SET executor_param = 'as it was'",
        "ALTER TABLE xxl_job_info MODIFY executor_param text",
        "ALTER TABLE xxl_job_log MODIFY executor_param varchar(512) COLLATE utf8mb4_bin"
        " NOT NULL DEFAULT '' COMMENT '100 %%, (a:b) `c`'",
    )
    migrate(engine.url.render_as_string(hide_password=False))
    with engine.connect() as connection:
        assert connection.execute(text(DEFINED)).one() == ("NO", "100 %, (a:b) `c`", "utf8mb4_bin")
    bind(engine)
    assert only_row(JobLog).executor_param == "as it was"


def test_the_longest_text_of_a_job_can_be_copied_afterwards(engine: Engine) -> None:
    make_2_4_1(engine)
    execute(engine, "ALTER TABLE xxl_job_info MODIFY executor_param varchar(14000)")
    migrate(engine.url.render_as_string(hide_password=False))
    bind(engine)
    longest = "\U0001f600" * 14_000
    with session_scope() as session:
        session.get_one(Job, 7).executor_param = longest
        session.get_one(JobLog, 900).executor_param = longest
        session.add(Fire(job_id=7, fire_key="a", due_time=0, trigger_type="MANUAL", executor_param=longest))
    assert only_row(JobLog).executor_param == only_row(Fire).executor_param == longest


@pytest.mark.parametrize("kind", ["varchar(512)", "text"])
def test_columns_that_are_wide_enough_are_not_changed(engine: Engine, kind: str) -> None:
    """As those of 2.4, and of 3.4."""
    make_2_4_1(engine)
    execute(engine, *(f"ALTER TABLE xxl_job_{name} MODIFY executor_param {kind}" for name in ("info", "log")))
    migrate_to(engine, "0012_utf8mb4")
    with interrupted_after(0):
        migrate_to(engine, "0013_copied_texts")


def test_an_interrupted_widening_is_continued(engine: Engine) -> None:
    make_2_4_1(engine)
    execute(engine, "ALTER TABLE xxl_job_info MODIFY executor_param mediumtext")
    migrate_to(engine, "0012_utf8mb4")
    execute(engine, "ALTER TABLE xxl_job_log MODIFY executor_param mediumtext")
    migrate(engine.url.render_as_string(hide_password=False))
    assert set(types(engine).values()) == {"varchar(255)", "mediumtext"}
