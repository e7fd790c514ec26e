"""Memory under a steady load: ``--rate`` runs per second for ``--seconds``, each process sampled every 10 s.

Prints one JSON line: per process the USS and RSS in MB at the start, the end and the maximum, and the slope
of both over the last two thirds in MB per hour (caches and the allocator fill during the first third, a leak
continues). Also the expected runs, the runs by trigger code and handle code, and the skipped instants. Each
sample is written to stderr, so that an interrupted soak is not lost. The stub executor records each run, so
its own memory grows. Example:
``.venv/bin/python bench/soak.py --db sqlite --rate 100 --seconds 3600``.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from typing import Any

import psutil
from harness import KINDS, Cluster, cluster, make_jobs, wait_until
from sqlalchemy import Engine, func, select, update
from yardstick import report

from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.skip import Skip
from workers.processes.child import PARTS

#: period of the samples
SAMPLE_S = 10
#: time from enabling the jobs to the first due second
LEAD_S = 7
#: time for the runs of the last second to finish
DRAIN_S = 30
MB = 1024 * 1024

#: one sample: seconds since the start, USS and RSS in MB
Sample = tuple[float, float, float]


def find_processes(made: Cluster) -> dict[str, psutil.Process]:
    """Return the processes by name; the supervisor's children are identified by their start order."""
    found = {name: psutil.Process(made.processes[name].pid) for name in ("console", "workers", "stub")}

    def started() -> list[psutil.Process]:
        return [child for child in found["workers"].children() if "tracker" not in " ".join(child.cmdline())]

    wait_until(lambda: len(started()) == len(PARTS), "the supervisor's children", made)
    children = dict(zip(PARTS, sorted(started(), key=lambda child: child.pid), strict=True))
    return {"console": found["console"], "supervisor": found["workers"], **children, "stub": found["stub"]}


def sample(processes: Mapping[str, psutil.Process], began: float, series: dict[str, list[Sample]]) -> None:
    """Append one sample of each process and write them to stderr."""
    at_s = time.monotonic() - began
    shown = []
    for name, process in processes.items():
        try:
            memory = process.memory_full_info()
        except psutil.NoSuchProcess:
            raise SystemExit(f"{name} died after {at_s:.0f} s") from None
        series.setdefault(name, []).append((at_s, memory.uss / MB, memory.rss / MB))
        shown.append(f"{name}={memory.uss / MB:.2f}/{memory.rss / MB:.2f}")
    print(f"t={at_s:.0f}s uss/rss_mb {' '.join(shown)}", file=sys.stderr, flush=True)


def slope_per_hour(times_s: list[float], values: list[float]) -> float:
    """Return the slope of the least-squares line, per hour."""
    mean_t, mean_v = sum(times_s) / len(times_s), sum(values) / len(values)
    spread = sum((at - mean_t) ** 2 for at in times_s)
    if spread == 0:
        return 0.0
    common = sum((at - mean_t) * (value - mean_v) for at, value in zip(times_s, values, strict=True))
    return common / spread * 3600


def summarize(samples: list[Sample]) -> dict[str, dict[str, float]]:
    late = samples[len(samples) // 3 :]
    times = [sample[0] for sample in late]
    summary = {}
    for column, name in ((1, "uss_mb"), (2, "rss_mb")):
        values = [sample[column] for sample in samples]
        slope = slope_per_hour(times, [sample[column] for sample in late])
        summary[name] = {"start": values[0], "end": values[-1], "max": max(values), "slope_per_h": slope}
    return {
        name: {key: round(value, 2) for key, value in figures.items()} for name, figures in summary.items()
    }


def enable_jobs(engine: Engine, seconds: int) -> int:
    """Let the jobs fire every second for this long; return the last instant."""
    first_ms = (int(time.time()) + LEAD_S) * 1000
    last_ms = first_ms + (seconds - 1) * 1000
    enabled = update(Job).values(trigger_status=1, trigger_next_time=first_ms, not_after_ms=last_ms)
    with engine.begin() as connection:
        connection.execute(enabled)
    return last_ms


def measure(made: Cluster, arguments: argparse.Namespace) -> dict[str, Any]:
    engine = made.engine()
    made.start_console()
    made.start_stub(batch=arguments.batch)
    make_jobs(engine, arguments.rate, cron="* * * * * ?", trigger_status=0)
    made.start_workers()

    def registered() -> bool:
        with engine.connect() as connection:
            return bool(connection.scalar(select(Group.address_list)))

    wait_until(registered, "the executor to register", made)
    processes = find_processes(made)
    last_ms = enable_jobs(engine, arguments.seconds)
    time.sleep(LEAD_S)
    series: dict[str, list[Sample]] = {}
    began = time.monotonic()
    for number in range(arguments.seconds // SAMPLE_S + 1):
        time.sleep(max(began + number * SAMPLE_S - time.monotonic(), 0))
        sample(processes, began, series)

    def finished() -> bool:
        with engine.connect() as connection:
            left = connection.scalar(select(func.count()).select_from(Fire))
        return left == 0 and time.time() * 1000 > last_ms

    wait_until(finished, "all results", made, timeout_s=DRAIN_S)
    with engine.connect() as connection:
        codes = (JobLog.trigger_code, JobLog.handle_code)
        rows = connection.execute(select(*codes, func.count()).group_by(*codes))
        results = {f"{trigger}/{handle}": count for trigger, handle, count in rows}
        skipped = connection.scalar(select(func.sum(Skip.skipped))) or 0
    return {
        "bench": "soak",
        "db": arguments.db,
        "rate": arguments.rate,
        "seconds": arguments.seconds,
        "expected": arguments.rate * arguments.seconds,
        "results": results,
        "skipped": int(skipped),
        "processes": {name: summarize(samples) for name, samples in series.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--db", choices=KINDS, default="sqlite")
    parser.add_argument("--rate", type=int, default=100, help="jobs due each second")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--batch", type=int, default=50, help="results of one callback request")
    arguments = parser.parse_args()
    with cluster(arguments.db) as made:
        report(**measure(made, arguments))


if __name__ == "__main__":
    main()
