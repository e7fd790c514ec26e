"""The pytest plugin, in a pytest of its own as a user starts it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from executor_client.pytest_support.server import BESIDE, missing_server
from tests.executor_client.process import ROOT

JOBS = """
import os, threading
from executor_client import context, job

@job("report")
def report():
    print("report for", context.param)
    return "42 rows"

@job("breaks")
def breaks():
    raise ValueError("bad day")

@job("hangs")
def hangs():
    context.cancelled.wait(60)
"""
EXECUTOR = """
import pytest

def test_a_run_succeeds(executor):
    run = executor.run("report", "2024-05-01")
    assert (run.state, run.message) == ("succeeded", "42 rows")
    assert "report for 2024-05-01" in run.log
    assert executor.run("breaks").state == "failed"
    assert "bad day" in executor.run("breaks").message

@pytest.mark.executor(appname="shop")
def test_settings_can_be_changed(executor):
    assert executor.app_name == "shop"

def test_a_run_that_cannot_be_is_named(executor):
    with pytest.raises(Exception, match="the executor refused nothing: "):
        executor.run("nothing")
    with pytest.raises(Exception, match="hangs did not end within 0.1 s"):
        executor.run("hangs", timeout=0.1)
"""
CONSOLE = """
def test_a_run_of_the_console(executor, console):
    run = executor.run("report", "2024-05-01")
    assert (run.state, run.message) == ("succeeded", "42 rows")
    assert "report for 2024-05-01" in run.log

def test_the_calls_of_the_console(executor, console):
    job_id = console.add_job(executor.app_name, "breaks", description="it breaks")
    run = console.trigger(job_id, {"day": 1}).wait(60)
    assert run.state == "failed"
    assert "ValueError: bad day" in run.log()
    assert [job.id for job in console.client.jobs(q="it breaks")] == [job_id]
"""


def run_pytest(folder: Path, tests: str, *arguments: str, jobs: str = JOBS) -> str:
    """Run tests with the plugin, and return what pytest printed."""
    (folder / "myjobs.py").write_text(jobs)
    (folder / "test_mine.py").write_text(tests)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("XXL_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "executor_client.pytest_plugin"]
    ended = subprocess.run(
        [*command, *arguments],
        cwd=folder,
        # other plugins take most of its start
        env={**environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    return ended.stdout + ended.stderr


def test_the_executor_runs_handlers(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, EXECUTOR, "-o", "executor_modules=myjobs")
    assert "3 passed" in output, output


def test_a_missing_handler_or_setting_is_named(tmp_path: Path) -> None:
    wrong = """
import pytest
def test_it(executor): ...
@pytest.mark.executor(appnam="x")
def test_mistyped(executor): ...
"""
    output = run_pytest(tmp_path, wrong, "-o", "executor_modules=nowhere")
    assert "executor_modules: cannot import nowhere" in output
    output = run_pytest(tmp_path, f"from executor_client import job\n{wrong}", jobs="")
    assert "executor_modules = myjobs" in output
    output = run_pytest(tmp_path, f"import myjobs\n{wrong}")
    assert "1 passed" in output
    assert "the marker executor: " in output
    assert "appnam" in output


@pytest.mark.module("sqlalchemy")  # of the server
def test_the_console_runs_handlers(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, CONSOLE, "-o", "executor_modules=myjobs")
    assert "2 passed" in output, output


ELSEWHERE = """
import executor_client.pytest_support.server as s; from pathlib import Path
s.missing_server.__defaults__ = (Path('/nowhere'),)
"""
CLIENT_ONLY = "import sys; sys.modules['sqlalchemy'] = None"
PACKAGES = f"needs the packages of the server in {BESIDE}, such as sqlalchemy"
BESIDE_CLIENT = "needs the server duetime beside executor_client, in /nowhere"
WITH_PLUGIN = "/.venv/bin/python -m pytest -p executor_client.pytest_plugin"


def test_a_missing_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = missing_server(Path("/nowhere"))
    assert BESIDE_CLIENT in reason
    assert f"CHECKOUT{WITH_PLUGIN}" in reason
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    reason = missing_server()
    assert PACKAGES in reason
    assert f"{BESIDE}{WITH_PLUGIN}" in reason


@pytest.mark.parametrize(
    ("environment", "arguments", "outcome", "reason"),
    [
        (CLIENT_ONLY, [], "1 skipped", PACKAGES),
        (ELSEWHERE, ["--require-console"], "1 error", BESIDE_CLIENT),
    ],
)
def test_without_a_server_a_test_is_skipped_unless_it_is_required(
    tmp_path: Path, environment: str, arguments: list[str], outcome: str, reason: str
) -> None:
    (tmp_path / "conftest.py").write_text(environment)
    output = run_pytest(tmp_path, "def test_it(console): ...", *arguments)
    assert outcome in output, output
    assert reason in output


@pytest.mark.module("sqlalchemy")  # of the server
def test_no_server_is_missing_in_a_checkout() -> None:
    assert missing_server(BESIDE) == ""
