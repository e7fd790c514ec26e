"""Adopting a database of XXL-JOB 3.4: longer parameters, and a run mode of its own; MySQL only."""

import pytest
from sqlalchemy import Engine

from app.database.engine import transact
from app.domain.access.permissions import system_actor
from app.errors import InvalidInput
from app.models.job import Job
from app.models.log import JobLog
from app.models.user import User
from app.services.accounts import passwords
from app.services.jobs import changes, jobs
from tests.pipeline.steps import claim_one
from tests.support.databases import migrate
from tests.support.factories import FIRST, T0, all_rows, only_row
from tests.support.migrations import bind, execute, lacks, make_2_4_1

pytestmark = pytest.mark.databases("mariadb")

ADMIN = system_actor("test")
LONG = "报" * 2_048
SHA256_OF_123456 = "8d969eef6ecad3c29a3a629280e686cf0c3f5d5a86aff3ca12020c923adc6c92"
#: changes from 2.4.1 to 3.4.2, and rows that only 3.2 and later can have
AS_3_4 = (
    "DELETE FROM xxl_job_registry",
    "DROP INDEX i_g_k_v ON xxl_job_registry",
    "ALTER TABLE xxl_job_registry MODIFY COLUMN id bigint(20) NOT NULL AUTO_INCREMENT",
    "CREATE UNIQUE INDEX i_g_k_v ON xxl_job_registry (registry_group, registry_key, registry_value)",
    "CREATE INDEX I_jobgroup ON xxl_job_log (job_group)",
    "CREATE INDEX I_jobid ON xxl_job_log (job_id)",
    "ALTER TABLE xxl_job_user MODIFY COLUMN password varchar(100) NOT NULL, ADD COLUMN token varchar(100)",
    "ALTER TABLE xxl_job_group MODIFY COLUMN title varchar(64) NOT NULL",
    "ALTER TABLE xxl_job_info MODIFY COLUMN executor_param text",
    "ALTER TABLE xxl_job_log MODIFY COLUMN executor_param text",
    f"UPDATE xxl_job_user SET password = '{SHA256_OF_123456}'",
    f"UPDATE xxl_job_group SET address_type = 1, address_list = '{FIRST}'",
    f"UPDATE xxl_job_info SET executor_param = '{LONG}', author = 'XXL',"
    " misfire_strategy = 'DO_NOTHING', executor_block_strategy = 'SERIAL_EXECUTION'",
    "INSERT INTO xxl_job_info (job_group, job_desc, glue_type, glue_source)"
    " VALUES (1, 'old script', 'GLUE_PYTHON2', 'print 1')",
)


@pytest.fixture
def engine(engine: Engine, empty_database: str) -> Engine:
    """The engine of a database that was adopted."""
    make_2_4_1(engine)
    execute(engine, *AS_3_4)
    migrate(empty_database)
    bind(engine)
    return engine


def test_it_has_all_columns_and_its_users_log_in(engine: Engine) -> None:
    assert lacks(engine) == []
    assert passwords.verify(only_row(User).password, "123456")
    assert [job.glue_type for job in all_rows(Job)] == ["BEAN", "GLUE_PYTHON2"]


def test_a_job_with_a_long_parameter_can_be_changed_and_run(engine: Engine) -> None:
    job_id = all_rows(Job)[0].id
    transact(
        lambda session: changes.change_job(
            session, job_id, {"description": "renamed"}, actor=ADMIN, clock=lambda: T0
        )
    )
    job = all_rows(Job)[0]
    assert (job.job_desc, job.executor_param) == ("renamed", LONG)
    transact(
        lambda session: jobs.trigger_job(
            session, job_id, executor_param=LONG, address_list=None, actor=ADMIN, now_ms=T0
        )
    )
    claimed = claim_one()
    assert all_rows(JobLog)[-1].executor_param == claimed.request.executor_params == LONG


def test_another_parameter_has_at_most_2048_characters(engine: Engine) -> None:
    job_id = all_rows(Job)[0].id
    with pytest.raises(InvalidInput, match="2048"):
        transact(
            lambda session: jobs.trigger_job(
                session, job_id, executor_param=LONG + "!", address_list=None, actor=ADMIN, now_ms=T0
            )
        )
    with pytest.raises(InvalidInput, match="2048"):
        transact(
            lambda session: changes.change_job(
                session, job_id, {"param": LONG + "!"}, actor=ADMIN, clock=lambda: T0
            )
        )
