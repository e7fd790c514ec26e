"""Rows of a busy console for ``pages.py``: groups, jobs, a month of runs, alarms, channels, changes."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Engine, insert, text

from app.clock import DAY_MS
from app.database.rows.bulk import table_of
from app.models.alarm import Alarm
from app.models.audit import AuditEntry
from app.models.base import Base
from app.models.channel import AlarmChannel, ChannelScope
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.report import WHOLE_DAY, DayReport, GroupDay
from app.models.tag import JobTag

#: rows per transaction
BATCH = 50_000
GROUPS = 20
DAYS = 30
CHANNELS = 20
ENTRIES = 100_000
ADDRESS = "http://127.0.0.1:9"
TRACEBACK = (
    "Traceback (most recent call last):\n" + '  File "jobs.py", line 7, in bench\n    check(row)\n' * 20
) + "ValueError: reconciliation failed"
#: one run in this many failed; of these, in turn: timed out, killed, not started, failed by itself twice
FAILED_EACH = 50
FAILURES: tuple[dict[str, Any], ...] = (
    {"handle_code": 502},
    {"killed": 1},
    {"trigger_code": 500, "handle_code": 0, "handle_time": None, "handle_msg": None},
    {},
    {},
)
Row = dict[str, Any]


class Size(NamedTuple):
    """Numbers of jobs and runs, the first id of groups and of jobs, and the time of the newest run."""

    jobs: int
    rows: int
    at_ms: int
    first_group: int = 0
    first_job: int = 0

    def run_ms(self, number: int) -> int:
        """Return when a run was triggered."""
        return self.at_ms - (self.rows - number) * (DAYS * DAY_MS // self.rows)


def fill(engine: Engine, jobs: int, rows: int, at_ms: int) -> None:
    """Insert all rows: 1 run in 50 failed, the last 20 are running, 1 in 5,000 is unresolved."""
    groups = [
        {"app_name": f"bench-{n}", "title": f"Bench {n}", "address_type": 1, "address_list": ADDRESS}
        for n in range(GROUPS)
    ]
    with engine.begin() as connection:
        connection.execute(insert(Group), groups)
        first_group = connection.scalar(text("SELECT MIN(id) FROM xxl_job_group WHERE app_name = 'bench-0'"))
        size = Size(jobs, rows, at_ms, int(first_group or 0))
        connection.execute(insert(Job), [_job(number, size) for number in range(jobs)])
        first_job = connection.scalar(text("SELECT MIN(id) FROM xxl_job_info WHERE job_desc = 'job 0'"))
        size = size._replace(first_job=int(first_job or 0))
    _insert(engine, JobTag, (_tag(size.first_job + number // 2, number) for number in range(2 * jobs)))
    _insert(engine, JobLog, (_log(number, size) for number in range(rows)))
    _insert(engine, Alarm, _alarms(size))
    _insert(engine, AuditEntry, (_entry(number, size) for number in range(ENTRIES)))
    _fill_reports(engine, size)
    _fill_channels(engine, size)
    # as a database that has run for a while: with statistics, marks for scans of an index alone, on disk
    statements = {
        "mysql": ("ANALYZE TABLE xxl_job_log, xxl_job_info, xxl_job_alarm, xxl_job_audit",),
        "postgresql": ("VACUUM ANALYZE", "CHECKPOINT"),
    }
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in statements.get(engine.dialect.name, ("ANALYZE",)):
            connection.execute(text(statement))


def _insert(engine: Engine, model: type[Base], rows: Iterator[Row]) -> None:
    while batch := list(islice(rows, BATCH)):
        with engine.begin() as connection:
            connection.execute(insert(table_of(model)), batch)


def _fill_reports(engine: Engine, size: Size) -> None:
    midnight = size.at_ms // DAY_MS * DAY_MS
    days = [
        {"trigger_day": midnight - n * DAY_MS, "running_count": 0, "suc_count": 33_000, "fail_count": 600}
        for n in range(DAYS)
    ]
    counts = {"suc_count": 33_000 // GROUPS, "fail_count": 600 // GROUPS}
    shares = [counts | {"job_group": size.first_group + n} for n in range(GROUPS)]
    shares.append({"suc_count": 0, "fail_count": 0, "job_group": WHOLE_DAY})
    _insert(engine, DayReport, iter(days))
    of_groups = (share | {"trigger_day": day["trigger_day"]} for day in days for share in shares)
    _insert(engine, GroupDay, of_groups)


def _fill_channels(engine: Engine, size: Size) -> None:
    """Insert channels, each for one group and ten jobs."""
    settings = json.dumps({"url": "http://127.0.0.1:9/"})
    channel = {"kind": "webhook", "settings": settings, "updated_ms": size.at_ms}
    with engine.begin() as connection:
        connection.execute(
            insert(AlarmChannel), [channel | {"name": f"channel {number}"} for number in range(CHANNELS)]
        )
        first = int(connection.scalar(text("SELECT MIN(id) FROM xxl_job_channel")) or 0)
    scopes: list[Row] = []
    for number in range(CHANNELS):
        scopes.append({"channel_id": first + number, "group_id": size.first_group + number, "job_id": 0})
        for job in range(10):
            scopes.append({"channel_id": first + number, "group_id": 0, "job_id": size.first_job + job})
    _insert(engine, ChannelScope, iter(scopes))


def _job(number: int, size: Size) -> Row:
    return {
        "job_group": size.first_group + number % GROUPS,
        "job_desc": f"job {number}",
        "author": "bench",
        "alarm_email": "ops@example.com" if number % 100 == 0 else "",
        "schedule_type": "CRON",
        "schedule_conf": f"{number % 50} {number // 50 % 10}/10 * * * ?",  # 500 different ones
        "misfire_strategy": "DO_NOTHING",
        "executor_route_strategy": "ROUND",
        "executor_handler": "bench",
        "executor_block_strategy": "SERIAL_EXECUTION",
        "glue_type": "GLUE_SHELL" if number == 0 else "BEAN",
        "glue_source": "echo one",
        "trigger_status": 1,
        "trigger_next_time": size.at_ms + number % 600 * 1000,
    }


def _tag(job_id: int, number: int) -> Row:
    """Return one of the two tags of a job: the first is one of 10, the second one of 1,000."""
    tag = f"team {number // 2 % 10}" if number % 2 == 0 else f"topic {number // 2 % 1_000}"
    return {"job_id": job_id, "tag": tag, "tag_key": tag}


def _log(number: int, size: Size) -> Row:
    when = size.run_ms(number)
    unresolved, running, failed = number % 5_000 == 7, number >= size.rows - 20, number % FAILED_EACH == 0
    is_open = unresolved or running
    row = {
        "job_group": size.first_group + number % size.jobs % GROUPS,
        "job_id": size.first_job + number % size.jobs,
        "executor_address": ADDRESS,
        "executor_handler": "bench",
        "executor_param": "",
        "executor_fail_retry_count": 0,
        "trigger_time": when,
        "trigger_type": "CRON",
        "trigger_code": 504 if unresolved else 200,
        "trigger_msg": "Trigger type: CRON\n" * 10,
        "handle_time": None if is_open else when + 1000,
        "handle_code": 0 if is_open else 500 if failed else 200,
        "handle_msg": TRACEBACK if failed else None,
        "duration_ms": None if is_open else 1_000,
        "killed": 0,
        "alarm_status": 0,
    }
    # by the turn of the job, so that one job has failures of all kinds
    return row | FAILURES[number // size.jobs % len(FAILURES)] if failed and not is_open else row


def _alarms(size: Size) -> Iterator[Row]:
    """Yield an alarm for each failed run; half of them belong to the first job."""
    for number in range(0, size.rows, FAILED_EACH):
        job = 0 if number // FAILED_EACH % 2 == 0 else number % size.jobs
        yield {
            "log_id": number + 1,
            "job_id": size.first_job + job,
            "reason": "failed",
            "state": "SENT",
            "attempts": 1,
            "created_ms": size.run_ms(number),
            "outcome": json.dumps({"mail": "sent", f"channel {number % CHANNELS}": "sent"}),
        }


def _entry(number: int, size: Size) -> Row:
    """Return an entry of the change history: 1 in 10 is a refusal, 1 in 1,000 is about the first job."""
    refused, job = number % 10 == 0, 0 if number % 1_000 == 1 else number % size.jobs
    changes = {"executor_param": ["", str(number)], "author": ["ann", "bench"]}
    return {
        "at_ms": size.at_ms - (ENTRIES - number) * (DAYS * DAY_MS // ENTRIES),
        "user_id": None if refused else 1,
        "username": "admin" if number % 3 else "bench",
        "address": "127.0.0.1",
        "action": "login.refused" if refused else "job.update",
        "object_type": "" if refused else "job",
        "object_id": 0 if refused else size.first_job + job,
        "changes": "{}" if refused else json.dumps(changes),
    }
