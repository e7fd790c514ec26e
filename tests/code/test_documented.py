"""docs/jobs-as-code.md and the example of a pipeline work as written, against a console over HTTP."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.api.v1.mount import ApiMount
from app.executors.gateway import Gateway
from app.models.job import Job
from app.services.executors.callers import Caller
from app.settings.config import Config
from tests.documented.blocks import blocks_of
from tests.support.api_v1 import ALL, make_token
from tests.support.factories import all_rows, make_group, only_row
from tests.support.serving import serving

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs/jobs-as-code.md"
EXAMPLE = ROOT / "docs/examples/github-actions"
#: as GitHub runs the steps of a job with ``shell: bash``
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c")


@pytest.fixture
def environment(config: Config, database: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of commands: the program duetime, and a console with a token for it."""
    program = tmp_path / "bin/duetime"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m executor_client.cli "$@"\n')
    program.chmod(0o755)
    program.with_name("duetime-cli").symlink_to(program)
    make_group(app_name="other-app")
    with serving(ApiMount(_no_page, config, Caller(Gateway(config.executor_networks), ()))) as port:
        yield {
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(tmp_path),
            "LC_ALL": "C.UTF-8",
            "XXL_JOB_URL": f"http://127.0.0.1:{port}{config.context_path}",
            "XXL_JOB_TOKEN": make_token(*ALL, admin=True),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        }


def _no_page(_environ: Any, start_response: Any) -> list[bytes]:
    start_response("404 Not Found", [])
    return []


def bash(script: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [*BASH, script], cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_tutorial_works_as_written(environment: dict[str, str], tmp_path: Path) -> None:
    shown = [bash(block, tmp_path, environment) for block in blocks_of(TUTORIAL, "sh")]
    first, second, third, fourth, fifth, sixth, seventh, eighth, ninth = shown
    assert "Plan: 2 to create, 0 unchanged." in first
    assert second == "Nothing to do: 2 unchanged.\n"
    assert "schedule: 0 0 2 * * ? -> 0 30 4 * * ?" in third
    assert "runs until now: " in third
    assert "enabled: yes in the code, now no" in fourth
    assert fourth.endswith("No drift.\n")
    assert "Error: jobs/billing.yaml:11:5: jobs.billing-app/close-books.schedule: " in fifth
    assert "retry_count: 0 -> 3" in sixth
    assert "param: " in sixth
    assert "--prune billing-app/report" in seventh
    assert "is undone." in eighth
    assert "exported/report.sh" not in ninth
    assert "param: eu-west" in (tmp_path / "exported/billing-app.yaml").read_text()
    assert (tmp_path / "exported/billing-app/report.sh").is_file()
    assert {job.job_desc: job.executor_fail_retry_count for job in all_rows(Job)} == {
        "Close the books": 3,
        "Nightly report": 0,
    }


def test_the_pipeline_plans_applies_and_finds_drift(environment: dict[str, str], tmp_path: Path) -> None:
    workflow = yaml.safe_load((EXAMPLE / "jobs.yaml").read_text())
    assert set(workflow["env"]) == {"XXL_JOB_URL", "XXL_JOB_TOKEN", "XXL_JOB_CLIENT"}

    def run(name: str) -> str:
        steps = [step["run"] for step in workflow["jobs"][name]["steps"] if "run" in step]
        commands = [step for step in steps if not step.startswith("pip install ")]
        assert len(commands) == 1
        return bash(commands[0], EXAMPLE, environment)

    assert "Plan: 2 to create" in run("plan")
    assert all_rows(Job) == []
    assert "Applied." in run("apply")
    assert only_row(Job).executor_param == "eu-west"
    assert run("drift") == "```diff\nNo drift.\n```\n"
    assert "Nothing to do: 2 unchanged." in run("plan")
    summary = (tmp_path / "summary").read_text()
    assert summary.count("Plan: 2 to create") == 2
    assert summary.startswith("```diff\n+ group billing-app\n    title: Billing\n\n+ job billing-app/")
    with pytest.raises(AssertionError, match="is not a folder"):
        bash(workflow["jobs"]["plan"]["steps"][-1]["run"], tmp_path, environment)
