"""Behaviour required of every foreign executor, unmodified; differences are in ``foreign.KINDS``."""

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from urllib.parse import urljoin

import pytest
import requests

from app.services.run_logs.log_pieces import split_lines
from executor_client.wire.protocol import TOKEN_HEADER, LogRequest
from tests.acceptance.cluster import TOKEN, Cluster
from tests.interop.foreign import INSTALL_S
from tests.support.eventually import eventually
from tests.support.interop import Pair
from tests.support.rounds import run_after

# the first run on a machine installs and compiles the executors
pytestmark = pytest.mark.timeout(INSTALL_S)

#: seconds of a run that is to be killed or to time out
LONG = "30"
#: most pieces of a short log
PIECES = 10
#: whether kill or result comes first is random
KILLS = 3


def test_it_fires_on_schedule(pair: Pair) -> None:
    job_id = pair.add_job(
        "ok", scheduleType="CRON", scheduleConf="* * * * * ?", executorRouteStrategy="ROUND", triggerStatus=1
    )
    runs = pair.await_runs(job_id, 4)  # one that is given back takes a turn, too
    pair.console.stop(job_id)
    assert {(run["triggerCode"], run["handleCode"]) for run in runs} == {(200, 200)}
    assert {run["executorAddress"] for run in runs} == set(pair.programs)


def test_a_manual_run_has_its_parameter_and_its_log(pair: Pair) -> None:
    run = pair.run("ok", "day=1 täglich 每天 <b>", executorParam="not this one")
    assert (run["triggerCode"], run["handleCode"]) == (200, 200), run
    assert "hello day=1 täglich 每天 &lt;b&gt;" in pair.await_log(run["id"], "hello")
    assert any("hello day=1 täglich 每天 <b>" in line for line in lines_of_the_page(pair, run["id"]))


def lines_of_the_page(pair: Pair, log_id: int) -> list[str]:
    """Open the page of a run that has ended and return the lines its script would show, until it stops."""
    page = pair.console.http.get(
        f"{pair.console.address}/joblog/logDetailPage", params={"id": log_id}, timeout=20
    )
    assert page.status_code == 200
    lines_url = re.search(r'data-lines="([^"]+)"', page.text)
    assert lines_url is not None
    lines: list[str] = []
    first = 1
    for _ in range(PIECES):
        address = urljoin(page.url, lines_url[1])
        part = pair.console.http.get(address, params={"from": first}, timeout=20).json()
        if not part["lines"]:
            assert part["end"]
            return lines
        lines += part["lines"]
        first = part["to"] + 1
    raise AssertionError(f"the log does not end: {lines[-5:]}")


@pytest.mark.once
def test_a_long_log_is_read_in_pieces(pair: Pair) -> None:
    run = pair.run("lines")
    text = pair.await_log(run["id"], "line 200 of 200")
    numbers = [int(number) for number in re.findall(r"line (\d+) of 200", text)]
    assert numbers == list(range(1, 201))


def test_the_archived_log_is_what_the_executor_has(pair: Pair, cluster: Cluster) -> None:
    job_id = pair.add_job("lines")
    with closing(sqlite3.connect(cluster.folder / "xxl_job.db", isolation_level=None)) as database:
        database.execute("UPDATE xxl_job_info SET log_archive = 'all' WHERE id = ?", (job_id,))
        pair.console.trigger(job_id)
        run = pair.await_runs(job_id, 1)[0]

        def state() -> str:
            query = "SELECT state FROM xxl_job_log_archive WHERE log_id = ?"
            return str((database.execute(query, (run["id"],)).fetchone() or ("",))[0])

        eventually(lambda: state() == "complete", 40, "the log is archived")
    lines = lines_at_executor(run)
    assert "line 200 of 200" in "".join(lines)
    pair.programs[run["executorAddress"]].kill()
    try:
        assert lines_of_the_page(pair, run["id"]) == lines
    finally:
        pair.start_again(run["executorAddress"])


def lines_at_executor(run: dict[str, Any]) -> list[str]:
    """Read the log of a run at its executor, in one piece."""
    sent = datetime.fromisoformat(run["triggerTime"])
    sent_ms = int((sent if sent.tzinfo else sent.replace(tzinfo=UTC)).timestamp() * 1000)
    request = LogRequest(run["id"], sent_ms, 1)
    answer = requests.post(
        f"{run['executorAddress'].rstrip('/')}/log",
        json=request.to_wire(),
        headers={TOKEN_HEADER: TOKEN},
        timeout=20,
    ).json()
    return split_lines((answer.get("content") or answer["data"])["logContent"])


def test_a_result_is_reported(pair: Pair) -> None:
    run = pair.run("echo", "täglich 每天")
    assert run["handleCode"] == 200, run
    assert pair.kind.echoed("täglich 每天") in run["handleMsg"]


@pytest.mark.once
def test_a_failure_is_retried_and_reported(pair: Pair) -> None:
    job_id = pair.add_job("fail", executorFailRetryCount=1)
    pair.console.trigger(job_id)
    runs = pair.await_runs(job_id, 2)
    assert [(run["triggerCode"], run["handleCode"], run["executorFailRetryCount"]) for run in runs] == [
        (200, 500, 0),
        (200, 500, 1),
    ], runs


