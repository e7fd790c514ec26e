"""Helpers of the tests of cli, for all that need them."""

from collections.abc import Callable
from typing import Any

from click.testing import CliRunner, Result

from executor_client.cli.main import duetime

Run = Callable[..., Result]


def plain_run(*arguments: object, text: str = "", color: bool = False) -> Result:
    """Run the program of the client alone; ``color``: as on a terminal."""
    words = [str(argument) for argument in arguments]
    return CliRunner().invoke(duetime, words, input=text, color=color, prog_name="duetime")


def error_of(ended: Result, exit_code: int) -> str:
    """Return the one line on standard error of a command that failed with this code."""
    assert ended.exit_code == exit_code, ended.output
    (line,) = ended.stderr.splitlines()
    return line.removeprefix("Error: ")


def job(job_id: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": job_id,
        "group_id": 1,
        "description": f"job {job_id}",
        "handler": "report",
        "run_mode": "BEAN",
        "schedule_type": "CRON",
        "schedule": "0 0 3 * * ?",
        "enabled": True,
        "last_run": None,
        **changes,
    }


def run_of(state: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": "71",
        "job_id": 7,
        "state": state,
        "duration_ms": None if state in ("waiting", "running") else 2_100,
        "reason": "",
        "due_at": "2030-01-31T08:00:00.000Z",
        **changes,
    }
