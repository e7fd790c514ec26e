"""Scenario ``garbage-answers``: executors that accept runs and answer every query with nonsense."""

import contextlib
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.faults.checker import UNRESOLVED, Row, check
from bench.faults.installation import installation
from bench.faults.judging import settled_history, verdict
from tests.acceptance.cluster import Cluster
from tests.support.fake_executor import Answer, FakeExecutor

HTML = b"<!DOCTYPE html><html><body><h1>Welcome</h1></body></html>"
NONSENSE = {
    "204": Answer(b"", status=204, headers=()),
    "302": Answer(b"", status=302, headers=(("Location", "/login"),)),
    "200-html": Answer(HTML, headers=(("Content-Type", "text/html"),)),
    "200-empty": Answer(b""),
    "1-mb": Answer(
        random.Random(1).randbytes(1024 * 1024), headers=(("Content-Type", "application/octet-stream"),)
    ),
    "400": Answer(
        b"Client sent an HTTP request to an HTTPS server.\n",
        status=400,
        headers=(("Content-Type", "text/plain"),),
    ),
}
#: queries answered with nonsense: all of them, or only the idle check
SCOPES = {"all": ("*",), "idle": ("idleBeat",)}
#: evidence is collected over 90 s from 10 s after the acceptance; a probe may wait for a timeout
LIMIT_S = 150


@dataclass(frozen=True)
class Case:
    """One executor and its only run."""

    name: str
    executor: FakeExecutor
    job_id: int


def garbage_answers(db: str, folder: Path) -> dict[str, Any]:
    """Executors accept a run, then answer with 204, 302, HTML, nothing, noise or 400; half only to /idleBeat.

    Must hold: within 150 s each run ends unresolved with an alarm; none is sent again.
    """
    with installation(db, folder) as cluster, contextlib.ExitStack() as executors:
        console = cluster.start_console(wait=False)
        cluster.start_workers()
        cluster.await_console(console)
        cases = [
            accepted(cluster, executors.enter_context(FakeExecutor()), f"{scope}-{kind}")
            for kind in NONSENSE
            for scope in SCOPES
        ]
        began = time.monotonic()
        for case in cases:
            cluster.console.trigger(case.job_id)
        history, settled_s = settled_history(cluster, (), LIMIT_S)
        found = check(history)
        rows = {row.job_id: row for row in history.rows}
        ends = {case.name: end_of(rows.get(case.job_id)) for case in cases}
        found.violations += [f"{name}: {end}" for name, end in ends.items() if end != "unresolved"]
        for case in cases:
            sends = len(case.executor.requests_for("run"))
            if sends != 1:
                found.violations.append(f"{case.name}: sent {sends} times")
        figures = {"settled_s": settled_s, "watched_s": round(time.monotonic() - began, 1), "ends": ends}
        return figures | verdict(cluster, history, found)


def accepted(cluster: Cluster, executor: FakeExecutor, name: str) -> Case:
    """Make a group with an executor that accepts and then answers according to its name, and a job for it."""
    scope, _, kind = name.partition("-")
    executor.respond("run", Answer.json())
    executor.respond(
        "log", Answer.json(content={"fromLineNum": 1, "toLineNum": 1, "logContent": "begun", "isEnd": False})
    )
    executor.respond("beat", Answer.json())
    if scope == "all":
        executor.respond("log")
        executor.respond("beat")
    for action in SCOPES[scope]:
        executor.respond(action, NONSENSE[kind])
    group_id = cluster.console.add_group(name, addressType=1, addressList=executor.address)
    return Case(name, executor, cluster.console.add_job(group_id))


def end_of(row: Row | None) -> str:
    """Return one word for the end of a run."""
    if row is None:
        return "not sent"
    if not row.is_final:
        return f"still running after {LIMIT_S} s"
    return (
        "unresolved"
        if row.trigger_code == UNRESOLVED and row.handle_code == 0
        else f"{row.trigger_code}/{row.handle_code}"
    )
