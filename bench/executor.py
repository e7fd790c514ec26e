"""Throughput and resource use of the executor client, as one JSON line.

``.venv/bin/python bench/executor.py [--runs 10000] [--rate 100] [--seconds 10]``: first a steady rate,
measured from the first byte of a request to the first line of the handler; then as many runs as possible,
until every result has been called back; finally as many runs queued behind one. Admin and load share the
machine with the executor, so quote ratios, and ``disk_fsync_ms``, as an answer waits for one fsync.

Each run creates a log: on ext4 that takes several times as long for some minutes after many files were
deleted, such as those of an earlier call (``file_ms``; ``TMPDIR`` chooses another disk).
"""

import argparse
import contextlib
import http.client
import http.server
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psutil
from yardstick import report

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from executor_client import context, job  # noqa: E402
from executor_client.wire.lenient_json import dump_json  # noqa: E402
from executor_client.wire.protocol import Reply, RunRequest  # noqa: E402

JOBS = 50
CONNECTIONS = 16
#: number and size of the writes that measure the disk
PROBES = 200
PROBE_BYTES = 4096


@job("benchJobHandler")
def note_start() -> None:
    """Append log id and clock to the file named by the parameter."""
    line = f"{context.log_id} {time.monotonic_ns()}\n".encode()
    os.write(opened(context.param or ""), line)


@cache
def opened(path: str) -> int:
    """Return a descriptor for appending, which stays open: opening it is no part of a run."""
    return os.open(path, os.O_WRONLY | os.O_APPEND)


@job("benchWaitHandler")
def wait() -> None:
    """Run until the file named by the parameter exists."""
    while not Path(context.param or "").exists() and not context.cancelled.wait(0.1):
        pass


class Admin(http.server.ThreadingHTTPServer):
    """Accepts every registration and result."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), AdminHandler)
        self.registered = threading.Event()
        self.results: dict[int, int] = {}
        self.changed = threading.Condition()

    def await_results(self, count: int, timeout_s: float) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.results) >= count, timeout_s):
                raise SystemExit(f"only {len(self.results)} of {count} results after {timeout_s} s")


class AdminHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    #: head and body are sent apart: without this the second one waits 40 ms for a delayed acknowledgement
    disable_nagle_algorithm = True
    server: Admin

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/callback"):
            with self.server.changed:
                self.server.results.update({item["logId"]: item["handleCode"] for item in body})
                self.server.changed.notify_all()
        self.server.registered.set()
        answer = dump_json(Reply(200).to_wire())
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextlib.contextmanager
def executor(admin: Admin, home: Path) -> Iterator[tuple[psutil.Process, int]]:
    """Start the real program; yield its process and port."""
    admin_url = f"http://127.0.0.1:{admin.server_port}/xxl-job-admin"
    with socket_port() as port:
        pass
    settings = ("--admin", admin_url, "--appname", "bench", "--port", str(port), "--home", str(home))
    argv = (sys.executable, "-m", "executor_client", "executor", *settings)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'bench'}"}
    with (
        (home / "executor.log").open("wb") as log,
        subprocess.Popen(argv, cwd=home, env=environment, stderr=log) as process,
    ):
        try:
            if not admin.registered.wait(20):
                raise SystemExit((home / "executor.log").read_text())
            yield psutil.Process(process.pid), port
        finally:
            process.terminate()


@contextlib.contextmanager
def socket_port() -> Iterator[int]:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        yield int(probe.getsockname()[1])


class Load:
    """Sends runs over persistent connections and records when."""

    def __init__(self, port: int, starts: Path) -> None:
        self.port = port
        self.starts = starts
        self.sent_ns: dict[int, int] = {}
        self.answered_ns: dict[int, int] = {}
        self._local = threading.local()

    def run(self, log_id: int, *, job_id: int = 0, handler: str = "", param: str = "") -> None:
        """Send a run; by default of a job chosen by the log id that notes its start."""
        if not hasattr(self._local, "connection"):
            self._local.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        now_ms = time.time_ns() // 1_000_000
        strategy = "SERIAL_EXECUTION"
        request = RunRequest(
            job_id or log_id % JOBS + 1,
            handler or "benchJobHandler",
            param or str(self.starts),
            strategy,
            0,
            log_id,
            now_ms,
            "BEAN",
            "",
            0,
            0,
            1,
        )
        body = dump_json(request.to_wire())
        self.sent_ns[log_id] = time.monotonic_ns()
        self._local.connection.request("POST", "/run", body, {"Content-Type": "application/json"})
        reply = json.loads(self._local.connection.getresponse().read())
        self.answered_ns[log_id] = time.monotonic_ns()
        if reply["code"] != 200:
            raise SystemExit(f"run {log_id} refused: {reply}")

    def at_rate(self, ids: range, rate: int) -> None:
        """Send one run after the other at a steady rate."""
        begin = time.monotonic()
        for number, log_id in enumerate(ids):
            time.sleep(max(0.0, begin + number / rate - time.monotonic()))
            self.run(log_id)

    def queue(self, ids: range, gate: Path) -> None:
        """Send runs of one job, which wait for a file one after the other."""
        for log_id in ids:
            self.run(log_id, job_id=JOBS + 1, handler="benchWaitHandler", param=str(gate))

    def run_concurrently(self, ids: range) -> float:
        """Send as fast as possible; return the seconds until all are accepted."""
        begin = time.monotonic()
        threads = [
            threading.Thread(target=lambda part: [self.run(i) for i in part], args=(ids[n::CONNECTIONS],))
            for n in range(CONNECTIONS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.monotonic() - begin

    def started_ns(self) -> dict[int, int]:
        """Return log id -> clock at the handler's start; a second start of an id is an error."""
        lines = [line.split() for line in self.starts.read_text().splitlines()]
        started = {int(log_id): int(ns) for log_id, ns in lines}
        if len(started) != len(lines):
            raise SystemExit(f"{len(lines) - len(started)} runs started twice")
        return started


