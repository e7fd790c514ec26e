"""The fault harness: fires under kill -9, SIGSTOP and a bad network, judged afterwards; prints one JSON line.

``.venv/bin/python bench/faults/run.py --db sqlite --seconds 60 [--seed N] [--network 0.1] [--keep]``. Two executors of our own client
and one that forgets like the Java original's, each behind a proxy; two workers nodes where the database is a server. The exit code
is 1 where anything is missing, doubled, early, unfinished or repeated. The seed repeats the faults, not their timing.
"""

import argparse
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from bench.faults.checker import UNRESOLVED, Findings, History, Watched, check  # noqa: E402
from bench.faults.history import read_history  # noqa: E402
from bench.faults.proxy import Proxy  # noqa: E402
from bench.faults.storm import Storm  # noqa: E402
from tests.acceptance.cluster import TOKEN, Cluster  # noqa: E402
from tests.acceptance.database_server import DatabaseServer  # noqa: E402
from tests.acceptance.programs import Program, free_port  # noqa: E402
from tests.databases import migrate, temporary_directory  # noqa: E402
from tests.eventually import eventually  # noqa: E402

#: everything on its way has ended so long after the last fault: leases, evidence, time-outs, retries of callbacks
SETTLE_S = 240
#: lines of a log shown of the first offender
STORY_LINES = 30
OWN, STOCK = "own-client", "stock-like"
CLIENTS = ("client-1", "client-2")


@dataclass
class Site:
    """A cluster with executors behind proxies."""

    cluster: Cluster
    seed: int
    #: groups of executors: our own client's, and one that forgets
    groups: tuple[str, ...] = (OWN, STOCK)
    proxies: dict[str, Proxy] = field(default_factory=dict)
    starters: dict[str, Callable[[], Program]] = field(default_factory=dict)

    def start(self, nodes: int) -> None:
        """Start everything, healthy; returns when all executors are known."""
        self.cluster.await_console(self.cluster.start_console(wait=False))
        self.starters["console"] = lambda: self.cluster.start_console(wait=False)
        for number in range(1, nodes + 1):
            name = f"workers-{number}"
            self.starters[name] = lambda name=name: self.cluster.start(name, "-m", "workers", XXL_JOB_NODE_NAME=name)  # type: ignore[misc]
            self.cluster.start_workers(name)
        self._add_proxy("admin", self.cluster.port)
        for name in CLIENTS:
            self._add_executor(name, lambda name, port: self._start_client(name, port))
        if STOCK in self.groups:
            self._add_executor(STOCK, lambda name, port: self._start_stock(name, port))

    def _add_proxy(self, name: str, target: int) -> None:
        self.proxies[name] = Proxy(free_port(), target, seed=self.seed + len(self.proxies))
        self.proxies[name].start()

    def _add_executor(self, name: str, start: Callable[[str, int], Program]) -> None:
        port = free_port()
        self._add_proxy(name, port)
        self.starters[name] = lambda: start(name, port)
        self.starters[name]()

    @property
    def admin(self) -> str:
        return f"http://127.0.0.1:{self.proxies['admin'].port}/xxl-job-admin"

    def _address(self, name: str) -> str:
        return f"http://127.0.0.1:{self.proxies[name].port}/"

    def _start_client(self, name: str, port: int) -> Program:
        journal = self.cluster.folder / f"{name}.jsonl"
        self.cluster.journals[name] = journal
        where = ["--admin", self.admin, "--appname", OWN, "--port", str(port), "--address", self._address(name)]
        home = {"XXL_JOB_HOME": str(self.cluster.folder / f"home-{name}"), "FAULTS_JOURNAL": str(journal)}
        return self.cluster.start(name, "-m", "executor_client", "bench.faults.handlers", *where, **home)

    def _start_stock(self, name: str, port: int) -> Program:
        journal = self.cluster.folder / f"{name}.jsonl"
        self.cluster.journals[name] = journal
        where = ["--admin", self.admin, "--token", TOKEN, "--appname", STOCK, "--port", str(port), "--address", self._address(name)]
        return self.cluster.start(name, "bench/faults/recording_executor.py", *where, "--journal", str(journal))

    def spoil(self, share: float) -> None:
        for proxy in self.proxies.values():
            proxy.share = share

    def stop(self) -> None:
        self.cluster.programs.stop_all()
        for proxy in self.proxies.values():
            proxy.stop()


