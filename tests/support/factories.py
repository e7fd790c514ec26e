"""Row factories: each function commits a row with defaults and returns it, detached but readable."""

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Select, select

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.database.rows.bulk import read_rows
from app.domain.executors.draining import bare_address
from app.models.base import Base
from app.models.drain import Drain
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog

Row = TypeVar("Row", bound=Base)

#: 2024-05-01 03:04:05.000 UTC, the "now" of most tests: a whole second, because DATETIME columns keep no more
T0: Millis = 1_714_532_645_000
#: 2024-10-27 02:00 in Berlin, in summer and then in winter time
BERLIN_FIRST_TWO, BERLIN_SECOND_TWO = 1_729_987_200_000, 1_729_990_800_000
#: addresses without a listener
FIRST, SECOND, THIRD = "http://127.0.0.1:1111/", "http://127.0.0.1:2222/", "http://127.0.0.1:3333/"

_numbers = itertools.count(1)


def save(row: Row) -> Row:
    """Commit a row and return it."""
    with session_scope() as session:
        session.add(row)
    return row


def remove(row: Base) -> None:
    """Delete a row and commit."""
    with session_scope() as session:
        session.delete(session.merge(row))


def make_group(**overrides: Any) -> Group:
    """Commit an executor group with a manual address."""
    values = {
        "app_name": "demo-executor",
        "title": "Demo",
        "address_type": 1,
        "address_list": FIRST,
        "update_time": T0,
    }
    return save(Group(**{**values, **overrides}))


def make_job(**overrides: Any) -> Job:
    """Commit a stopped BEAN job in a new group; ``job_group`` or ``addresses`` select another group."""
    addresses = overrides.pop("addresses", FIRST)
    if "job_group" not in overrides:
        overrides["job_group"] = make_group(address_list=addresses).id
    values = {
        "job_desc": f"job {next(_numbers)}",
        "add_time": T0,
        "update_time": T0,
        "author": "alice",
        "schedule_type": "NONE",
        "schedule_conf": "",
        "misfire_strategy": "DO_NOTHING",
        "executor_route_strategy": "FIRST",
        "executor_handler": "demoJobHandler",
        "executor_param": "",
        "executor_block_strategy": "SERIAL_EXECUTION",
        "glue_type": "BEAN",
        "glue_source": "",
        "glue_updatetime": T0,
        "child_jobid": "",
    }
    return save(Job(**{**values, **overrides}))


def make_due_job(next_ms: Millis, schedule_type: str = "FIX_RATE", conf: str = "10", **overrides: Any) -> Job:
    """Commit an enabled job with a next trigger time."""
    schedule = {
        "schedule_type": schedule_type,
        "schedule_conf": conf,
        "trigger_status": 1,
        "trigger_next_time": next_ms,
    }
    return make_job(**{**schedule, **overrides})


def make_log(job: Job, **overrides: Any) -> JobLog:
    """Commit the log row of a run that its executor has accepted."""
    values = {
        "job_group": job.job_group,
        "job_id": job.id,
        "executor_address": FIRST,
        "executor_handler": job.executor_handler,
        "executor_param": job.executor_param,
        "executor_fail_retry_count": job.executor_fail_retry_count,
        "trigger_time": T0,
        "trigger_code": 200,
        "trigger_msg": "sent",
        "handle_code": 0,
        "alarm_status": 0,
    }
    return save(JobLog(**{**values, **overrides}))


def make_fire(job: Job, **overrides: Any) -> Fire:
    """Commit a PENDING fire of a job's schedule, due at T0."""
    due_ms = overrides.get("due_time", T0)
    values = {
        "job_id": job.id,
        "fire_key": f"test:{job.id}:{next(_numbers)}",
        "due_time": due_ms,
        "trigger_type": "CRON",
    }
    return save(Fire(**{**values, **overrides}))


def make_run(job: Job, *, log: dict[str, Any] | None = None, **fire: Any) -> JobLog:
    """Commit an accepted run: its log row and its fire."""
    row = make_log(job, **(log or {}))
    make_fire(
        job,
        **{
            "state": "ACCEPTED",
            "log_id": row.id,
            "address": row.executor_address,
            "attempt": 1,
            "epoch": 1,
            **fire,
        },
    )
    return row


def make_drains(job: Job, *addresses: str) -> None:
    """Drain instances of a job's group."""
    for address in addresses:
        save(Drain(group_id=job.job_group, address=bare_address(address), since_ms=T0, username="ann"))


def all_rows(model: type[Row], **equal: Any) -> list[Row]:
    """Return the committed rows of a table, ids ascending; ``equal`` restricts columns to values."""
    with read_scope() as session:
        rows = select(model).filter_by(**equal).order_by(model.id)  # type: ignore[attr-defined]
        return list(session.scalars(rows))


def plain_rows(model: type[Base]) -> Sequence[Any]:
    """Return the committed rows with their columns, ids ascending, without the ORM's loading, which is slow.

    For tests that read whole tables after each of many steps.
    """
    with read_scope() as session:
        return read_rows(session, _whole_table(model))


@cache
def _whole_table(model: type[Base]) -> Select[Any]:
    table = model.__table__
    return select(table).order_by(table.c.id)


def only_row(model: type[Row], **equal: Any) -> Row:
    """Return the only committed row."""
    (row,) = all_rows(model, **equal)
    return row
