"""A database of XXL-JOB 2.2, whose jobs have a cron instead of a schedule type, is adopted whole; the original has MySQL only."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, NullPool, create_engine, inspect

from app.config import Config
from app.db import bind_engine, session_scope, transact, unbind_engine
from app.domain.enums import AddressType
from app.models.group import Group
from app.models.job import Job
from app.models.report import DayReport
from app.pipeline.registration import tick_registry
from app.pipeline.scan import scan
from tests.databases import migrate, run_script
from tests.factories import T0, all_rows, make_job, only_row
from tests.test_migrations import execute, lacks, migrate_to

DATABASES_ENOUGH = ("mariadb",)


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


#: where an upgrade may have stopped: not begun, done by a release that took the tables as they were, and within the step that adopts them
ADDED = "ALTER TABLE xxl_job_info ADD COLUMN schedule_type varchar(50) NOT NULL DEFAULT 'NONE'"
CONF_ADDED = "ALTER TABLE xxl_job_info ADD COLUMN schedule_conf varchar(128)"
STOPPED = {
    "fresh": ("", []),
    "broken": ("0009", []),
    "one column": ("0009", [ADDED]),
    "not copied": ("0009", [ADDED, CONF_ADDED]),
}


@pytest.mark.parametrize(("revision", "begun"), STOPPED.values(), ids=STOPPED)
def test_the_schedules_are_kept_wherever_an_upgrade_has_stopped(
    url: str, engine: Engine, revision: str, begun: list[str]
) -> None:
    if revision:
        migrate_to(engine, revision)
        execute(engine, *begun)
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


def test_jobs_and_groups_are_added_and_registered_executors_listed(url: str) -> None:
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


def test_a_schedule_changed_after_the_adoption_is_left_as_it_is(url: str, engine: Engine) -> None:
    """Also where the step is run again."""
    migrate(url)
    execute(engine, "UPDATE xxl_job_info SET schedule_type = 'NONE', schedule_conf = NULL WHERE id = 8")
    execute(engine, "UPDATE alembic_version SET version_num = '0009'")
    migrate(url)
    bind(url)
    assert only_row(Job, id=8).schedule_type == "NONE"
    assert {column["name"]: column["nullable"] for column in inspect(engine).get_columns("xxl_job_info")}[
        "job_cron"
    ]
