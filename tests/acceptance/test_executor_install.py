"""The executor client alone, installed from its folder into an empty environment."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from executor_client.wire.version import VERSION
from tests.acceptance.programs import ROOT, Programs, free_port, wait_for
from tests.executor_client.stand_in_admin import TOKEN, StandInAdmin
from tests.support.executor_client import Caller

pytestmark = pytest.mark.newcomer

#: a new environment and an installation on a slow machine
INSTALL_S = 240
#: what an executor needs, including indirect dependencies and the client itself
PACKAGES = {
    *("duetime-executor", "flask", "waitress", "urllib3", "certifi"),
    *("blinker", "click", "itsdangerous", "jinja2", "markupsafe", "werkzeug"),
}
#: largest number of them that the project allows itself
PACKAGES_MAX = 12
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


@pytest.mark.extensive
@pytest.mark.timeout(INSTALL_S * 2)
def test_the_client_works_without_the_rest_of_the_project(
    tmp_path: Path, admin: StandInAdmin, programs: Programs
) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "myjobs.py").write_text(JOBS)
    bin_folder = tmp_path / "venv" / "bin"
    install(tmp_path)
    program = bin_folder / "duetime-cli"
    alone = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    assert alone.stderr == "duetime-cli: yaml is missing; run: pip install 'duetime-executor[cli]'\n"
    succeed(
        bin_folder / "python",
        *("-m", "pip", "install", "--quiet", "./executor_client[cli,async,metrics]"),
        cwd=tmp_path,
    )
    for name in ("duetime-cli", "xxl"):
        assert succeed(bin_folder / name, "--version", cwd=tmp_path) == f"{name} {VERSION}\n"
    assert len(installed(bin_folder / "python")) <= PACKAGES_MAX

    port = free_port()
    executor = str(bin_folder / "duetime-executor")
    arguments = ["myjobs", "--admin", admin.url, "--appname", "alone", "--port", str(port)]
    lines = succeed(executor, "check", *arguments, cwd=tmp_path / "app", XXL_JOB_ACCESS_TOKEN=TOKEN)
    assert "ok      handlers: hello\n" in lines
    environ = {"PATH": os.environ["PATH"], "XXL_JOB_ACCESS_TOKEN": TOKEN}
    program = programs.start("alone", [executor, *arguments], environ, cwd=tmp_path / "app")
    wait_for(program, lambda: admin.bodies("registry"), "it registers")
    caller = Caller(f"http://127.0.0.1:{port}")
    with closing(caller.session):
        caller.accepted(1, executorHandler="hello", executorParams="you")
        wait_for(program, lambda: admin.codes() == {1: 200}, "its result")
    assert program.end() == 0
    assert "Traceback" not in program.output


def install(folder: Path) -> None:
    """Install a copy of the client into a new environment, and look at what is there then."""
    source = folder / "executor_client"
    shutil.copytree(
        ROOT / "executor_client", source, ignore=shutil.ignore_patterns("build", "dist", "__pycache__")
    )
    before = {*source.rglob("*")}
    python = folder / "venv" / "bin" / "python"
    succeed(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    succeed(python, "-m", "pip", "install", "--quiet", "./executor_client", cwd=folder)
    assert {*source.rglob("*")} == before, "an installation leaves no files in the source tree"
    assert installed(python) == PACKAGES
    code = (
        "from importlib.metadata import distribution; d = distribution('duetime-executor');"
        "print(d.metadata['License-Expression'], *sorted(str(f) for f in d.files"
        " if f.name in ('LICENSE', 'py.typed', 'METADATA')));"
        " print(d.read_text('METADATA').partition('\\n\\n')[2])"
    )
    information = f"duetime_executor-{VERSION}.dist-info"
    about, _, text = succeed(python, "-c", code, cwd=folder).partition("\n")
    assert about.split() == [
        "Apache-2.0",
        f"{information}/METADATA",
        f"{information}/licenses/LICENSE",
        "executor_client/py.typed",
    ]
    assert text.strip() == (ROOT / "executor_client" / "README.md").read_text(encoding="utf-8").strip()


def installed(python: Path) -> set[str]:
    """Return the names of the packages of an environment, without those of every environment."""
    code = (
        "from importlib.metadata import distributions as d; print(*(each.metadata['Name'] for each in d()))"
    )
    names = {name.lower() for name in succeed(python, "-c", code, cwd=python.parent).split()}
    return names - {"pip", "setuptools", "typing-extensions"}


def test_the_client_has_the_licence_of_the_project() -> None:
    assert (ROOT / "executor_client" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
