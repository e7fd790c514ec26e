"""What an installation reaches on this machine: each row of the table in docs/performance.md, for a database.

Prints one JSON line per figure with its goal, the yardstick and the commit; ``--out FILE`` keeps them. A rate
is held if nothing is lost, doubled or early and the lag does not grow. ``.venv/bin/python bench/reach.py --db
sqlite --all`` takes about ten minutes; ``--only rate,idle`` chooses; ``--seconds 60 --rows 10000000`` takes
longer.
"""

import argparse
import contextlib
import http.client
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import api
import arrival
import at_rest
import long_log
import pages
import stages
from harness import KINDS, Cluster, cluster, make_jobs, percentile
from rates import Step, sustained
from sqlalchemy import select
from windows import Window, offer, start
from yardstick import Yardstick, commit, keep, report

from app.models.job import Job

DATABASES = ("sqlite", "mariadb", "postgresql")
#: goals by row, in the order of DATABASES; None where there is none, as for MySQL
GOALS: dict[str, tuple[Any, Any, Any]] = {
    "rate": (5_000, 3_500, 3_500),
    "single": (2_000, 1_500, 1_500),
    "cpu100": (0.40, None, 0.60),
    "cpu1000": (0.20, None, 0.35),
    "lag100": ([4, 10], [6, 15], [6, 15]),
    "lag1000": (60, 80, 80),
    "herd1000": (0.10, 0.15, 0.15),
    "herd5000": (0.5, 0.7, 0.7),
    "manual": (550, 550, 550),
    "arrival": ([15, 40], [20, 60], [20, 60]),
    "idle_cores": (0.01, 0.01, 0.01),
    "jobs": (25, 25, 25),
    "beside_rows": (1.1, 1.1, 1.1),
    "pages": (150, 150, 150),
}
#: the first rate that is offered
STARTS = {
    "sqlite": (2_500, 1_000),
    "mariadb": (1_500, 800),
    "mysql": (1_500, 800),
    "postgresql": (1_500, 800),
}
MANY_JOBS, PERIOD_S = 100_000, 1_000
#: herds of each size
ROUNDS = 2
#: connections that trigger by hand, and runs of a batch
CLIENTS, BATCH = 8, 1_000
#: an achieved share of what is offered from which on it is no overload
OVERLOADED = 0.9
#: figures of a window that each of its rows shows
SHOWN = ("lost", "doubled", "early", "yardstick_ms")
#: the last minute counts
IDLE_S = 75
ADMIN = "/xxl-job-admin"
PAGES = "dashboard|jobs|jobs_by_last_100|job|job_runs|logs_today|logs_all_failed|log"


