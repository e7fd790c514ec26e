"""Cost of each page of the console with many jobs and a long log, for an administrator and a normal user.

Everything but a database server runs in this process, without a network; with ``--beside 100`` a running
console is asked, while a scheduler triggers 100 runs a second and the console takes their results. Prints one
JSON line: page -> median and 95th percentile in ms, and the median CPU time of this process, which a busy
machine affects least; pages of a normal user, with half the groups, end with ``:user``. Example:
``.venv/bin/python bench/pages.py --jobs 10000 --rows 1000000 --only 'jobs
dashboard.*'``.
"""

import argparse
import gc
import json
import re
import time
from collections import Counter
from collections.abc import Callable

import requests
from flask import Flask
from harness import Cluster, cluster, make_jobs, wait_until
from lists import FILL, timed
from sqlalchemy import Engine, insert, select, text, update

from app.clock import DAY_MS, now_ms
from app.console.web.current import COOKIE
from app.db import session_scope
from app.domain.enums import Role
from app.factory import create_app
from app.models.favourite import Favourite
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.report import WHOLE_DAY, DayReport, GroupDay
from app.models.tag import JobTag
from app.models.user import User
from app.services.accounts import login

GROUPS = 20
DAYS = 30
ROUNDS = 15
#: favourites of each reader
STARRED = 200
#: from the start of the runs beside the requests to their first instant
WARM_UP_MS = 15_000
TRACEBACK = (
    "Traceback (most recent call last):\n" + '  File "jobs.py", line 7, in bench\n    check(row)\n' * 20
) + "ValueError: reconciliation failed"
ADDRESS = "http://127.0.0.1:9"


