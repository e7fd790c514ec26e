"""A newcomer's first steps: clone, ``python3 manage.py run``, log in, see a job succeed, Ctrl-C.

With this checkout's packages; ``--all`` installs them into the clone, too.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import psutil
import pytest

import manage
from tests.acceptance.cluster import Cluster
from tests.acceptance.console import Console
from tests.acceptance.programs import ROOT, Program, free_port, wait_for

#: the first start installs everything
FIRST_START_S = 240
#: the second one installs nothing: a tenth of this is quick, the rest is for a busy machine
SECOND_START_S = 45
STOP_S = 30
DEMO_GROUP = "xxl-job-executor-sample"


@pytest.fixture
def clone(clusters: list[Cluster], tmp_path: Path) -> Cluster:
    """A fresh clone of this checkout; programs started in it are stopped with the test."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    subprocess.run(
        ["git", "clone", "--quiet", str(ROOT), str(tmp_path / "clone")], check=True, capture_output=True
    )
    clusters.append(Cluster(tmp_path, ""))
    return clusters[-1]


def take_over_packages(folder: Path) -> None:
    """Make ``manage.py setup`` find everything installed: most of the time of a first start."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / ".venv")], check=True)
    names = {"base": str(folder / ".venv"), "platbase": str(folder / ".venv")}
    site = Path(sysconfig.get_path("purelib", "venv", vars=names))
    (site / "checkout.pth").write_text(sysconfig.get_path("purelib"))
    stamp = {"root": str(folder), "requirements.txt": manage.file_hash("requirements.txt")}
    (folder / ".venv" / "installed.json").write_text(json.dumps(stamp))
    for name in ("app/static/vendor", "app/data"):
        (folder / name).symlink_to(ROOT / name)
    for compiled in ROOT.glob("app/translations/*/LC_MESSAGES/*.mo"):
        shutil.copy(compiled, folder / compiled.relative_to(ROOT))


def take_over_compiled(folder: Path) -> None:
    """Take over compiled modules of equal files: compiling takes a quarter of the time of both starts."""
    for package in ("app", "executor_client", "migrations", "workers"):
        for source in (folder / package).rglob("*.py"):
            original = ROOT / source.relative_to(folder)
            compiled = Path(cache_from_source(str(original)))
            if compiled.exists() and original.read_bytes() == source.read_bytes():
                shutil.copystat(original, source)  # Python compares the time of the file.
                target = Path(cache_from_source(str(source)))
                target.parent.mkdir(exist_ok=True)
                shutil.copy(compiled, target)


def manage_run(clone: Cluster, name: str, **ports: str) -> Program:
    """Start ``python3 manage.py run`` and wait until it shows how to log in."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("XXL_JOB_")}
    python = shutil.which("python3") or "python3"
    command = [python, "manage.py", "run"]
    program = clone.programs.start(
        name, command, environ | ports | {"PYTHONUNBUFFERED": "1"}, cwd=clone.folder / "clone"
    )
    wait_for(program, lambda: "Ctrl-C" in program.output, "it says how to log in", FIRST_START_S)
    return program


def ctrl_c(program: Program) -> None:
    """End it with SIGINT; everything it started ends too."""
    family = program.children()
    assert len(family) >= 3
    assert program.end(signal.SIGINT, STOP_S) == 0, program.output
    _gone, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []
    assert "killed" not in program.output


@pytest.mark.timeout(480)
@pytest.mark.parametrize(
    "installed",
    [True, pytest.param(False, marks=[pytest.mark.newcomer, pytest.mark.extensive])],
    ids=["installed", "fresh"],
)
def test_a_newcomer_sees_a_job_succeed_and_stops_everything(clone: Cluster, installed: bool) -> None:
    if installed:
        take_over_packages(clone.folder / "clone")
        take_over_compiled(clone.folder / "clone")
    ports = {"XXL_JOB_PORT": str(free_port()), "XXL_JOB_EXECUTOR_PORT": str(free_port())}
    first = manage_run(clone, "first", **ports)
    address = re.search(r"^open +(http://\S+?)/?$", first.output, re.MULTILINE)
    password = re.search(r"^admin password: (\S+)$", first.output, re.MULTILINE)
    assert address is not None
    assert password is not None
    assert f":{ports['XXL_JOB_PORT']}/" in address[1] + "/"
    assert "Traceback" not in first.output

    console = Console(address[1])
    assert console.http.get(f"{console.address}/ready").json() == {"status": "READY"}, "as soon as it says so"
    console.login(password[1])
    console.post("/user/updatePwd", oldPassword=password[1], password="a-password-of-my-own")
    console.login("a-password-of-my-own")
    group_id = next(row["id"] for row in console.groups() if row["appname"] == DEMO_GROUP)
    console.await_addresses(group_id)
    jobs = console.ask("/jobinfo/pageList", jobGroup=group_id, triggerStatus=1, start=0, length=10)["data"]
    console.await_runs(group_id, jobs[0]["id"], 1, 60)
    assert failed_runs(console) == []
    ctrl_c(first)

    began = time.monotonic()
    second = manage_run(clone, "second", **ports)
    took_s = time.monotonic() - began
    assert "Installing" not in second.output
    assert took_s < SECOND_START_S
    assert "admin password: (was changed" in second.output
    console.login("a-password-of-my-own")
    assert failed_runs(console) == []
    ctrl_c(second)


def failed_runs(console: Console) -> list[dict[str, Any]]:
    """Return the runs that were not sent, or failed."""
    return [row for row in console.runs(0) if not {row["triggerCode"], row["handleCode"]} <= {0, 200}]