class Reach:
    """One database and the options; ``row`` reports."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.db = options, str(options.db)
        commit()  # a later one is not what runs

    def row(self, name: str, figure: Any, unit: str, **details: Any) -> None:
        goal = GOALS[name][DATABASES.index(self.db)] if name in GOALS and self.db in DATABASES else None
        figures = {"row": name, "goal": goal, "figure": figure, "unit": unit, **details}
        line = report("reach", db=self.db, **figures)
        if self.options.out:
            keep(self.options.out, line)

    @contextlib.contextmanager
    def running(self, jobs: int, **options: int) -> Iterator[Cluster]:
        """Run an installation with jobs that are not enabled, warmed up by a window."""
        with cluster(self.db) as made:
            make_jobs(made.engine(), jobs, cron="* * * * * ?", trigger_status=0)
            start(made, **options)
            offer(made, Window(min(jobs, 500), 2))
            yield made

    def search(self, made: Cluster, first: int) -> tuple[int, list[Step], dict[str, Any]]:
        """Find the sustained rate."""
        seconds = self.options.seconds

        def offered(rate: int) -> dict[str, Any]:
            figures = offer(made, Window(rate, seconds))
            shown = (figures[name] for name in ("triggers_per_s", "lost", "worst_lag_ms_by_second"))
            print(self.db, rate, *shown, file=sys.stderr, flush=True)
            return figures

        return sustained(offered, first)


def load(reach: Reach) -> None:
    """Measure rates of 100 and 1,000, and herds, in one installation."""
    with reach.running(5_000) as made:
        for jobs in (100, 1_000):
            seconds = max(reach.options.seconds, 10)
            figures = offer(made, Window(jobs, seconds))
            cpu, lag = figures["cpu_ms_per_trigger"], figures["lag_ms"]
            shown = {name: figures[name] for name in SHOWN}
            reach.row(f"cpu{jobs}", cpu["sum"], "ms", by_process=cpu, seconds=seconds, **shown)
            lag_figure = [lag["p50"], lag["p99"]] if jobs == 100 else lag["p99"]
            reach.row(f"lag{jobs}", lag_figure, "ms", lag_ms=lag, seconds=seconds, **shown)
        for jobs in (1_000, 5_000):
            rounds = [offer(made, Window(jobs, 1)) for _ in range(ROUNDS)]
            took = [round(figures["lag_ms"]["max"] / 1000, 3) for figures in rounds]
            shown = {name: max(figures[name] for figures in rounds) for name in SHOWN}
            reach.row(f"herd{jobs}", sorted(took)[ROUNDS // 2], "s", rounds=took, **shown)


def rate(reach: Reach) -> None:
    """Find the sustained rate, and measure many jobs, in one installation."""
    with reach.running(12_000) as made:
        best, steps, figures = reach.search(made, STARTS[reach.db][0])
        shown = {name: figures.get(name) for name in ("lag_ms", "cpu_ms_per_trigger", "yardstick_ms")}
        reach.row("rate", best, "1/s", steps=steps, seconds=reach.options.seconds, **shown)
        many_jobs(reach, made)


def many_jobs(reach: Reach, made: Cluster) -> None:
    """Measure 100 triggers a second of 100,000 enabled jobs."""
    columns: dict[str, Any] = {"schedule_type": "FIX_RATE", "job_desc": "spread", "trigger_status": 0}
    make_jobs(made.engine(), MANY_JOBS, cron=str(PERIOD_S), **columns)
    seconds = max(reach.options.seconds, 10)
    figures = offer(made, Window(MANY_JOBS, seconds, PERIOD_S, "spread"))
    shown = {name: figures[name] for name in SHOWN}
    cpu = figures["cpu_ms_per_trigger"]["sum"]
    reach.row("jobs", figures["lag_ms"]["p99"], "ms", lag_ms=figures["lag_ms"], cpu_ms=cpu, **shown)


def single(reach: Reach) -> None:
    """Measure the sustained rate with one callback a request."""
    with reach.running(6_000, batch=1) as made:
        best, steps, figures = reach.search(made, STARTS[reach.db][1])
        shown = {name: figures.get(name) for name in ("cpu_ms_per_trigger", "yardstick_ms")}
        reach.row("single", best, "1/s", steps=steps, seconds=reach.options.seconds, **shown)


def manual(reach: Reach) -> None:
    """Measure triggers by hand: the time to their arrival, then how many a second, alone and in batches."""
    with reach.running(500) as made:
        session = arrival.login(made)
        options = argparse.Namespace(warm_up=1.0, triggers=60)
        make_jobs(made.engine(), 1, cron="0 0 0 1 1 ? 2099", trigger_status=0, job_desc="by hand")
        with made.engine().connect() as connection:
            job_id = connection.scalar(select(Job.id).where(Job.job_desc == "by hand"))
        with Yardstick() as yardstick:
            waits = arrival.wait_for_each(made, session, job_id, options)
        figure = [percentile(waits, 0.5), percentile(waits, 0.99)]
        reach.row("arrival", figure, "ms", triggers=len(waits), yardstick_ms=yardstick.ms)
        cookie = "; ".join(f"{name}={value}" for name, value in session.cookies.items())
        headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        form = urlencode({"id": job_id, "executorParam": ""})
        one = Post(f"{ADMIN}/jobinfo/trigger", headers, form, b'"code":200')
        by_hand(reach, made, "manual", one, clients=CLIENTS, seconds=max(reach.options.seconds, 10))
        headers = {"Authorization": f"Bearer {api.make_token()}", "Content-Type": "application/json"}
        runs = json.dumps({"runs": [{"job_id": job_id}] * BATCH})
        batch = Post(f"{ADMIN}/api/v1/runs:batch", headers, runs, b'"state":"waiting"')
        by_hand(reach, made, "batch", batch, clients=1, seconds=2)


class Post(NamedTuple):
    """Request that triggers runs, and what its answer contains for each."""

    path: str
    headers: dict[str, str]
    body: str
    accepted: bytes


def by_hand(reach: Reach, made: Cluster, row: str, post: Post, *, clients: int, seconds: int) -> None:
    """Measure how many runs a second a request triggers, and the CPU time of the console for each."""
    before = made.cpu_seconds()
    with Yardstick() as yardstick:
        since = time.monotonic()
        count = post_for(made, seconds, post, clients)
        took_s = time.monotonic() - since
    after = made.cpu_seconds()
    console_ms = round((after["console"] - before["console"]) * 1000 / max(count, 1), 2)
    shown = {"console_cpu_ms": console_ms, "yardstick_ms": yardstick.ms}
    reach.row(row, round(count / took_s), "1/s", clients=clients, **shown)


def post_for(made: Cluster, seconds: float, post: Post, clients: int) -> int:
    """Send a request over several connections for this long; return the number of triggers."""
    until, counts = time.monotonic() + seconds, []

    def send() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", made.port, timeout=30)
        count = 0
        while time.monotonic() < until:
            connection.request("POST", post.path, post.body, post.headers)
            answer = connection.getresponse()
            count += answer.read().replace(b" ", b"").count(post.accepted)
        counts.append(count)

    threads = [threading.Thread(target=send) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def idle(reach: Reach) -> None:
    """Measure console and workers at rest."""
    seconds = max(reach.options.seconds, IDLE_S)
    with cluster(reach.db) as made:
        options = argparse.Namespace(db=reach.db, seconds=seconds)
        with Yardstick() as yardstick:
            found = at_rest.measure(made, options)["processes"]
    ours = {name: figures for name, figures in found.items() if name != "executor"}
    memory = {name: figures["pss_mb"] for name, figures in ours.items()}
    cpu = {name: round(figures["cpu_s_per_min"] / 60, 4) for name, figures in ours.items()}
    shown = {"seconds": seconds, "yardstick_ms": yardstick.ms}
    reach.row("idle_mb", round(sum(memory.values())), "MB", by_process=memory, **shown)
    reach.row("idle_cores", round(sum(cpu.values()), 3), "cores", by_process=cpu, **shown)


def rows(reach: Reach) -> None:
    """Compare an installation, and the stages of a run, beside a long log with those beside a short one."""
    found = long_log.compare(reach.db, reach.options.rows)
    figure = max(found["ratios"].values())
    beside = [found["installation"]["cpu"], found["installation"]["lag"]]
    reach.row("beside_rows", beside, "times", rows=reach.options.rows)
    reach.row("rows", figure, "times", rows=reach.options.rows, **found)


def console_pages(reach: Reach) -> None:
    """Measure pages beside 1,000 triggers a second."""
    sizes = {"jobs": 10_000, "rows": 100_000, "rounds": 8, "beside": 1_000}
    with cluster(reach.db, pages.OPTIONS.get(reach.db, ())) as made, Yardstick() as yardstick:
        figures = pages.measure(made, argparse.Namespace(db=reach.db, only=PAGES, **sizes))
    p95 = {name: figure["p95"] for name, figure in figures.items() if isinstance(figure, dict)}
    reach.row("pages", max(p95.values()), "ms", p95=p95, **sizes, yardstick_ms=yardstick.ms)


def by_stage(reach: Reach) -> None:
    """Measure the CPU time of each stage in this process, by the size of a batch."""
    with cluster(reach.db) as made:
        found = stages.measure(made.engine(), [1, 20, 100, 500], 9)
    reach.row("stages", found["100"]["sum"], "µs", cpu_us=found)


def sweep(reach: Reach) -> None:
    """Measure what an overload achieves by the number of addresses and of nodes."""
    for executors, nodes in ((1, 1), (8, 1), (1, 2)):
        load, figures = overloaded(reach, executors, nodes)
        shown = {"offered": load, "yardstick_ms": figures["yardstick_ms"]}
        if nodes == 1:
            reach.row("by_executors", figures["triggers_per_s"], "1/s", **shown, at=executors)
        if executors == 1:
            reach.row("by_nodes", figures["triggers_per_s"], "1/s", **shown, at=nodes)


def overloaded(reach: Reach, executors: int, nodes: int) -> tuple[int, dict[str, Any]]:
    """Return a rate that is more than can be held, and the figures at it."""
    load = STARTS[reach.db][0]
    while True:
        load *= 2
        with reach.running(load, executors=executors, nodes=nodes) as made:
            figures = offer(made, Window(load, reach.options.seconds))
        if figures["triggers_per_s"] < OVERLOADED * load:
            return load, figures


ROWS: dict[str, Callable[[Reach], None]] = {
    "load": load,
    "rate": rate,
    "single": single,
    "manual": manual,
    "idle": idle,
    "stages": by_stage,
    "rows": rows,
    "pages": console_pages,
    "sweep": sweep,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--all", action="store_true", help="all rows")
    chosen.add_argument("--only", default="", help=f"some of {','.join(ROWS)}")
    parser.add_argument("--seconds", type=int, default=8, help="how long a rate is offered")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the long log")
    parser.add_argument("--out", type=Path, help="keep the lines in this file, in place of older ones")
    options = parser.parse_args()
    names = list(ROWS) if options.all else options.only.split(",")
    if unknown := set(names) - set(ROWS):
        parser.error(f"unknown rows: {', '.join(sorted(unknown))}; choose from {', '.join(ROWS)}")
    for name in names:
        ROWS[name](Reach(options))


if __name__ == "__main__":
    main()
