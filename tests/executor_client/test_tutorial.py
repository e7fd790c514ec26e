"""docs/executor-tutorial.md works as written."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from executor_client.pytest_support.console import Console, console_at
from executor_client.pytest_support.server import running_server
from tests.acceptance.programs import ROOT, Programs, free_port, wait_for

PAGE = (ROOT / "docs" / "executor-tutorial.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8080/xxl-job-admin"
COMMANDS_S = 100
#: the programs that an installation makes
PROGRAM = '#!/bin/sh\nPYTHONPATH={root} exec {python} -m executor_client "$@"\n'
#: the server of the page: `duetime tokens create … --local` prints a token
SERVER = '#!/bin/sh\necho "{token}"\n'


def step(number: int) -> str:
    return PAGE.partition(f"\n## {number}. ")[2].partition("\n## ")[0]


def commands(number: int) -> list[str]:
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", step(number), re.MULTILINE | re.DOTALL)
    (block,) = (text for language, text in blocks if not language)
    return str(block).splitlines()


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of the page, and what its step 1 makes."""
    for name, text in re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        (tmp_path / name).write_text(text)
    write_program(tmp_path / "bin" / "duetime-executor", PROGRAM.format(root=ROOT, python=sys.executable))
    write_program(tmp_path / "venv" / "bin" / "activate", "")
    return tmp_path


def add_server(home: Path, access_token: str, token: str) -> None:
    server = home / "duetime"
    write_program(server / "bin" / "duetime", SERVER.format(token=token))
    (server / "instance").mkdir()
    (server / "instance" / "access_token").write_text(access_token)


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


def shell(folder: Path, lines: Sequence[str], environ: dict[str, str]) -> str:
    """Run the lines in a new shell, as in a new terminal: an unset variable is an error."""
    ended = subprocess.run(
        ["sh", "-eu", "-c", "\n".join(lines)],
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


#: with no other plugin: loading them takes most of the time
WITH_PLUGIN = {"PYTEST_ADDOPTS": "-p executor_client.pytest_plugin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def test_the_tests_of_the_page_pass(folder: Path) -> None:
    plugin = environ_of(folder, **WITH_PLUGIN)
    assert "4 passed" in shell(folder, commands(3), plugin)


@pytest.mark.module("sqlalchemy")  # of the server
@pytest.mark.timeout(300)
def test_the_job_of_the_page_is_declared_deployed_and_run(
    folder: Path, console: Console, programs: Programs
) -> None:
    environ = environ_of(folder)
    add_server(folder, console.access_token, console.token)
    port = str(free_port())

    def here(lines: Sequence[str]) -> list[str]:
        return [line.replace(ADDRESS, console.url).replace("9998", port) for line in lines]

    second = here(commands(4))
    assert "+ job shop/closeOrders" in shell(folder, second, environ)
    third = here(commands(5))
    assert "PROBLEM" not in shell(folder, third[:-1], environ)
    serve = "\n".join(["set -eu", *third[:-2], f"exec {third[-1]}"])
    program = programs.start("executor", ["sh", "-c", serve], environ, cwd=folder)
    wait_for(program, lambda: " registered admin=" in program.output, "it registers")
    trigger = folder / "trigger.py"
    trigger.write_text("\n".join(here([trigger.read_text()])))
    printed = shell(folder, [*second, *commands(6)], environ)
    assert 'succeeded {"closed":3}' in printed
    assert "order 3 closed" in printed
    assert program.end() == 0
