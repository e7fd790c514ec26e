"""Commands whose standard input, output or error is closed: Python has it as None."""

import sys

import pytest

from executor_client.cli.main import xxl
from tests.cli.conftest import Run
from tests.cli.fake_api import FakeApi, Reply
from tests.cli.test_jobs import job
from tests.cli.test_trigger import run_of

#: fixture ``run`` sets address and token
pytestmark = pytest.mark.usefixtures("run")


@pytest.fixture
def code_without(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command without a standard stream and returns its exit code."""

    def run(stream: str, *arguments: str) -> int:
        monkeypatch.setattr(sys, stream, None)
        with pytest.raises(SystemExit) as ended:
            xxl(arguments, prog_name="xxl")
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
