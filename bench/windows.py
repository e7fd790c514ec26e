"""Windows of load on a running installation: what was offered, what arrived when, at what cost."""

import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from harness import Cluster, cpu_per_trigger, percentile, read_runs, wait_until
from sqlalchemy import BigInteger, cast, func, select, update
from yardstick import Yardstick

from app.database.engine import read_scope
from app.models.fire import Fire
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog

#: from enabling jobs to their first instant: longer than a node reads ahead
LEAD_S = 7
#: after a start, all processes together have to use less than a tenth of a core for so long,
SETTLE_S = 2
#: or this long after the registration: a slow machine needs more than that at rest
SETTLE_MAX_S = 20
#: for all results after the last instant
DRAIN_S = 60


@dataclass(frozen=True)
class Window:
    """The first ``jobs`` jobs, each due every ``period_s`` seconds for ``seconds``, spread evenly."""

    jobs: int
    seconds: int
    period_s: int = 1
    #: description of the jobs
    desc: str = "bench"

    def expected(self, ids: list[int], first_ms: int) -> set[tuple[int, int]]:
        """Return job and instant of all triggers."""
        return {
            (job_id, first_ms + second * 1000)
            for job_id in ids
            for second in range((job_id - ids[0]) % self.period_s, self.seconds, self.period_s)
        }


def start(made: Cluster, *, executors: int = 1, nodes: int = 1, batch: int = 50, run_ms: int = 0) -> None:
    """Start console, workers and stub executors, and wait until these are registered."""
    made.start_console()
    names = ["stub", *(f"stub{number}" for number in range(1, executors))]
    for name in names:
        made.start_stub(name, batch=batch, run_ms=run_ms)
    for number in range(nodes):
        made.start_workers(f"workers{number}" if nodes > 1 else "workers")

    def registered() -> bool:
        with read_scope() as session:
            listed = session.scalar(select(Group.address_list)) or ""
        return bool(listed) and len(listed.split(",")) == executors

    wait_until(registered, "the executors to register", made)
    used = made.cpu_seconds()
    for _ in range(SETTLE_MAX_S // SETTLE_S):  # the last modules are imported when they are first needed
        time.sleep(SETTLE_S)
        before, used = used, made.cpu_seconds()
        if sum(used.values()) - sum(before.values()) < SETTLE_S * 0.1:
            return


def offer(made: Cluster, window: Window) -> dict[str, Any]:
    """Let the jobs of a window fire, wait for all results, and return the figures."""
    engine = made.engine()
    with engine.begin() as connection:
        jobs = select(Job.id).where(Job.job_desc == window.desc).order_by(Job.id).limit(window.jobs)
        ids = list(connection.scalars(jobs))
        last_id = connection.scalar(select(func.max(JobLog.id))) or 0
    first_ms = (int(time.time()) + LEAD_S) * 1000
    last_ms = first_ms + (window.seconds - 1) * 1000
    with engine.begin() as connection:
        due_ms = first_ms + cast(Job.id - ids[0], BigInteger) % window.period_s * 1000
        times = {"trigger_next_time": due_ms, "not_after_ms": last_ms + window.period_s * 1000 - 1}
        in_window = (Job.job_desc == window.desc) & (Job.id <= ids[-1])
        connection.execute(update(Job).where(in_window).values(trigger_status=1, **times))
    time.sleep(max(first_ms / 1000 - 6.5 - time.time(), 0))
    before = made.cpu_seconds()

    def finished() -> bool:
        with read_scope() as session:
            left = session.scalar(select(func.count()).where(Fire.due_time <= last_ms))
        return left == 0 and time.time() * 1000 > last_ms

    with Yardstick() as yardstick:
        time.sleep(max(last_ms / 1000 - time.time(), 0))
        wait_until(finished, "all results", made, timeout_s=DRAIN_S)
    ended, after = time.time(), made.cpu_seconds()
    expected = window.expected(ids, first_ms)
    cpu = cpu_per_trigger(before, after, len(expected))
    return {"yardstick_ms": yardstick.ms, "cpu_ms_per_trigger": cpu} | _figures(
        made, expected, (first_ms, last_ms), ended * 1000, last_id
    )


def _figures(
    made: Cluster,
    expected: set[tuple[int, int]],
    bounds: tuple[int, int],
    ended_ms: float,
    after_id: int,
) -> dict[str, Any]:
    first_ms, last_ms = bounds
    received, starts = _received(made)
    with read_scope() as session:
        columns = (JobLog.id, JobLog.job_id, JobLog.fire_time, JobLog.handle_code)
        ours = select(*columns).where(JobLog.id > after_id, JobLog.fire_time.between(first_ms, last_ms))
        rows = session.execute(ours).all()
    counted = Counter((row.job_id, row.fire_time) for row in rows)
    handled = sum(row.handle_code == 200 for row in rows)
    instants = {row.id: row.fire_time for row in rows if row.id in received}
    lags = [received[log_id] - fire_ms for log_id, fire_ms in instants.items()]
    return {
        "triggers_per_s": round(handled * 1000 / max(ended_ms - first_ms, last_ms + 1000 - first_ms), 1),
        "drained_after_s": round((ended_ms - last_ms) / 1000, 2),
        "lag_ms": {
            "p50": percentile(lags, 0.5),
            "p99": percentile(lags, 0.99),
            "max": round(max(lags, default=0), 1),
        },
        "worst_lag_ms_by_second": by_second(lags, list(instants.values()), 1.0),
        "p99_lag_ms_by_second": by_second(lags, list(instants.values()), 0.99),
        "early": sum(lag < 0 for lag in lags),
        "lost": len(expected - counted.keys()),
        "doubled": sum(counted.values()) - len(counted) + sum(starts[log_id] - 1 for log_id in instants),
        "unfinished": len(expected) - handled,
    }


def _received(made: Cluster) -> tuple[dict[int, float], Counter[int]]:
    """Return when each run arrived at a stub, and how often."""
    runs = []
    for name in made.processes:
        if name.startswith("stub"):
            made.dump_runs(name)
            runs += read_runs(made.home / f"{name}.jsonl")
    return {log_id: at_ms for log_id, _, at_ms in runs}, Counter(log_id for log_id, _, _ in runs)


def by_second(lags: list[float], instants: list[int], share: float) -> list[int]:
    """Return a percentile of the lags of each scheduled second, in order: a cold start shows in the first."""
    of_instant = defaultdict[int, list[float]](list)
    for lag, instant in zip(lags, instants, strict=True):
        of_instant[instant].append(lag)
    return [round(percentile(of_instant[instant], share)) for instant in sorted(of_instant)]