def clock_ms() -> int:
    return time.time_ns() // 1_000_000


def add_jobs(site: Site) -> list[Watched]:
    """Add the jobs of the run: calendars, rates, children, failures with retries, both misfire policies."""
    console = site.cluster.console
    groups = {name: console.add_group(name) for name in site.groups}
    for name, group_id in groups.items():
        console.await_addresses(group_id, len(CLIENTS) if name == OWN else 1)
    child_id = console.add_job(groups[OWN], executorHandler="ok", executorRouteStrategy="ROUND")
    kinds: list[dict[str, Any]] = [{"scheduleConf": "* * * * * ?", "executorHandler": "ok"} for _ in range(8)]
    kinds += [{"scheduleType": "FIX_RATE", "scheduleConf": "1", "executorHandler": "ok"} for _ in range(4)]
    kinds += [{"scheduleConf": "0/2 * * * * ?", "executorHandler": "ok", "childJobId": child_id} for _ in range(2)]
    kinds += [{"scheduleConf": "0/5 * * * * ?", "executorHandler": "fail", "executorFailRetryCount": 2} for _ in range(2)]
    kinds += [{"scheduleConf": "0/2 * * * * ?", "executorHandler": "ok", "executorRouteStrategy": "FAILOVER"}]
    if STOCK in site.groups:
        kinds += [{"scheduleConf": "* * * * * ?", "executorHandler": "ok", "group": STOCK} for _ in range(4)]
    return [_add(site, groups, number, kind) for number, kind in enumerate(kinds)]


def _add(site: Site, groups: dict[str, int], number: int, kind: dict[str, Any]) -> Watched:
    group_id = groups[kind.pop("group", OWN)]
    misfire = ("DO_NOTHING", "FIRE_ONCE_NOW")[number % 2]
    columns = {"scheduleType": "CRON", "executorRouteStrategy": "ROUND", "misfireStrategy": misfire, **kind}
    asked = clock_ms()
    job_id = site.cluster.console.add_job(group_id, **columns, triggerStatus=1)
    children = (kind["childJobId"],) if "childJobId" in kind else ()
    window = {"start": (asked, clock_ms()), "stop": (0, 0)}
    return Watched(job_id, columns["scheduleType"], columns["scheduleConf"], **window, misfire=misfire, child_ids=children)


def stop_jobs(site: Site, jobs: list[Watched]) -> list[Watched]:
    stopped = []
    for job in jobs:
        asked = clock_ms()
        site.cluster.console.stop(job.job_id)
        stopped.append(replace(job, stop=(asked, clock_ms())))
    return stopped


def lag_ms(history: History) -> dict[str, int]:
    """Return percentiles of first start minus instant."""
    instants = {row.log_id: row.instant for row in history.rows if row.instant is not None}
    first: dict[int, int] = {}
    for event in history.events:
        if event.event == "start" and event.log_id in instants:
            first[event.log_id] = min(event.wall_ms, first.get(event.log_id, event.wall_ms))
    lags = sorted(wall - instants[log_id] for log_id, wall in first.items())
    return {name: lags[min(int(len(lags) * share), len(lags) - 1)] for name, share in SHARES.items()} if lags else {}


def unresolved(site: Site) -> dict[str, int]:
    """Return how many runs ended with an alarm because nobody can know what became of them, by executor group."""
    sql = "SELECT app_name, count(*) AS runs FROM xxl_job_log JOIN xxl_job_group ON xxl_job_group.id = job_group"
    rows = site.cluster.select(f"{sql} WHERE trigger_code = {UNRESOLVED} AND handle_code = 0 GROUP BY app_name")
    return {row["app_name"]: row["runs"] for row in rows}


SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


def story(site: Site, found: Findings) -> list[str]:
    """Return what every program wrote about the first offender that has a log id."""
    offenders = [*found.unfinished, *(item[0] for item in found.started_twice), *(item[0] for item in found.wrong_results)]
    if not offenders:
        return []
    words = (f"log_id={offenders[0]} ", f'"log_id": {offenders[0]},')
    texts = site.cluster.programs.outputs() | {name: path.read_text() for name, path in site.cluster.journals.items() if path.exists()}
    lines = [f"{name}: {line}" for name, text in texts.items() for line in text.splitlines() if any(word in f"{line} " for word in words)]
    row = site.cluster.select("SELECT * FROM xxl_job_log WHERE id = :id", id=offenders[0])
    fire = site.cluster.select("SELECT * FROM xxl_job_fire WHERE log_id = :id", id=offenders[0])
    return [*lines[:STORY_LINES], f"row: {row}", f"fire: {fire}"]


def fires_left(site: Site) -> int:
    return int(site.cluster.select("SELECT count(*) AS fires FROM xxl_job_fire")[0]["fires"])


@contextlib.contextmanager
def database(kind: str, folder: Path) -> Iterator[tuple[str, DatabaseServer | None]]:
    """Make a durable database."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'xxl_job.db'}", None
        return
    with temporary_directory() as place:
        server = DatabaseServer(kind, place)
        try:
            yield server.server.create_database("xxl_job"), server
        finally:
            server.stop()


def judge(site: Site, jobs: list[Watched], options: argparse.Namespace, storm: Storm) -> dict[str, Any]:
    """Wait for the end of everything on its way, then compare."""
    began = time.monotonic()
    with contextlib.suppress(AssertionError):  # what has no end is a finding
        eventually(lambda: fires_left(site) == 0, SETTLE_S)
    history = read_history(site.cluster.engine(), jobs, site.cluster.journals.values())
    found = check(history)
    network: Counter[str] = sum((proxy.counts for proxy in site.proxies.values()), Counter())
    result = {"bench": "faults", "db": options.db, "seconds": options.seconds, "seed": options.seed}
    result |= {"faults": dict(storm.counts), "network": dict(network), "settled_s": round(time.monotonic() - began, 1)}
    result |= {"lag_ms": lag_ms(history), "unresolved": unresolved(site), **found.report()}
    return result | ({"story": story(site, found)} if found.problems else {})


def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    with database(options.db, folder) as (url, server):
        migrate(url)
        site = Site(Cluster(folder, url), options.seed, (OWN, STOCK) if options.stock else (OWN,))
        try:
            site.start(1 if server is None else 2)
            jobs = add_jobs(site)
            storm = Storm(site.cluster, random.Random(options.seed), site.starters, server if options.away else None)
            site.spoil(options.network)
            storm.rage(options.seconds)
            site.spoil(0.0)
            eventually(site.cluster.console.answers, 60, "the console is back")
            return judge(site, stop_jobs(site, jobs), options, storm)
        finally:
            site.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", choices=("sqlite", "mariadb", "postgresql"), default="sqlite")
    parser.add_argument("--seconds", type=float, default=60, help="how long faults are made")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--network", type=float, default=0.05, help="share of requests that are spoiled")
    parser.add_argument("--no-away", dest="away", action="store_false", help="leave the database alone")
    parser.add_argument("--no-stock", dest="stock", action="store_false", help="only executors of our own client")
    parser.add_argument("--keep", action="store_true", help="keep logs and journals, and say where")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="xxl-job-faults-"))
    try:
        result = run(options, folder)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(result | ({"folder": str(folder)} if options.keep else {}), ensure_ascii=False))
    return 1 if result["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
