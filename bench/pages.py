"""Cost of each page of the console with many jobs and a long log, for an administrator and a normal user.

Everything but a database server runs in this process, without a network; with ``--beside 100`` a running
console is asked, while a scheduler triggers 100 runs a second and the console takes their results. Prints one
JSON line: page -> median and 95th percentile in ms, and the median CPU time of this process, which a busy
machine affects least. Refreshes of live pages end with ``_live``, pages of a user with half the groups with
``:user``. Example:
``.venv/bin/python bench/pages.py --jobs 10000 --rows 1000000 --only 'jobs|dashboard.*'``.
"""

import argparse
import gc
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import requests
from flask import Flask
from harness import KINDS, Cluster, cluster, make_jobs, wait_until
from lists import timed
from page_addresses import ADMIN_PAGES, PAGES
from page_rows import GROUPS, fill
from sqlalchemy import Engine, select, text, update
from yardstick import report

from app.clock import DAY_MS, now_ms
from app.console.web.current import COOKIE
from app.database.engine import session_scope
from app.domain.enums import Role
from app.factory import create_app
from app.models.favourite import Favourite
from app.models.job import Job
from app.models.log import JobLog
from app.models.user import User
from app.services.accounts import login

ROUNDS = 15
#: favourites of each reader
STARRED = 200
#: from the start of the runs beside the requests to their first instant
WARM_UP_MS = 15_000
#: options of the server: memory that contains the log, as docs/operations.md advises
OPTIONS = {"mariadb": ("--innodb-buffer-pool-size=1G",), "postgresql": ("shared_buffers=1GB",)}
#: seconds of runs before the first request: the disk still writes the rows of a million runs
SETTLE_S = 20
#: names of the pages that refresh themselves
LIVE = ("dashboard", "jobs", "job", "job_runs", "logs_all", "log")
_HASH = re.compile(r'data-hash="([^"]*)"')


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


#: gets a path with headers; returns status and body
Reader = Callable[[str, dict[str, str]], tuple[int, bytes]]


def reader_of(token: str, made: Cluster, app: Flask | None) -> Reader:
    """Return a function that gets a page from the app or the running console."""
    if app is None:
        session = requests.Session()
        session.cookies.set(COOKIE, token)

        def ask(path: str, headers: dict[str, str]) -> tuple[int, bytes]:
            answer = session.get(made.admin + path, headers=headers, timeout=60)
            return answer.status_code, answer.content

        return ask
    client = app.test_client()
    client.set_cookie(COOKIE, token)

    def get(path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        answer = client.get(made.config.context_path + path, headers=headers)
        return answer.status_code, answer.get_data()

    return get


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
    time.sleep(SETTLE_S)


def ids_of(engine: Engine) -> dict[str, int]:
    """Return the ids for the addresses: the first job, ``bean``: one without code, its group, runs, …"""
    with engine.connect() as connection:
        job_id, group_id = connection.execute(
            text("SELECT id, job_group FROM xxl_job_info WHERE job_desc = 'job 0'")
        ).one()
        runs = text(f"SELECT MIN(id), MAX(id) FROM xxl_job_log WHERE job_id = {int(job_id)}")
        first, last = connection.execute(runs).one()
        channel = connection.scalar(text("SELECT MIN(id) FROM xxl_job_channel"))
    until_s = (now_ms() - DAY_MS) // 1000
    found = {"job": job_id, "group": group_id, "other": group_id + 1, "first": first, "last": last}
    return found | {"channel": int(channel or 0), "until": until_s, "bean": job_id + GROUPS}


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    engine, only = made.engine(), arguments.only
    started = time.perf_counter()
    fill(engine, arguments.jobs, arguments.rows, now_ms())
    ids = ids_of(engine)
    app = None if arguments.beside else create_app(made.config)
    if arguments.beside:
        run_beside(made, arguments.beside)
    with engine.begin() as connection:
        groups = list(connection.scalars(text("SELECT id FROM xxl_job_group ORDER BY id")))
    figures: dict[str, Any] = {"filled_s": round(time.perf_counter() - started, 1)}
    tokens = {
        "": log_in("benchadmin", Role.ADMIN, []),
        ":user": log_in("benchuser", Role.NORMAL, groups[1::2]),
    }
    gc.freeze()  # as wsgi.py does
    for ending, token in tokens.items():
        get = reader_of(token, made, app)
        offered = PAGES | (ADMIN_PAGES if not ending else {})
        for name in [*offered, *(f"{each}_live" for each in LIVE)]:
            if re.fullmatch(only, name + ending):
                path = offered[name.removesuffix("_live")].format_map(ids)
                figures[name + ending] = measure_page(get, path, arguments.rounds, name.endswith("_live"))
    return figures


def measure_page(get: Reader, path: str, rounds: int, is_live: bool) -> dict[str, float]:
    """Measure a page, or its refresh as js/live.js asks for it; raises AssertionError for another status."""
    status, body = get(path, {})
    assert status == 200, (path, status)
    headers = {"Accept-Encoding": "gzip"}
    if is_live:
        headers |= {"X-Parts": "".join(_HASH.findall(body.decode())), "X-Refresh": "auto"}
    return timed(lambda: get(path, headers), rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default=".*", help="pages to measure, as a regular expression")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="requests of each page")
    parser.add_argument("--beside", type=int, default=0, help="runs a second beside the requests")
    arguments = parser.parse_args()
    with cluster(arguments.db, OPTIONS.get(arguments.db, ())) as made:
        figures = measure(made, arguments)
        sizes = {"job_rows": arguments.jobs, "log_rows": arguments.rows, "beside": arguments.beside}
        report("pages", db=arguments.db, **sizes, **figures)


if __name__ == "__main__":
    main()
