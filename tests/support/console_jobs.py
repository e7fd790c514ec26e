"""Helpers of the tests of console jobs, for all that need them."""

from app.database.engine import read_scope
from app.models.job import Job

FORM = {
    "job_desc": "Nightly <b>report</b>",
    "author": "ann",
    "alarm_email": "",
    "schedule_type": "CRON",
    "cron": "0 0 3 * * ?",
    "time_zone": "",
    "not_before": "",
    "not_after": "",
    "glue_type": "BEAN",
    "executor_handler": "demoJobHandler",
    "executor_param": "a=1",
    "executor_route_strategy": "ROUND",
    "child_jobid": "",
    "misfire_strategy": "DO_NOTHING",
    "executor_block_strategy": "SERIAL_EXECUTION",
    "executor_timeout": "",
    "executor_fail_retry_count": "2",
    "retry_interval_s": "5",
    "retry_backoff_percent": "",
    "delivery": "auto",
}


def job_of(job_id: int) -> Job:
    with read_scope() as session:
        job = session.get(Job, job_id)
        assert job is not None
        return job


def only_job() -> Job:
    with read_scope() as session:
        return session.query(Job).one()


def error_at(page: str, field: str) -> str:
    return page.split(f'id="{field}-error"')[1].split("</div>")[0]
