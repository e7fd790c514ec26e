"""Command ``logs grep``."""

import json
from typing import Any

from tests.cli.fake_api import FakeApi
from tests.support.cli import Run, job


def hit(run_id: int, line: int, text: str, *marks: tuple[int, int]) -> dict[str, Any]:
    items = [{"start": start, "end": end} for start, end in marks]
    return {"run_id": str(run_id), "job_id": 7, "line": line, "text": text, "marks": items}


def test_lines_are_printed_with_run_and_number(api: FakeApi, run: Run) -> None:
    api.on("GET", "/jobs/7", job(7))
    api.page("/logs/search", hit(72, 3, "an Error\x1b[2J", (3, 8)), hit(71, 1, "error"))
    ended = run("logs", "grep", "error", "--job", "7", "-i", "-E", "--state", "failed")
    assert ended.stdout.splitlines()[1] == "71:1:error"
    assert ended.stdout.startswith("72:3:an Error")
    assert "\x1b[2J" not in ended.stdout
    assert api.seen[-1].query == {
        "q": "error",
        "job_id": "7",
        "ignore_case": "true",
        "regex": "true",
        "state": "failed",
        "limit": "200",
    }
    assert json.loads(run("-o", "json", "logs", "grep", "error").stdout)[1]["line"] == 1
    assert run("logs", "grep", "error", "--limit", 2).stderr == "the first 2 lines; more with --limit\n"
    assert "\x1b[31m\x1b[1mError\x1b[0m" in run("logs", "grep", "error", color=True).stdout
    api.page("/logs/search")
    assert run("logs", "grep", "x").stderr == "none\n"
