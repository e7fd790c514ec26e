"""Benchmark harness: starts and stops a database, the console, the workers and stub executors.

Benchmarks are scripts: ``.venv/bin/python bench/throughput.py --db sqlite``. Each prints one JSON line, with
the yardstick of the machine (yardstick.py).
Compare within one run of a machine and quote ratios: machines are shared and noisy.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import requests
from sqlalchemy import Engine, insert, select, text

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from app.database.engine import bind_engine  # noqa: E402
from app.models.group import Group  # noqa: E402
from app.models.job import Job  # noqa: E402
from app.models.log import JobLog  # noqa: E402
from app.settings.config import Config  # noqa: E402
from tests.support.databases import STARTERS, migrate  # noqa: E402

#: databases of the benchmarks
KINDS = ("sqlite", *STARTERS)
TOKEN = "bench-token-0123456789abcdef"
#: a process that has not answered by then has failed
START_S = 30
STOP_S = 20
#: between two checks of a condition
CHECK_S = 0.1
#: since the last edit of the jobs: runs of jobs edited just now are not prepared
JOB_AGE_S = 3_600


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Cluster:
    """One console, ``nodes`` scheduler nodes and ``executors`` stubs on one database."""

    home: Path
    database_url: str
    #: process id of the database server; None for SQLite
    server_pid: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def admin(self) -> str:
        return f"http://127.0.0.1:{self.port}/xxl-job-admin"

    @property
    def environ(self) -> dict[str, str]:
        clean = {name: text for name, text in os.environ.items() if not name.startswith("XXL_JOB_")}
        return clean | {
            "XXL_JOB_HOME": str(self.home),
            "XXL_JOB_DATABASE_URL": self.database_url,
            "XXL_JOB_PORT": str(self.port),
            "XXL_JOB_ACCESS_TOKEN": TOKEN,
            "XXL_JOB_ADMIN_PASSWORD": "bench-password",
            "XXL_JOB_TIMEZONE": "UTC",
            **self.settings,
        }

    @property
    def config(self) -> Config:
        """Settings of the processes."""
        return Config.from_env(
            {name: text for name, text in self.environ.items() if name.startswith("XXL_JOB_")}, dotenv=None
        )

    def engine(self) -> Engine:
        bound = bind_engine(self.config)
        return bound.execution_options(sqlite_begin="IMMEDIATE")  # every statement of a benchmark may write

    def start(self, name: str, *command: str, **settings: str) -> subprocess.Popen[bytes]:
        log = (self.home / f"{name}.log").open("ab")
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=self.environ | settings, stdout=log, stderr=log
        )
        self.processes[name] = process
        return process

    def start_console(self) -> None:
        self.start("console", "wsgi.py")
        wait_until(self._console_answers, "the console to answer", self)

    def _console_answers(self) -> bool:
        try:
            return requests.get(f"{self.admin}/health", timeout=2).status_code == 200
        except requests.RequestException:
            return False

    def start_workers(self, name: str = "workers") -> None:
        self.start(name, "-m", "workers", XXL_JOB_NODE_NAME=name)

    def start_stub(
        self,
        name: str = "stub",
        *,
        batch: int = 50,
        appname: str = "bench",
        run_ms: int = 0,
        options: Sequence[str] = (),
    ) -> Path:
        out = self.home / f"{name}.jsonl"
        arguments = [
            "--port",
            str(free_port()),
            "--admin",
            self.admin,
            "--token",
            TOKEN,
            "--batch",
            str(batch),
            "--run-ms",
            str(run_ms),
        ]
        arguments += ["--appname", appname, "--out", str(out), *options]
        self.start(name, "bench/stub_executor.py", *arguments)
        return out

    def stop(self, name: str, number: int = signal.SIGTERM) -> None:
        process = self.processes.pop(name)
        process.send_signal(number)
        process.wait(STOP_S)

    def stop_all(self) -> None:
        for name in [name for name in self.processes if name != "console"]:
            with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
                self.stop(name)
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()

    def dump_runs(self, name: str = "stub") -> None:
        """Let a stub write what it has received so far, and wait for the file."""
        out = self.home / f"{name}.jsonl"
        out.unlink(missing_ok=True)
        self.processes[name].send_signal(signal.SIGUSR1)
        wait_until(out.exists, f"the runs of {name}", self)

    def cpu_seconds(self) -> dict[str, float]:
        """Return CPU seconds used so far, by kind of process; children count for their parents."""
        roots = {name: process.pid for name, process in self.processes.items()}
        if self.server_pid is not None:
            roots["database"] = self.server_pid
        return {name: round(sum(_cpu(process) for process in _family(pid)), 3) for name, pid in roots.items()}


def cpu_per_trigger(before: dict[str, float], after: dict[str, float], count: int) -> dict[str, float]:
    """Return CPU milliseconds a trigger by process; ``sum``: all but the stubs, with the database server."""
    took = {name: round((used - before.get(name, 0)) * 1000 / count, 3) for name, used in after.items()}
    took["sum"] = round(sum(ms for name, ms in took.items() if not name.startswith("stub")), 3)
    return took


def _family(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def wait_until(
    condition: Any, awaited: str, cluster: Cluster | None = None, timeout_s: float = START_S
) -> None:
    until = time.monotonic() + timeout_s
    while not condition():
        dead = [
            name
            for name, process in (cluster.processes if cluster else {}).items()
            if process.poll() is not None
        ]
        if dead or time.monotonic() > until:
            tail = (cluster.home / f"{dead[0]}.log").read_text()[-2000:] if cluster and dead else ""
            raise SystemExit(f"gave up waiting for {awaited}; ended: {dead}\n{tail}")
        time.sleep(CHECK_S)


@contextlib.contextmanager
def cluster(kind: str, server_options: Sequence[str] = (), **settings: str) -> Iterator[Cluster]:
    """Start a durable, migrated database of this kind in its own folder; finally stop everything."""
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        home.chmod(0o755)  # the servers run as their own users
        if kind == "sqlite":
            made = Cluster(home, f"sqlite:///{home / 'bench.db'}", settings=settings)
        else:
            started = STARTERS[kind](home / "server", durable=True, options=server_options)
            server = stack.enter_context(started)
            pid = server.process.pid if server.process else None
            made = Cluster(home, server.create_database("bench"), server_pid=pid, settings=settings)
        migrate(made.database_url)
        add_group(made.engine(), "bench")  # a database with a group gets no sample group and job
        try:
            yield made
        finally:
            made.stop_all()


def add_group(engine: Engine, appname: str) -> None:
    """Insert an empty automatic group."""
    with engine.begin() as connection:
        connection.execute(insert(Group).values(app_name=appname, title=appname, address_type=0))


def make_jobs(
    engine: Engine, count: int, *, cron: str, appname: str = "bench", first_ms: int = 0, **columns: Any
) -> int:
    """Insert ``count`` enabled jobs of a group, first due at ``first_ms``; return the group's id."""
    with engine.begin() as connection:
        group_id = connection.scalar(select(Group.id).where(Group.app_name == appname))
        row = {
            "job_group": group_id,
            "job_desc": "bench",
            "author": "bench",
            "schedule_type": "CRON",
            "schedule_conf": cron,
            "misfire_strategy": "FIRE_ONCE_NOW",
            "executor_route_strategy": "ROUND",
            "executor_handler": "bench",
            "executor_block_strategy": "SERIAL_EXECUTION",
            "glue_type": "BEAN",
            "trigger_status": 1,
            "trigger_next_time": first_ms,
            "update_time": int(time.time() - JOB_AGE_S) * 1000,
        } | columns
        connection.execute(insert(Job), [row] * count)
    return int(group_id or 0)


#: size of the tables and indexes of a database, by dialect
SIZES = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "mysql": "SELECT SUM(data_length + index_length) FROM information_schema.tables"
    " WHERE table_schema = DATABASE()",
    "postgresql": "SELECT pg_database_size(current_database())",
}


def database_bytes(engine: Engine) -> int:
    kind = engine.dialect.name
    with engine.connect() as connection:
        if kind == "mysql":
            connection.execute(text("ANALYZE TABLE xxl_job_log, xxl_job_fire")).all()
        return int(connection.scalar(text(SIZES[kind])) or 0)


def read_runs(path: Path) -> list[tuple[int, int, float]]:
    with path.open(encoding="utf-8") as stream:
        return [tuple(json.loads(line)) for line in stream]  # type: ignore[misc]


def log_rows(engine: Engine) -> list[Any]:
    columns = (JobLog.id, JobLog.job_id, JobLog.fire_time, JobLog.trigger_code, JobLog.handle_code)
    with engine.connect() as connection:
        return list(connection.execute(select(*columns)))


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(int(len(ordered) * share), len(ordered) - 1)], 1) if ordered else 0.0
