"""Parameters that are filled in: every foreign executor, unmodified, receives them verbatim."""

import json
import subprocess
import sys
from typing import Any

import pytest
from sqlalchemy import update

from app.models.job import Job
from tests.acceptance.cluster import Cluster
from tests.acceptance.programs import ROOT
from tests.interop.foreign import INSTALL_S
from tests.support.eventually import eventually
from tests.support.interop import Pair

# the first run on a machine installs and compiles the executors
pytestmark = [pytest.mark.timeout(INSTALL_S), pytest.mark.extensive]

TIMEOUT_S = 60
#: with what JSON writes differently
SECRET = 'käy "每天" \\ 4711'
SHOWN = "‹secret TOKEN›"
WORDS = '每天 täglich 😀 <b> $ ${ $HOME " \\'
IN_JSON = json.dumps({"words": WORDS}, ensure_ascii=False)[1:-1].replace("${", "$${")
TEMPLATE = f'{{{IN_JSON}, "day": "${{time:yyyy-MM-dd}}", "run": ${{run.id}}, "all": ["${{secret.TOKEN}}"]}}'


def duetime(cluster: Cluster, *arguments: object, given: str = "") -> None:
    """Run a command on the database of the console."""
    ended = subprocess.run(
        [sys.executable, "-m", "app", "--local", *map(str, arguments)],
        cwd=ROOT,
        env=cluster.environ,
        input=given,
        text=True,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    assert ended.returncode == 0, ended.stderr


def run_filled(pair: Pair, cluster: Cluster, handler: str, template: str) -> dict[str, Any]:
    """Run a job whose parameter is filled in and has a secret; return its row."""
    duetime(cluster, "variables", "set", "TOKEN", "--group", pair.group_id, "--secret-stdin", given=SECRET)
    job_id = pair.add_job(handler)
    with cluster.engine().begin() as connection:
        values = {"executor_param": template, "fill_parameter": 1}
        connection.execute(update(Job).where(Job.id == job_id).values(**values))
    duetime(cluster, "jobs", "trigger", job_id)
    return pair.await_runs(job_id, 1)[0]


def test_json_is_received_verbatim(pair: Pair, cluster: Cluster) -> None:
    """The result is masked, which happens only to the exact value."""
    run = run_filled(pair, cluster, "echo", TEMPLATE)
    day, log_id = run["triggerTime"][:10], run["id"]
    members = {"words": WORDS, "day": day, "run": log_id, "all": [SHOWN]}
    assert run["handleCode"] == 200, run
    assert run["handleMsg"] == pair.kind.echoed(json.dumps(members, ensure_ascii=False))


def test_text_is_received_verbatim_and_masked_in_the_log(pair: Pair, cluster: Cluster) -> None:
    run = run_filled(pair, cluster, "ok", "day ${time:yyyy} $${HOME} 每天 ${secret.TOKEN}!")
    line = f"hello day {run['triggerTime'][:4]} ${{HOME}} 每天 {SHOWN}!"
    assert line in pair.await_log(run["id"], "hello")
    pages = [f"/joblog/{run['id']}/{name}" for name in ("lines", "lines?last=5", "log.txt")]

    def texts() -> list[str]:
        answers = [
            pair.console.http.get(f"{pair.console.address}{page}", timeout=TIMEOUT_S) for page in pages
        ]
        return [answer.text for answer in answers]

    assert all("secret TOKEN" in text and "4711" not in text for text in eventually(texts, TIMEOUT_S))
