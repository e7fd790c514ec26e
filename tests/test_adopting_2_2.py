"""Adopting a database of XXL-JOB 2.2: its jobs have a cron instead of a schedule type; MySQL only."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, NullPool, create_engine, inspect

from app.database.engine import bind_engine, session_scope, transact, unbind_engine
from app.domain.enums import AddressType
from app.models.group import Group
from app.models.job import Job
from app.models.report import DayReport
from app.pipeline.registration import tick_registry
from app.pipeline.scan import scan
from app.settings.config import Config
from tests.support.databases import migrate, run_script
from tests.support.factories import T0, all_rows, make_job, only_row
from tests.support.migrations import execute, lacks, migrate_to

pytestmark = pytest.mark.databases("mariadb")


@pytest.fixture
def url(empty_database: str) -> Iterator[str]:
    run_script(empty_database, "xxl_job_2_2_0.sql")
    yield empty_database
    unbind_engine()


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    made = create_engine(url, poolclass=NullPool)
    yield made
    made.dispose()


def bind(url: str) -> None:
    bind_engine(Config(database_url=url, time_zone="Asia/Shanghai"))


#: revision 0009 left the tables of 2.2 unchanged: no schedule types or update times, short address lists
AS_0009 = [
    *(f"ALTER TABLE xxl_job_info DROP COLUMN {name}" for name in ("schedule_type", "schedule_conf")),
    "ALTER TABLE xxl_job_info DROP COLUMN misfire_strategy, MODIFY COLUMN job_cron varchar(128) NOT NULL",
    "ALTER TABLE xxl_job_group DROP COLUMN update_time, MODIFY COLUMN address_list varchar(512)",
    "ALTER TABLE xxl_job_log_report DROP COLUMN update_time",
    "UPDATE alembic_version SET version_num = '0009'",
]
ADDED = "ALTER TABLE xxl_job_info ADD COLUMN schedule_type varchar(50) NOT NULL DEFAULT 'NONE'"
CONF_ADDED = "ALTER TABLE xxl_job_info ADD COLUMN schedule_conf varchar(128)"
#: results of earlier upgrades; the last two were interrupted
EARLIER = {
    "none": [],
    "0009": AS_0009,
    "one column": [*AS_0009, ADDED],
    "not converted": [*AS_0009, ADDED, CONF_ADDED],
}


@pytest.mark.parametrize("statements", EARLIER.values(), ids=EARLIER)
def test_crons_become_schedules_after_any_earlier_upgrade(
    url: str, engine: Engine, statements: list[str]
) -> None:
    if statements:
        crons = "UPDATE xxl_job_info SET schedule_type = 'NONE', schedule_conf = NULL"
        migrate_to(engine, "0002_own_schema")
        execute(engine, crons, *statements)
    migrate(url)
    assert lacks(engine) == []
    bind(url)
    assert [
        (job.id, job.schedule_type, job.schedule_conf, job.misfire_strategy) for job in all_rows(Job)
    ] == [
        (7, "CRON", "* * * * * ?", "DO_NOTHING"),
        (8, "CRON", "0 0 3 * * ?", "DO_NOTHING"),
        (9, "NONE", None, "DO_NOTHING"),
    ]
    job = only_row(Job, id=7)
    assert (job.trigger_status, job.trigger_last_time, job.trigger_next_time) == (
        1,
        1_588_298_399_000,
        1_588_298_400_000,
    )
    assert only_row(DayReport).update_time is None


def test_an_adopted_database_accepts_new_jobs_and_long_address_lists(url: str) -> None:
    migrate(url)
    bind(url)
    assert {fire.job_id for fire in scan(node="one", zone="Asia/Shanghai", now_ms=T0)} == {7}
    make_job(schedule_type="FIX_RATE", schedule_conf="60")
    with session_scope() as session:
        session.get_one(Group, 2).address_type = AddressType.MANUAL
        session.get_one(Group, 2).address_list = ",".join(
            f"http://10.0.0.{number}:9999/" for number in range(100)
        )
    transact(lambda session: tick_registry(session, now_ms=T0))
    assert len(only_row(Group, id=2).addresses) == 100


def test_a_schedule_changed_after_the_adoption_is_kept(url: str, engine: Engine) -> None:
    """Even when the conversion runs again."""
    migrate_to(engine, "0002_own_schema")
    execute(engine, "UPDATE xxl_job_info SET schedule_type = 'NONE', schedule_conf = NULL WHERE id = 8")
    execute(engine, "UPDATE alembic_version SET version_num = '0009'")
    migrate(url)
    bind(url)
    assert only_row(Job, id=8).schedule_type == "NONE"
    assert {column["name"]: column["nullable"] for column in inspect(engine).get_columns("xxl_job_info")}[
        "job_cron"
    ]
