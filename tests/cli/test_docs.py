"""The tutorials on cli, runs-after and backfills work as written; the reference of commands is current."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.commands.main import duetime
from executor_client.api import profiles
from tests.acceptance.programs import ROOT, Program, Programs, free_port, wait_for
from tests.documented.blocks import blocks_of, script_of
from tests.documented.command_reference import PAGE, reference

TUTORIAL = ROOT / "docs/cli.md"
CHAIN_TUTORIAL = ROOT / "docs/runs-after.md"
BACKFILL_TUTORIAL = ROOT / "docs/backfills.md"
ADDRESS = "http://127.0.0.1:8080"
#: seconds for all commands of the page
PAGE_S = 240
#: the server's program where it is needed, else that of the client alone, which starts faster
STAND_IN = """#!/bin/sh
case " $* " in
*" --local "*|*" next-times 0"*) cd {root}; exec {python} -m app "$@" ;;
*) PYTHONPATH={root} exec {python} -m executor_client.cli "$@" ;;
esac
"""


def test_the_reference_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), "run: python3 manage.py reference"


def test_the_variables_are_named() -> None:
    named = set(re.findall(r"`(XXL_JOB_\w+)`", TUTORIAL.read_text(encoding="utf-8")))
    assert named == {profiles.URL, profiles.TOKEN, profiles.TOKEN_FILE, profiles.PROFILE}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_is_a_script(shell: str) -> None:
    ended = CliRunner().invoke(duetime, ["completion", shell], prog_name="duetime")
    assert (ended.exit_code, "_DUETIME_COMPLETE" in ended.output) == (0, True)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Console, workers and demo executor as ``make run`` starts them; the environment of a shell beside."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("XXL_JOB_")}
    environ = clean | {
        "XXL_JOB_HOME": str(tmp_path / "home"),
        "XXL_JOB_PORT": str(free_port()),
        "XXL_JOB_EXECUTOR_PORT": str(free_port()),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PYTHONUNBUFFERED": "1",
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
    }
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / "duetime"
    stand_in.write_text(STAND_IN.format(root=ROOT, python=sys.executable))
    stand_in.chmod(0o755)
    programs = Programs(tmp_path)
    program: Program = programs.start("run", [sys.executable, "-m", "app", "up", "--demo"], environ, cwd=ROOT)
    wait_for(program, lambda: "Ctrl-C" in program.output, "everything runs")
    yield environ
    assert programs.stop_all() == []


@pytest.mark.acceptance
@pytest.mark.extensive
@pytest.mark.timeout(PAGE_S + 90)
@pytest.mark.parametrize(
    ("script", "expected_codes"),
    [
        pytest.param(script_of(TUTORIAL), ["2", "1", "3"], id="cli"),
        pytest.param("set -eu\n" + "\n".join(blocks_of(CHAIN_TUTORIAL, "sh")), ["1"], id="runs-after"),
        pytest.param("set -eu\n" + "\n".join(blocks_of(BACKFILL_TUTORIAL, "sh")), ["1"], id="backfills"),
    ],
)
def test_the_tutorials_work_as_written(
    demo: dict[str, str], tmp_path: Path, script: str, expected_codes: list[str]
) -> None:
    ended = subprocess.run(
        ["bash", "-c", script.replace(ADDRESS, f"http://127.0.0.1:{demo['XXL_JOB_PORT']}")],
        cwd=tmp_path,
        env=demo,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PAGE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
    codes = re.findall(r"^exit code (\d+)$", ended.stdout, re.MULTILINE)
    assert codes == expected_codes, ended.stdout[-4000:]