def percentiles(values_ns: list[int]) -> dict[str, float]:
    cuts = statistics.quantiles(values_ns, n=100)
    return {
        "p50": round(cuts[49] / 1e6, 2),
        "p99": round(cuts[98] / 1e6, 2),
        "max": round(max(values_ns) / 1e6, 2),
    }


def probe_disk(folder: Path) -> list[int]:
    """Return the duration of single writes to this disk in ns, paused as under a steady load."""
    took = []
    with (folder / "probe").open("wb", buffering=0) as stream:
        for _ in range(PROBES):
            begin = time.monotonic_ns()
            stream.write(bytes(PROBE_BYTES))
            os.fsync(stream.fileno())
            took.append(time.monotonic_ns() - begin)
            time.sleep(0.005)
    return took


def probe_files(folder: Path) -> list[int]:
    """Return the duration of creating a small file in ns."""
    took = []
    for number in range(PROBES):
        begin = time.monotonic_ns()
        (folder / f"probe-{number}").write_bytes(b"log")
        took.append(time.monotonic_ns() - begin)
    return took


def import_cpu_ms() -> float:
    """Return the CPU time in ms that a program spends on importing all of the executor, best of three."""
    took = []
    for module in ("executor_client.service.engine, executor_client.mounting.own_server", "sys") * 3:
        begin = sum(os.times()[2:4])
        subprocess.run([sys.executable, "-c", f"import {module}"], cwd=ROOT, check=True)
        took.append(sum(os.times()[2:4]) - begin)
    return round((min(took[::2]) - min(took[1::2])) * 1000)


def held(process: psutil.Process) -> dict[str, float]:
    return {
        "threads": process.num_threads(),
        "files": process.num_fds(),
        "mb": round(process.memory_info().rss / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="runs of the second part")
    parser.add_argument("--rate", type=int, default=100, help="runs a second in the first part")
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    admin = Admin()
    threading.Thread(target=admin.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder, executor(admin, Path(folder)) as (process, port):
        starts = Path(folder) / "starts"
        starts.touch()
        load = Load(port, starts)
        idle = held(process)
        disk_ns, files_ns = probe_disk(Path(folder)), probe_files(Path(folder))
        steady = range(1, options.rate * options.seconds + 1)
        load.at_rate(steady, options.rate)
        admin.await_results(len(steady), 30)
        before, cpu_before = held(process), process.cpu_times()
        flood = range(len(steady) + 1, len(steady) + options.runs + 1)
        began = time.monotonic()
        accepted_s = load.run_concurrently(flood)
        admin.await_results(len(steady) + len(flood), 120)
        finished_s = time.monotonic() - began
        started = load.started_ns()
        after_flood, cpu = held(process), process.cpu_times()
        last = len(steady) + len(flood)
        load.queue(range(last + 1, last + options.runs + 1), Path(folder) / "gate")
        queued = held(process)
        (Path(folder) / "gate").touch()
        admin.await_results(last + options.runs, 120)
        result = {
            "import_cpu_ms": import_cpu_ms(),
            "rate": options.rate,
            "disk_fsync_ms": percentiles(disk_ns),
            "file_ms": percentiles(files_ns),
            "answer_ms": percentiles([load.answered_ns[i] - load.sent_ns[i] for i in steady]),
            "sent_to_start_ms": percentiles([started[i] - load.sent_ns[i] for i in steady]),
            # negative if the handler was faster than the answer
            "answer_to_start_ms": percentiles([started[i] - load.answered_ns[i] for i in steady]),
            "flood_runs": options.runs,
            "flood_accepted_per_s": round(options.runs / accepted_s),
            "flood_finished_per_s": round(options.runs / finished_s),
            "flood_sent_to_start_ms": percentiles([started[i] - load.sent_ns[i] for i in flood]),
            "cpu_ms_a_run": {
                "user": round((cpu.user - cpu_before.user) * 1000 / options.runs, 2),
                "system": round((cpu.system - cpu_before.system) * 1000 / options.runs, 2),
            },
            "held_idle": idle,
            "held_before_flood": before,
            "held_after_flood": after_flood,
            "held_with_runs_queued": queued,
            "failed": sum(code != 200 for code in admin.results.values()),
        }
    report("executor", **result)


if __name__ == "__main__":
    main()