def fill(engine: Engine, jobs: int, rows: int, at_ms: int) -> None:
    """Insert groups, jobs and log rows: 1 in 50 failed, the last 20 running, 1 in 5,000 unresolved."""
    with engine.begin() as connection:
        groups = [
            {
                "app_name": f"bench-{n}",
                "title": f"Bench {n}",
                "address_type": 1,
                "address_list": "http://127.0.0.1:9",
            }
            for n in range(GROUPS)
        ]
        connection.execute(insert(Group), groups)
        first = connection.scalar(text("SELECT MIN(id) FROM xxl_job_group WHERE app_name = 'bench-0'"))
        assert first is not None
        connection.execute(insert(Job), [_job(number, int(first), at_ms) for number in range(jobs)])
        first_job = int(
            connection.scalar(text("SELECT MIN(id) FROM xxl_job_info WHERE job_desc = 'job 0'")) or 0
        )
        connection.execute(
            insert(JobTag), [_tag(first_job + number // 2, number) for number in range(2 * jobs)]
        )
    for start in range(0, rows, FILL):
        batch = [
            _log(number, jobs, rows, first_job, int(first), at_ms)
            for number in range(start, min(start + FILL, rows))
        ]
        with engine.begin() as connection:
            connection.execute(insert(JobLog.__table__), batch)  # type: ignore[arg-type]
    midnight = at_ms // DAY_MS * DAY_MS
    with engine.begin() as connection:
        days = [
            {"trigger_day": midnight - n * DAY_MS, "running_count": 0, "suc_count": 33_000, "fail_count": 600}
            for n in range(DAYS)
        ]
        connection.execute(insert(DayReport), days)
        shares = [
            {"suc_count": 33_000 // GROUPS, "fail_count": 600 // GROUPS, "job_group": int(first) + n}
            for n in range(GROUPS)
        ]
        shares.append({"suc_count": 0, "fail_count": 0, "job_group": WHOLE_DAY})
        connection.execute(
            insert(GroupDay),
            [share | {"trigger_day": day["trigger_day"]} for day in days for share in shares],
        )
        connection.execute(
            text("ANALYZE TABLE xxl_job_log, xxl_job_info" if engine.dialect.name == "mysql" else "ANALYZE")
        )


def _job(number: int, first_group: int, at_ms: int) -> dict[str, object]:
    return {
        "job_group": first_group + number % GROUPS,
        "job_desc": f"job {number}",
        "author": "bench",
        "schedule_type": "CRON",
        "schedule_conf": f"{number % 50} {number // 50 % 10}/10 * * * ?",  # 500 different ones
        "misfire_strategy": "DO_NOTHING",
        "executor_route_strategy": "ROUND",
        "executor_handler": "bench",
        "executor_block_strategy": "SERIAL_EXECUTION",
        "glue_type": "GLUE_SHELL" if number == 0 else "BEAN",
        "glue_source": "echo one",
        "trigger_status": 1,
        "trigger_next_time": at_ms + number % 600 * 1000,
    }


def _tag(job_id: int, number: int) -> dict[str, object]:
    """Return one of the two tags of a job: the first is one of 10, the second one of 1,000."""
    tag = f"team {number // 2 % 10}" if number % 2 == 0 else f"topic {number // 2 % 1_000}"
    return {"job_id": job_id, "tag": tag, "tag_key": tag}


def _log(
    number: int, jobs: int, rows: int, first_job: int, first_group: int, at_ms: int
) -> dict[str, object]:
    when = at_ms - (rows - number) * (DAYS * DAY_MS // rows)
    unresolved, running = number % 5_000 == 7, number >= rows - 20
    return {
        "job_group": first_group + number % jobs % GROUPS,
        "job_id": first_job + number % jobs,
        "executor_address": ADDRESS,
        "executor_handler": "bench",
        "executor_param": "",
        "executor_fail_retry_count": 0,
        "trigger_time": when,
        "trigger_code": 504 if unresolved else 200,
        "trigger_msg": "Trigger type: CRON\n" * 10,
        "handle_time": None if unresolved or running else when + 1000,
        "handle_code": 0 if unresolved or running else 500 if number % 50 == 0 else 200,
        "handle_msg": TRACEBACK if number % 50 == 0 else None,
        "alarm_status": 0,
    }


def log_in(name: str, role: Role, group_ids: list[int]) -> str:
    """Return the token of a login of a new user."""
    with session_scope() as session:
        user = User(username=name, password="", role=int(role), permission=",".join(map(str, group_ids)))
        session.add(user)
        session.flush()
        starred = session.scalars(select(Job.id).order_by(Job.id).limit(STARRED))
        session.add_all(Favourite(user_id=user.id, job_id=job_id) for job_id in starred)
        attempt = login.Attempt(name, "", remember=False, address="127.0.0.1", agent="bench")
        return login.open_session(session, user, attempt, now_ms=now_ms()).token


def reader_of(token: str, made: Cluster, app: Flask | None) -> Callable[[str], int]:
    """Return a function that gets a page from the app or the running console, and returns its status."""
    if app is None:
        session = requests.Session()
        session.cookies.set(COOKIE, token)
        return lambda path: session.get(made.admin + path, timeout=60).status_code
    client = app.test_client()
    client.set_cookie(COOKIE, token)
    return lambda path: client.get(made.config.context_path + path).status_code


def run_beside(made: Cluster, a_second: int) -> None:
    """Start console, workers and an executor; wait until this many runs a second succeed."""
    with made.engine().begin() as connection:  # no job of the pages is due meanwhile
        connection.execute(update(Job).values(trigger_next_time=Job.trigger_next_time + DAY_MS))
    make_jobs(made.engine(), a_second, cron="* * * * * ?", first_ms=now_ms() + WARM_UP_MS)
    made.start_console()
    made.start_stub()
    made.start_workers()

    def is_running() -> bool:
        with made.engine().connect() as connection:
            newest = select(JobLog.handle_code).order_by(JobLog.id.desc()).limit(5 * a_second)
            return Counter(connection.scalars(newest))[200] > 3 * a_second

    wait_until(is_running, "the runs beside", made)


def pages(engine: Engine) -> dict[str, str]:
    """Return name -> URL of the measured pages."""
    with engine.begin() as connection:
        job_id, group_id = connection.execute(
            text("SELECT id, job_group FROM xxl_job_info WHERE job_desc = 'job 0'")
        ).one()
        log_id = connection.scalar(text(f"SELECT MAX(id) FROM xxl_job_log WHERE job_id = {int(job_id)}"))
    return {
        "dashboard": "/",
        "dashboard_day": "/?hours=24",
        "dashboard_month": "/?range=month",
        "load": "/load",
        "jobs": "/jobinfo?length=100",
        "jobs_last_page": "/jobinfo?page=1000",
        "jobs_search": "/jobinfo?jobDesc=job+99",
        "jobs_of_group": f"/jobinfo?jobGroup={group_id}",
        "jobs_tagged": "/jobinfo?tag=Team+3&length=100",
        "jobs_by_next": "/jobinfo?sort=next&length=100",
        "jobs_by_executor": "/jobinfo?sort=executor",
        "jobs_by_last": "/jobinfo?sort=-last",
        "jobs_by_last_100": "/jobinfo?sort=last&length=100",
        "jobs_favourites": "/jobinfo?favourites=1&length=100",
        "job": f"/jobinfo/{job_id}",
        "job_edit": f"/jobinfo/{job_id}/edit",
        "job_delete": f"/jobinfo/{job_id}/delete",
        "logs_today": "/joblog",
        "logs_all": "/joblog?range=all&length=100",
        "logs_failed": "/joblog?range=all&logStatus=2",
        "logs_succeeded": "/joblog?range=all&logStatus=1",
        "logs_running": "/joblog?range=all&logStatus=3",
        "logs_week_succeeded": "/joblog?range=week&logStatus=1",
        "logs_week_running": "/joblog?range=week&logStatus=3",
        "logs_group_never_failed": f"/joblog?range=all&logStatus=2&jobGroup={group_id + 1}",
        "logs_group": f"/joblog?range=month&jobGroup={group_id}",
        "logs_job": f"/joblog?range=all&jobId={job_id}",
        "logs_oldest": "/joblog?range=all&sort=time",
        "logs_oldest_today": "/joblog?sort=time",
        "logs_oldest_failed": "/joblog?range=all&sort=time&logStatus=2",
        "logs_oldest_running": "/joblog?range=all&sort=time&logStatus=3",
        "logs_oldest_group": f"/joblog?range=month&jobGroup={group_id}&sort=time",
        "logs_page_500": "/joblog?range=all&page=500",
        "log": f"/joblog/{log_id}",
        "clean": f"/joblog/clean?jobGroup={group_id}",
        "glue": f"/jobcode?jobId={job_id}",
        "glue_diff": f"/jobcode/diff?jobId={job_id}",
        "account": "/account",
        "help": "/help",
    }


ADMIN_PAGES = {
    "groups": "/jobgroup",
    "groups_by_heartbeat": "/jobgroup?sort=-heartbeat",
    "users": "/user",
    "audit": "/user/audit",
}


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, object]:
    engine, only = made.engine(), arguments.only
    started = time.perf_counter()
    fill(engine, arguments.jobs, arguments.rows, now_ms())
    app = None if arguments.beside else create_app(made.config)
    if arguments.beside:
        run_beside(made, arguments.beside)
    with engine.begin() as connection:
        groups = list(connection.scalars(text("SELECT id FROM xxl_job_group ORDER BY id")))
    figures: dict[str, object] = {"filled_s": round(time.perf_counter() - started, 1)}
    tokens = {
        "": log_in("benchadmin", Role.ADMIN, []),
        ":user": log_in("benchuser", Role.NORMAL, groups[::2]),
    }
    gc.freeze()  # as wsgi.py does
    for ending, token in tokens.items():
        get = reader_of(token, made, app)
        for name, path in (pages(engine) | (ADMIN_PAGES if not ending else {})).items():
            if not re.fullmatch(only, name + ending):
                continue
            assert get(path) == 200, name
            figures[name + ending] = timed(lambda get=get, path=path: get(path), arguments.rounds)  # type: ignore[misc]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=("sqlite", "mariadb", "postgresql"), default="sqlite")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default=".*", help="pages to measure, as a regular expression")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="requests of each page")
    parser.add_argument("--beside", type=int, default=0, help="runs a second beside the requests")
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        figures = measure(made, arguments)
        print(
            json.dumps(
                {
                    "bench": "pages",
                    "db": arguments.db,
                    "job_rows": arguments.jobs,
                    "log_rows": arguments.rows,
                    "beside": arguments.beside,
                    **figures,
                }
            )
        )


if __name__ == "__main__":
    main()
