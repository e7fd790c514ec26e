"""The executor client alone, installed from its folder into an empty environment."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from executor_client.version import VERSION
from tests.acceptance.programs import ROOT, Programs, free_port, wait_for
from tests.executor_client.conftest import Caller
from tests.executor_client.stand_in_admin import TOKEN, StandInAdmin

pytestmark = pytest.mark.newcomer

#: a new environment and an installation on a slow machine
INSTALL_S = 240
#: dependencies of the client, including indirect ones
PACKAGES = {
    *("executor-client", "flask", "waitress", "urllib3"),
    *(
        "blinker",
        "click",
        "itsdangerous",
        "jinja2",
        "markupsafe",
        "werkzeug",
        "certifi",
    ),
}
JOBS = (
    "from executor_client import context, job\n\n\n@job('hello')\ndef hello():\n    context.log('hello"
    " %s', context.param)\n"
)


@pytest.fixture
def admin() -> Iterator[StandInAdmin]:
    made = StandInAdmin()
    yield made
    made.down()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    made = Programs(tmp_path)
    yield made
    assert made.stop_all() == []


def succeed(*arguments: str | Path, cwd: Path, **environment: str) -> str:
    """Run a program that must succeed; return its output."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("XXL_JOB_", "PYTHON"))}
    ended = subprocess.run(
        arguments,
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.timeout(INSTALL_S * 2)
def test_the_client_works_without_the_rest_of_the_project(
    tmp_path: Path, admin: StandInAdmin, programs: Programs
) -> None:
    shutil.copytree(
        ROOT / "executor_client",
        tmp_path / "executor_client",
        ignore=shutil.ignore_patterns("build", "*.egg-info"),
    )
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "myjobs.py").write_text(JOBS)
    python = tmp_path / "venv" / "bin" / "python"
    succeed(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    succeed(python, "-m", "pip", "install", "--quiet", "./executor_client", cwd=tmp_path)
    listed = succeed(
        python, "-m", "pip", "list", "--format", "freeze", "--disable-pip-version-check", cwd=tmp_path
    )
    installed = {line.partition("==")[0].lower() for line in listed.splitlines()}
    assert installed - {"pip", "setuptools", "typing-extensions"} == PACKAGES

    xxl = tmp_path / "venv" / "bin" / "xxl"
    alone = subprocess.run([xxl, "--version"], capture_output=True, text=True, check=False)
    assert alone.stderr == "xxl: yaml is missing; run: pip install 'executor-client[cli]'\n"
    succeed(python, "-m", "pip", "install", "--quiet", "./executor_client[cli]", cwd=tmp_path)
    assert succeed(xxl, "--version", cwd=tmp_path) == f"xxl {VERSION}\n"

    port = free_port()
    arguments = ["--admin", admin.url, "--appname", "alone", "--port", str(port)]
    lines = succeed(
        python,
        "-m",
        "executor_client",
        "check",
        "myjobs",
        *arguments,
        cwd=tmp_path / "app",
        XXL_JOB_ACCESS_TOKEN=TOKEN,
    )
    assert "ok      handlers: hello\n" in lines
    environ = {"PATH": os.environ["PATH"], "XXL_JOB_ACCESS_TOKEN": TOKEN}
    program = programs.start(
        "alone", [str(python), "-m", "executor_client", "myjobs", *arguments], environ, cwd=tmp_path / "app"
    )
    wait_for(program, lambda: admin.bodies("registry"), "it registers")
    caller = Caller(f"http://127.0.0.1:{port}")
    with closing(caller.session):
        caller.accepted(1, executorHandler="hello", executorParams="you")
        wait_for(program, lambda: admin.codes() == {1: 200}, "its result")
    assert program.end() == 0
    assert "Traceback" not in program.output
