"""An executor group off and on again, with real processes: nothing starts meanwhile but what is forced."""

from pathlib import Path

import pytest
import requests
from sqlalchemy import text

from app.clock import now_ms
from app.domain.access.api_tokens import PREFIX, Grant, stored_rights, token_hash
from app.domain.access.permissions import Right
from app.domain.schedules.instants import read_instant
from tests.acceptance.cluster import Cluster
from tests.support.acceptance import shared
from tests.support.eventually import eventually

pytestmark = pytest.mark.once

APPNAME = "xxl-job-executor-sample"
#: column of `xxl_job_log` that says where a run comes from
RUNS = "SELECT trigger_type, fire_time FROM xxl_job_log WHERE job_id = {job_id} ORDER BY id"


def client_of(cluster: Cluster) -> requests.Session:
    token = PREFIX + "a" * 43
    sql = "INSERT INTO xxl_job_token (name, token_hash, rights) VALUES ('ci', :hash, :rights)"
    rights = stored_rights(Grant(frozenset(Right), False, None))
    with cluster.engine().begin() as connection:
        connection.execute(text(sql), {"hash": token_hash(token), "rights": rights})
    http = requests.Session()
    http.trust_env = False
    http.headers["Authorization"] = f"Bearer {token}"
    return http


def test_a_group_is_off_until_its_blackout_is_ended(
    request: pytest.FixtureRequest, shared_kind: str, tmp_path: Path
) -> None:
    with shared(request.config, shared_kind, tmp_path) as cluster:
        group_id = cluster.start_all(
            lambda: cluster.start_client("executor_client.demo", appname=APPNAME), APPNAME
        )
        console = cluster.console
        job_id = console.add_job(
            group_id, scheduleType="CRON", scheduleConf="* * * * * ?", executorHandler="shardingJobHandler"
        )
        console.start(job_id)
        console.await_runs(group_id, job_id, 2)
        http, address = client_of(cluster), f"{console.address}/api/v1"

        def post(path: str, **body: object) -> requests.Response:
            return http.post(f"{address}{path}", json=body or None, timeout=20)

        made = post("/blackouts", group_id=group_id, reason="moving", afterwards="run_once").json()
        refused = post(f"/jobs/{job_id}/runs", force=False)
        assert (refused.status_code, refused.json()["detail"]) == (
            409,
            "a blackout is on, without an end: moving",
        )
        later = post(f"/jobs/{job_id}/runs", in_s=1).json()["id"]
        forced = post(f"/jobs/{job_id}/runs", force=True).json()["id"]

        def run(run_id: str) -> dict[str, object]:
            answer: dict[str, object] = http.get(f"{address}/runs/{run_id}", timeout=20).json()
            return answer

        eventually(lambda: run(forced)["state"] == "succeeded")
        eventually(lambda: run(later)["reason"] == "blackout")
        eventually(lambda: now_ms() > read_instant(made["from"]) + 4_000)
        ended = post(f"/blackouts/{made['id']}/end")
        assert ended.status_code == 200, ended.text
        eventually(lambda: run(later)["state"] == "succeeded")
        rows = eventually(
            lambda: (
                (found := cluster.select(RUNS.format(job_id=job_id)))
                and [row for row in found if row["trigger_type"] == "MISFIRE"]
                and found
            )
        )
        assert isinstance(rows, list)
        kinds = [row["trigger_type"] for row in rows]
        assert kinds.count("MISFIRE") == 1
        assert kinds.count("MANUAL") == 2
        skips = eventually(
            lambda: cluster.select(f"SELECT reason, skipped FROM xxl_job_skip WHERE job_id = {job_id}")
        )
        assert isinstance(skips, list)
        assert {row["reason"] for row in skips} == {"blackout"}
        from_ms, until_ms = read_instant(made["from"]), read_instant(ended.json()["to"])
        due = [row["fire_time"] for row in rows if row["trigger_type"] == "CRON"]
        assert [instant for instant in due if from_ms <= instant < until_ms] == []
        console.await_runs(group_id, job_id, len(kinds) + 2)
        console.stop(job_id)
