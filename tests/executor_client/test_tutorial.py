"""docs/executor-tutorial.md works as written."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from executor_client.pytest_console import Console, console_at
from executor_client.pytest_server import running_server
from tests.acceptance.programs import ROOT, Programs, free_port, wait_for

PAGE = (ROOT / "docs" / "executor-tutorial.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080/xxl-job-admin"
COMMANDS_S = 100
#: the programs that an installation makes
PROGRAM = '#!/bin/sh\nPYTHONPATH={root} exec {python} -m executor_client "$@"\n'


def step(number: int) -> str:
    return PAGE.partition(f"\n## {number}. ")[2].partition("\n## ")[0]


def commands(number: int) -> list[str]:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", step(number), re.MULTILINE | re.DOTALL)
    (block,) = (text for language, text in blocks if not language)
    return str(block).splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of the page."""
    for name, text in re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
    program = tmp_path / "bin" / "xxl-executor"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(root=ROOT, python=sys.executable))
    program.chmod(0o755)
    return tmp_path


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    made = Programs(tmp_path)
    yield made
    with suppress(AssertionError):
        made.stop_all()


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with running_server(tmp_path / "cache") as (url, home):
        made = console_at(url, home)
        yield made
        made.close()


def shell(folder: Path, script: str, environ: dict[str, str]) -> str:
    ended = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=COMMANDS_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def environ_of(folder: Path, **more: str) -> dict[str, str]:
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "PYTHONPATH": str(ROOT), **more}


def test_the_tests_of_the_page_pass(folder: Path) -> None:
    (command,) = commands(3)
    plugin = environ_of(folder, PYTEST_ADDOPTS="-p executor_client.pytest_plugin")
    assert "4 passed" in shell(folder, command, plugin)


@pytest.mark.timeout(300)
def test_the_job_of_the_page_is_declared_deployed_and_run(
    folder: Path, console: Console, programs: Programs
) -> None:
    environ = environ_of(folder, XXL_JOB_ACCESS_TOKEN=console.access_token, XXL_JOB_TOKEN=console.token)
    port = str(free_port())

    def here(command: str) -> str:
        return command.replace(ADDRESS, console.url).replace("9998", port)

    _activate, token, plan, apply = commands(5)
    assert token.startswith("export XXL_JOB_TOKEN=")
    assert "shop/closeOrders" in shell(folder, here(plan), environ)
    shell(folder, here(apply), environ)
    _token, check, serve = commands(4)
    assert "PROBLEM" not in shell(folder, here(check), environ)
    program = programs.start("executor", ["sh", "-c", f"exec {here(serve)}"], environ, cwd=folder)
    wait_for(program, lambda: " registered admin=" in program.output, "it registers")
    (folder / "trigger.py").write_text(here((folder / "trigger.py").read_text()))
    (command,) = commands(6)
    printed = shell(folder, command, environ)
    assert 'succeeded {"closed":3}' in printed
    assert "order 3 closed" in printed
    assert program.end() == 0
