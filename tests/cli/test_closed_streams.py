"""Commands whose standard input, output or error is closed: Python has it as None."""

import getpass
import io
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from executor_client.cli.invocation import Stop
from executor_client.cli.main import duetime
from executor_client.cli.output.prompts import ask_password
from tests.cli.fake_api import FakeApi, Reply
from tests.support.cli import Run, job, run_of

APPLY = {
    "id": 3,
    "at": "2030-01-31T08:00:00.000Z",
    "username": "ann",
    "source": "infra@1a2b",
    "summary": {"create": 1, "unchanged": 0},
    "undone_at": None,
}
CREATED = {
    "kind": "group",
    "key": "sample",
    "action": "create",
    "id": None,
    "fields": [],
    "next_times": None,
    "withdrawn": [],
    "owned": [],
    "released": [],
    "notes": [],
}
PLAN = {
    "plan_hash": "h",
    "summary": {"create": 1, "unchanged": 0},
    "objects": [CREATED],
    "unlisted": [],
}

#: fixture ``run`` sets address and token
pytestmark = pytest.mark.usefixtures("run")


@pytest.fixture
def code_without(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command without a standard stream and returns its exit code."""

    def run(stream: str, *arguments: str) -> int:
        monkeypatch.setattr(sys, stream, None)
        with pytest.raises(SystemExit) as ended:
            duetime(arguments, prog_name="duetime")
        assert isinstance(ended.value.code, int)
        return ended.value.code

    return run


@pytest.mark.parametrize(("state", "exit_code"), [("succeeded", 0), ("failed", 1), ("timed_out", 3)])
def test_waiting_needs_no_standard_error(
    api: FakeApi, code_without: Run, monkeypatch: pytest.MonkeyPatch, state: str, exit_code: int
) -> None:
    monkeypatch.setattr("executor_client.api.client.PAUSE_S", 0.0)
    api.on("GET", "/jobs/7", job(7))
    api.on("POST", "/jobs/7/runs", Reply(run_of("waiting"), 202))
    api.on("GET", "/runs/71", [Reply(run_of("waiting")), Reply(run_of("running")), Reply(run_of(state))])
    assert code_without("stderr", "jobs", "trigger", "7", "--wait") == exit_code


def test_a_command_does_its_work_without_standard_output(api: FakeApi, code_without: Run) -> None:
    api.page("/groups")
    api.page("/jobs", job(7))
    api.page("/code/applies", APPLY)
    for command in (("jobs", "list"), ("undo",)):
        assert code_without("stdout", *command) == 0


def test_without_standard_input_a_command_says_what_to_add(
    api: FakeApi, code_without: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "jobs.yaml").write_text("groups:\n  sample: {title: Sample}\n")
    api.on("POST", "/code/plan", PLAN)
    said = {
        ("apply", str(tmp_path)): "nothing was changed: add --yes to continue without confirmation",
        ("users", "create", "ann"): "cannot prompt with a standard stream closed: add --password-stdin",
        ("users", "create", "ann", "--password-stdin"): "standard input has no password",
        ("login",): "cannot prompt with a standard stream closed: name the URL",
        ("login", "http://127.0.0.1"): "cannot prompt with a standard stream closed: add --token-stdin",
        ("login", "http://127.0.0.1", "--token-stdin"): "expected a token, which begins with xxl_",
    }
    for command, line in said.items():
        assert code_without("stdin", *command) == 2
        assert capsys.readouterr().err == f"Error: {line}\n"
    assert api.requests("POST") == ["/code/plan"]


def test_a_terminal_is_not_asked_without_standard_output(
    api: FakeApi, code_without: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Mock(isatty=lambda: True))
    api.on("POST", "/code/applies/3/undo", PLAN)
    assert code_without("stdout", "undo", "3") == 2
    assert capsys.readouterr().err == (
        "Error: nothing was changed: add --yes to continue without confirmation\n"
    )


def test_a_password_is_not_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getpass", getpass.fallback_getpass)  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stdin", io.StringIO("a-good-password\n" * 2))
    with pytest.raises(Stop, match="cannot prompt without a terminal: add --password-stdin"):
        ask_password(from_stdin=False)