def test_an_unknown_handler_fails_at_once(pair: Pair) -> None:
    run = pair.run("nobody")
    assert (run["triggerCode"], run["handleCode"]) == (500, 0)
    assert pair.kind.unknown in run["triggerMsg"]


def test_a_run_that_exceeds_its_timeout_fails(pair: Pair) -> None:
    run = pair.run("sleep", LONG, executorTimeout=1)
    assert (run["triggerCode"], run["handleCode"]) == (200, pair.kind.timeout_code)


def killed(pair: Pair) -> tuple[int, dict[str, Any]]:
    """Kill a started run; return its job and its row."""
    job_id = pair.add_job("sleep")
    pair.console.trigger(job_id, LONG)
    (run,) = eventually(
        lambda: [row for row in pair.console.runs(pair.group_id, job_id) if row["triggerCode"] == 200], 20
    )
    pair.await_log(run["id"], "asleep")
    pair.console.post("/joblog/logKill", id=run["id"])
    return job_id, pair.await_runs(job_id, 1)[0]


def test_a_run_can_be_killed_and_stays_killed(pair: Pair) -> None:
    # some report the result of a killed run before they answer the kill, one of them as a success
    runs = [killed(pair) for _ in range(KILLS)]
    assert {run["handleCode"] for _, run in runs} == {500}
    # the executor is free again: its result of the killed run precedes the result of the next one
    job_id = runs[-1][0]
    pair.console.trigger(job_id, "0")
    later, earlier = eventually(lambda: (rows := pair.await_runs(job_id, 2)) and len(rows) == 2 and rows, 20)
    assert (earlier["handleCode"], later["handleCode"]) == (500, 200)


def test_runs_of_a_job_with_a_limit_take_turns_on_all_executors(pair: Pair) -> None:
    job_id = pair.add_job("sleep", executorRouteStrategy="ROUND", maxRunning=1)
    for _ in range(3):
        pair.console.trigger(job_id, "1")
    runs = sorted(pair.await_runs(job_id, 3), key=lambda run: run["id"])
    assert {(run["triggerCode"], run["handleCode"]) for run in runs} == {(200, 200)}
    assert {run["executorAddress"] for run in runs} == set(pair.programs)
    for former, later in pairwise(runs):
        assert former["handleTime"] <= later["triggerTime"], (former, later)


def test_a_newer_run_replaces_the_one_in_progress(pair: Pair) -> None:
    job_id = pair.add_job("sleep", maxRunning=1, whenFull="replace", executorFailRetryCount=2)
    pair.console.trigger(job_id, LONG)
    (run,) = eventually(
        lambda: [row for row in pair.console.runs(pair.group_id, job_id) if row["triggerCode"] == 200], 20
    )
    pair.await_log(run["id"], "asleep")
    pair.console.trigger(job_id, "0")
    runs = sorted(pair.await_runs(job_id, 2), key=lambda run: run["id"])
    assert [run["handleCode"] for run in runs] == [500, 200], runs


def test_a_job_runs_once_after_others_or_not_at_all(pair: Pair, cluster: Cluster) -> None:
    ok, failing = pair.add_job("ok"), pair.add_job("fail")
    shards = pair.add_job("shard", executorRouteStrategy="SHARDING_BROADCAST")
    after_success, after_end, after_failure = (pair.add_job("ok") for _ in range(3))
    engine = cluster.engine()
    run_after(engine, after_success, (ok, shards), round="since_last")
    run_after(engine, after_end, (ok, failing), round="since_last", rule="all_ended")
    run_after(engine, after_failure, (failing,), round="since_last")
    for job_id in (ok, shards, failing):
        pair.console.trigger(job_id)
    for job_id in (after_success, after_end):
        (run,) = pair.await_runs(job_id, 1)
        assert (run["triggerCode"], run["handleCode"]) == (200, 200), run
    sql = "SELECT reason FROM xxl_job_skip WHERE job_id = :job"
    (skip,) = eventually(lambda: cluster.select(sql, job=after_failure), 20)
    assert skip["reason"] == "predecessor"
    assert not pair.console.runs(pair.group_id, after_failure)
    ended = {run["id"]: run["handleTime"] for job in (ok, shards) for run in pair.await_runs(job, 1)}
    assert pair.await_runs(after_success, 1)[0]["triggerTime"] >= max(ended.values())


@pytest.mark.once
def test_a_broadcast_reaches_every_executor_once(pair: Pair) -> None:
    job_id = pair.add_job("shard", executorRouteStrategy="SHARDING_BROADCAST")
    pair.console.trigger(job_id)
    runs = pair.await_runs(job_id, 2)
    assert {run["executorShardingParam"] for run in runs} == {"0/2", "1/2"}
    assert {run["executorAddress"] for run in runs} == set(pair.programs)
    for run in runs:
        index = run["executorShardingParam"].partition("/")[0]
        pair.await_log(run["id"], f"shard {index} of 2")


@pytest.mark.once
def test_a_dead_executor_is_skipped(pair: Pair) -> None:
    first, second = sorted(pair.programs)
    run = pair.run("ok", executorRouteStrategy="FAILOVER")
    assert (run["handleCode"], run["executorAddress"]) == (200, first)
    pair.programs[first].kill()
    try:
        run = pair.run("ok", executorRouteStrategy="FAILOVER")
    finally:
        pair.start_again(first)
    assert (run["handleCode"], run["executorAddress"]) == (200, second)
