"""docs/cli.md works as written, and the reference of the commands is current."""

import re

import pytest
from click.testing import CliRunner

from app.commands.main import xxl
from executor_client.api import profiles
from tests.acceptance.programs import ROOT
from tests.documented.command_reference import PAGE, reference

TUTORIAL = ROOT / "docs/cli.md"


def test_the_reference_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "run: python -m tests.documented.command_reference"
    )


def test_the_variables_are_named() -> None:
    named = set(re.findall(r"`(XXL_JOB_\w+)`", TUTORIAL.read_text(encoding="utf-8")))
    assert named == {profiles.URL, profiles.TOKEN, profiles.TOKEN_FILE, profiles.PROFILE}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_is_a_script(shell: str) -> None:
    ended = CliRunner().invoke(xxl, ["completion", shell], prog_name="xxl")
    assert (ended.exit_code, "_XXL_COMPLETE" in ended.output) == (0, True)
