"""Scenario ``broken-promises``: what never came, hangs or lost its executor is reported in time, and once."""

import json
import signal
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import text

from bench.faults.installation import clock_ms, installation
from bench.faults.scenarios.clock_jump import Clock
from tests.acceptance.cluster import Cluster
from tests.acceptance.programs import free_port
from tests.support.eventually import eventually
from tests.support.fake_executor import FakeExecutor

#: seconds that the promises of the scenario give a run
PROMISED_S = 4
#: longest time from a broken promise to its message
WITHIN_S = 10
#: from the creation of a job to its instant
AHEAD_S = 8
#: how long further messages are waited for, of which there must be none
QUIET_S = 8
#: how far the clock of a node is set back
SET_BACK_S = 30
HEARTBEAT = "/beat"


@dataclass
class _Breach:
    """A promise that is broken on purpose."""

    name: str
    job_id: int
    #: when it is broken
    broken_ms: int


def broken_promises(db: str, folder: Path) -> dict[str, Any]:
    """A due fire is deleted, a handler hangs, an executor vanishes, all workers are killed.

    Two consoles, and two workers, of which one has its clock set back. Must hold: one message for each, at
    most ten seconds after its promise was broken, by a console while the workers are dead; one when it is
    kept again; none for a healthy job.
    """
    with FakeExecutor() as hook, FakeExecutor() as executor:
        settings = {
            "XXL_JOB_ALARM_URLS": hook.address.replace("http", "json", 1),
            "XXL_JOB_HEARTBEAT_URL": f"{hook.address.rstrip('/')}{HEARTBEAT}",
        }
        with installation(db, folder, **settings) as cluster:
            clock = Clock(folder)
            console = cluster.start_console(wait=False)
            _start_workers(cluster, clock)
            cluster.start("console-2", "wsgi.py", XXL_JOB_PORT=str(free_port()), XXL_JOB_NODE_NAME="two")
            cluster.await_console(console)
            clock.set(-SET_BACK_S)
            return _play(cluster, clock, executor, hook)


def _start_workers(cluster: Cluster, clock: Clock) -> None:
    """Start two nodes, one of which has a clock of its own."""
    cluster.start_workers("workers-1")
    right, cluster.settings = cluster.settings, {**cluster.settings, **clock.settings}
    cluster.start_workers("workers-2")
    cluster.settings = right


def _play(cluster: Cluster, clock: Clock, executor: FakeExecutor, hook: FakeExecutor) -> dict[str, Any]:
    group_id = cluster.console.add_group("answering", addressType=1, addressList=executor.address)
    gone_id = cluster.console.add_group(
        "vanished", addressType=1, addressList=f"http://127.0.0.1:{free_port()}/"
    )
    starts, takes = {"kind": "starts_within", "s": PROMISED_S}, {"kind": "takes_at_most", "s": PROMISED_S}
    healthy = _add_job(cluster, group_id, [starts], scheduleType="FIX_RATE", scheduleConf="5")
    breaches = [
        _breach(cluster, "deleted", group_id, starts),
        _breach(cluster, "hung", group_id, takes),
        _breach(cluster, "vanished", gone_id, starts),
    ]
    _delete_fire(cluster, breaches[0].job_id)
    for breach in breaches:
        eventually(lambda breach=breach: _broken(hook, breach.job_id), timeout_s=40, message=breach.name)
    for name in ("workers-1", "workers-2"):
        for child in cluster.programs[name].workers():
            child.send_signal(signal.SIGKILL)
        cluster.programs[name].kill()
    killed_ms = clock_ms()
    eventually(lambda: _broken(hook, healthy), timeout_s=40, message="the workers are dead")
    first = min(_broken(hook, healthy))
    clock.set(0)
    _start_workers(cluster, clock)
    eventually(lambda: _of_job(hook, healthy)["kept again"], timeout_s=40, message="kept again")
    time.sleep(QUIET_S)
    problems = [problem for breach in breaches for problem in _problems(hook, breach)]
    lateness = {breach.name: _late_s(hook, breach) for breach in breaches}
    lateness["workers"] = (first - killed_ms) / 1000 - PROMISED_S - 5
    if lateness["workers"] > WITHIN_S:
        problems.append(f"reported {lateness['workers']:.1f} s late that the workers were dead")
    if not [request for request in hook.requests if request.target.startswith(HEARTBEAT)]:
        problems.append("no heartbeat")
    texts = Counter(f"{title} {text}" for title, text, _at in _messages(hook))
    problems += [f"sent {count} times: {text}" for text, count in texts.items() if count > 1]
    return {
        "late_s": lateness,
        "messages": texts.total(),
        "incidents": len(cluster.select("SELECT id FROM xxl_job_incident")),
        "problems": dict(Counter(problems)),
    }


def _breach(cluster: Cluster, name: str, group_id: int, promise: dict[str, Any]) -> _Breach:
    instant = (datetime.now(UTC) + timedelta(seconds=AHEAD_S)).replace(microsecond=0)
    schedule = {"scheduleType": "CRON", "scheduleConf": f"{instant:%-S %-M %-H %-d %-m} ? {instant:%Y}"}
    job_id = _add_job(cluster, group_id, [promise], **schedule)
    return _Breach(name, job_id, int(instant.timestamp() + PROMISED_S) * 1000)


def _add_job(cluster: Cluster, group_id: int, promises: list[dict[str, Any]], **schedule: str) -> int:
    job_id = cluster.console.add_job(group_id, **schedule)
    with cluster.engine().begin() as connection:
        update = text("UPDATE xxl_job_info SET promises = :promises WHERE id = :id")
        connection.execute(update, {"promises": json.dumps(promises), "id": job_id})
    cluster.console.start(job_id)
    return int(job_id)


def _delete_fire(cluster: Cluster, job_id: int) -> None:
    """Delete the fire of a job as soon as there is one, before it is sent."""
    delete = text("DELETE FROM xxl_job_fire WHERE job_id = :id AND state = 'PENDING'")

    def is_deleted() -> bool:
        with cluster.engine().begin() as connection:
            return connection.execute(delete, {"id": job_id}).rowcount > 0

    eventually(is_deleted, timeout_s=20, message="its fire was deleted")


def _messages(hook: FakeExecutor) -> list[tuple[str, str, int]]:
    """Return title, text and time of arrival of the messages."""
    return [
        (request.json["title"], request.json["message"], request.received_ms)
        for request in list(hook.requests)
        if not request.target.startswith(HEARTBEAT)
    ]


def _of_job(hook: FakeExecutor, job_id: int) -> dict[str, list[int]]:
    """Return when the messages about a job arrived: of its broken promises, and that they are kept again."""
    arrivals: dict[str, list[int]] = {"broken": [], "kept again": []}
    for title, _text, at_ms in _messages(hook):
        if f"(job {job_id})" in title:
            arrivals["kept again" if "kept again" in title else "broken"].append(at_ms)
    return arrivals


def _broken(hook: FakeExecutor, job_id: int) -> list[int]:
    return _of_job(hook, job_id)["broken"]


def _late_s(hook: FakeExecutor, breach: _Breach) -> float:
    return (min(_broken(hook, breach.job_id)) - breach.broken_ms) / 1000


def _problems(hook: FakeExecutor, breach: _Breach) -> list[str]:
    arrivals, problems = _broken(hook, breach.job_id), list[str]()
    if len(arrivals) != 1:
        problems.append(f"{breach.name}: {len(arrivals)} messages")
    if _late_s(hook, breach) > WITHIN_S:
        problems.append(f"{breach.name}: {_late_s(hook, breach):.1f} s late")
    return problems
