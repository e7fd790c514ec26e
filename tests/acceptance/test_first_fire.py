"""From an empty database to a job that fires, through public interfaces only, with our own executor."""

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import requests
from sqlalchemy import text

from app.clock import now_ms
from app.domain.access.api_tokens import PREFIX, Grant, stored_rights, token_hash
from app.domain.access.permissions import Right
from tests.acceptance.cluster import Cluster
from tests.acceptance.programs import ROOT
from tests.documented.blocks import script_of
from tests.support.acceptance import shared
from tests.support.eventually import eventually

pytestmark = pytest.mark.once

APPNAME = "xxl-job-executor-sample"
DEMO = "executor_client.demo"


@pytest.fixture(scope="module")
def running(
    request: pytest.FixtureRequest, shared_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, int]]:
    """Console, workers and the demo executor, with its group id; one per kind of database."""
    with shared(request.config, shared_kind, tmp_path_factory.mktemp("first")) as made:
        yield made, made.start_all(lambda: made.start_client(DEMO, appname=APPNAME), APPNAME)


@pytest.fixture
def cluster(running: tuple[Cluster, int]) -> Cluster:
    return running[0]


@pytest.fixture
def group_id(running: tuple[Cluster, int]) -> int:
    return running[1]


def instant_of(text: str) -> int:
    """Read ``2024-05-01T03:04:05.000+00:00``."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def test_a_job_fires_on_time_and_its_log_can_be_read(cluster: Cluster, group_id: int) -> None:
    console = cluster.console
    shown = console.post("/jobinfo/nextTriggerTime", scheduleType="CRON", scheduleConf="0/2 * * * * ?")
    times = [datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) for text in shown]
    assert len(times) == 5
    assert {later - earlier for earlier, later in zip(times, times[1:], strict=False)} == {
        timedelta(seconds=2)
    }

    job = {"scheduleType": "CRON", "scheduleConf": "0/2 * * * * ?", "executorHandler": "shardingJobHandler"}
    job_id = console.add_job(group_id, **job, triggerStatus=0)
    assert console.job(group_id, job_id)["triggerStatus"] == 0
    started_ms = now_ms()
    console.start(job_id)
    runs = console.await_runs(group_id, job_id, 3)
    console.stop(job_id)

    fired = [instant_of(run["triggerTime"]) for run in reversed(runs)]
    # the first even second after the start, then every other one; each is sent in the second of its instant
    assert fired[0] - started_ms <= 2_000 + 1_000
    assert [later - earlier for earlier, later in zip(fired, fired[1:], strict=False)] == [2_000] * (
        len(fired) - 1
    )
    assert all(second % 2_000 == 0 for second in fired)
    assert {(run["triggerCode"], run["handleCode"]) for run in runs} == {(200, 200)}
    assert "shard 0 of 1" in runs[0]["handleMsg"]


def test_a_manual_run_gets_its_parameter_and_shows_its_log(cluster: Cluster, group_id: int) -> None:
    console = cluster.console
    job_id = console.add_job(group_id, executorHandler="demoJobHandler", executorParam="stored")
    console.trigger(job_id, "typed by hand")
    (run,) = console.await_runs(group_id, job_id, 1)
    assert (run["triggerCode"], run["handleCode"], run["handleMsg"]) == (200, 200, "10 lines written")
    assert run["executorParam"] == "typed by hand"
    text = eventually(lambda: "line 10 of 10" in (found := console.log_text(run["id"])) and found)
    assert "Hello from Python, parameter &#x27;typed by hand&#x27;" in str(text)
    assert "<" not in str(text)


@pytest.fixture
def api(cluster: Cluster) -> Iterator[requests.Session]:
    """Client of the API with a service token."""
    token = PREFIX + "a" * 43
    rights = stored_rights(Grant(frozenset(Right), False, None))
    sql = "INSERT INTO xxl_job_token (name, token_hash, rights) VALUES ('ci', :hash, :rights)"
    with cluster.engine().begin() as connection:
        connection.execute(text("DELETE FROM xxl_job_token"))
        connection.execute(text(sql), {"hash": token_hash(token), "rights": rights})
    with requests.Session() as http:
        http.trust_env = False
        http.headers["Authorization"] = f"Bearer {token}"
        yield http


def test_a_trigger_over_the_api_is_awaited_and_its_log_followed(
    cluster: Cluster, group_id: int, api: requests.Session
) -> None:
    console, address = cluster.console, f"{cluster.console.address}/api/v1"
    job_id = console.add_job(group_id, executorHandler="demoJobHandler")
    key = {"Idempotency-Key": "nightly"}
    path = f"{address}/jobs/{job_id}/runs"
    answers = [api.post(path, json={"param": "by a script"}, headers=key, timeout=20) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    queued = answers[0].json()
    assert answers[1].json() == queued
    with api.get(f"{address}/runs/{queued['id']}/log?follow=true", stream=True, timeout=20) as stream:
        events = [json.loads(line) for line in stream.iter_lines()]
    lines = [event["text"] for event in events if "text" in event]
    assert [event["line"] for event in events if "text" in event] == list(range(1, len(lines) + 1))
    assert any("Hello from Python, parameter 'by a script'" in line for line in lines)
    assert any("line 10 of 10" in line for line in lines)
    assert events[-1] == {"end": True, "state": "succeeded", "next_line": len(lines) + 1}
    (run,) = console.runs(group_id, job_id)
    assert api.get(f"{address}/runs/{queued['id']}", timeout=20).json()["id"] == str(run["id"])


def test_a_planned_run_waits_for_its_instant(cluster: Cluster, group_id: int, api: requests.Session) -> None:
    address = f"{cluster.console.address}/api/v1"
    job_id = cluster.console.add_job(group_id, executorHandler="shardingJobHandler")
    planned = api.post(f"{address}/jobs/{job_id}/runs", json={"in_s": 1.5}, timeout=20).json()
    run = api.get(f"{address}/runs/{planned['id']}?wait=30", timeout=40).json()
    assert run["state"] == "succeeded"
    trace_due = planned["due_at"].replace("T", " ").replace("Z", " +0000")
    assert f"due {trace_due}" in run["trace"]
    assert re.search(r"\(\d+ ms after due\)", run["trace"]), "not before it is due"


def test_the_tutorial_of_the_api_runs_as_written(
    cluster: Cluster, group_id: int, api: requests.Session
) -> None:
    console = cluster.console
    script = script_of(ROOT / "docs/api.md").replace("http://127.0.0.1:8080/xxl-job-admin", console.address)
    token = str(api.headers["Authorization"]).removeprefix("Bearer ")
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script.replace("TOKEN=xxl_...", f"TOKEN={token}")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    answers = [json.loads(text) for text in re.findall(r"^{.*}$", ended.stdout, re.MULTILINE)]
    assert [answer["state"] for answer in answers if "trace" in answer] == ["succeeded"]
    assert "Hello from Python, parameter '2027'" in ended.stdout
    shown = cluster.select("SELECT count(*) AS jobs FROM xxl_job_info WHERE job_desc = 'Report of sales'")
    assert shown == [{"jobs": 0}]


def test_children_and_retries_run_once(cluster: Cluster, group_id: int) -> None:
    console = cluster.console
    child_id = console.add_job(group_id, executorHandler="shardingJobHandler")
    parent_id = console.add_job(group_id, executorHandler="sleepJobHandler", childJobId=str(child_id))
    failing_id = console.add_job(group_id, executorHandler="failJobHandler", executorFailRetryCount=2)
    for _ in range(3):
        console.trigger(parent_id, "0")
    console.trigger(failing_id, "x")

    console.await_runs(group_id, parent_id, 3)
    console.await_runs(group_id, child_id, 3)
    failed = console.await_runs(group_id, failing_id, 3)
    assert sorted(run["executorFailRetryCount"] for run in failed) == [0, 1, 2]
    assert {run["executorParam"] for run in failed} == {"x"}
    assert {run["handleCode"] for run in failed} == {500}
    # time enough for a fourth run: the queue is empty, and none came
    eventually(lambda: cluster.select("SELECT count(*) AS fires FROM xxl_job_fire")[0]["fires"] == 0)
    assert (len(console.runs(group_id, child_id)), len(console.runs(group_id, failing_id))) == (3, 3)
    alarms_sql = "SELECT count(*) AS alarms FROM xxl_job_alarm WHERE job_id = :job"
    assert [
        cluster.select(alarms_sql, job=job_id)[0]["alarms"] for job_id in (parent_id, child_id, failing_id)
    ] == [0, 0, 3]


def test_an_executor_that_deregisters_is_removed_at_once(cluster: Cluster) -> None:
    console = cluster.console
    program = cluster.start_client(DEMO, appname="one-that-goes", name="one-that-goes")
    group_id = console.add_group("one-that-goes")
    console.await_addresses(group_id)
    job_id = console.add_job(group_id, executorHandler="shardingJobHandler")
    assert program.end() == 0
    console.trigger(job_id)
    (run,) = console.await_runs(group_id, job_id, 1)
    assert (run["triggerCode"], run["handleCode"]) == (500, 0)
    assert "one-that-goes" in run["triggerMsg"]
