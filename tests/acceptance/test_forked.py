"""Programs that are forked from loaded modules, as most of these tests start them."""

import os
import sys
from pathlib import Path

import pytest

from tests.acceptance.programs import Programs

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere programs are started")


@pytest.mark.parametrize("option", ["--version", "--no-such-option"])
def test_a_forked_program_prints_and_ends_like_a_started_one(tmp_path: Path, option: str) -> None:
    programs = Programs(tmp_path)
    arguments = ("-m", "executor_client", option)
    started = programs.start("started", [sys.executable, *arguments], os.environ)
    forked = programs.fork("forked", arguments, os.environ)
    assert forked.process.wait(30) == started.process.wait(30)
    assert forked.output == started.output != ""


def test_a_forked_program_has_its_own_settings(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    environ = {**os.environ, "XXL_JOB_ACCESS_TOKEN": "short"}
    program = programs.fork("refused", ("wsgi.py",), environ)
    assert program.process.wait(30) == 2
    assert program.output.startswith("error: XXL_JOB_ACCESS_TOKEN: ")
