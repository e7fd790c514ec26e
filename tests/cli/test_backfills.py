"""Commands ``backfills`` and ``jobs backfill``."""

import json
from typing import Any

import pytest

from executor_client.api import client
from tests.cli.fake_api import FakeApi, Reply, problem
from tests.support.cli import Run, error_of, job

INSTANT = "2030-01-31T08:00:00.000Z"
LISTED = {"time": INSTANT, "standing": "calendar", "run": False, "reason": "National Day"}
MADE = {"id": 3, "message": "2 instants: 2 to run", "summary": {}, "overlapping": [], "instants": []}
DONE = {
    "number": 0,
    "time": INSTANT,
    "state": "succeeded",
    "attempt": 1,
    "run_id": "71",
    "begun_at": INSTANT,
    "ended_at": INSTANT,
}
START = ("jobs", "backfill", "7", "--from", "2030-01-31T08:00:00Z")


def backfill(state: str, **counts: int) -> dict[str, Any]:
    return {
        "id": 3,
        "job_id": 7,
        "description": "load",
        "state": state,
        "reason": "",
        "from": INSTANT,
        "to": INSTANT,
        "total": sum(counts.values()),
        "ended": sum(count for name, count in counts.items() if name in ("succeeded", "failed")),
        "counts": counts,
        "author": "ann",
    }


@pytest.fixture(autouse=True)
def one_job(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LOOK_S", 0.01)
    api.on("GET", "/jobs/7", job(7))
    api.on("POST", "/jobs/7/backfills", Reply(MADE, 202))


def test_a_backfill_is_started(api: FakeApi, run: Run) -> None:
    assert (
        run(*START, "--max-running", 4, "--which", "missing").stdout == "backfill 3: 2 instants: 2 to run\n"
    )
    body = api.seen[-1].body
    assert body.pop("from").startswith("2030-01-31T")
    assert body == {
        "which": "missing",
        "order": "oldest_first",
        "max_running": 4,
        "children": "none",
        "on_failure": "stop",
    }
    assert run("jobs", "backfill", "7", "--time", INSTANT, "--time", INSTANT, "-q").stdout == "3\n"
    assert len(api.seen[-1].body["times"]) == 2
    assert json.loads(run(*START, "-o", "json").stdout) == MADE
    assert "give --from, or --time" in run("jobs", "backfill", "7").stderr
    assert (
        "cannot be used together" in run("jobs", "backfill", "7", "--time", INSTANT, "--to", INSTANT).stderr
    )
    api.on("POST", "/jobs/7/backfills", problem(409, "Backfill 2 runs some of these instants"))
    assert "Backfill 2 runs some" in error_of(run(*START), 1)


def test_a_dry_run_prints_the_list_and_the_sentence(api: FakeApi, run: Run) -> None:
    listed = {
        **MADE,
        "id": None,
        "overlapping": [2],
        "instants": [LISTED, {**LISTED, "run": True, "reason": ""}],
    }
    api.on("POST", "/jobs/7/backfills", Reply(listed, 202))
    ended = run(*START, "--dry-run")
    lines = ended.stdout.splitlines()
    assert [line.split()[2:] for line in lines[1:3]] == [
        ["calendar", "no", "National", "Day"],
        ["calendar", "yes"],
    ]
    assert lines[3:] == ["2 instants: 2 to run"]
    assert "backfills 2" in ended.stderr
    assert api.seen[-1].query == {"dry_run": "true"}
    assert json.loads(run(*START, "--dry-run", "-o", "json").stdout) == listed


@pytest.mark.parametrize(
    ("last", "exit_code", "line"),
    [
        (backfill("done", succeeded=2), 0, "done: 2 of 2 ended"),
        (backfill("done", succeeded=1, failed=1), 1, "done: 2 of 2 ended, 1 failed"),
        (backfill("failed", waiting=1, failed=1), 1, "failed: 1 of 2 ended, 1 failed"),
        (backfill("cancelled", withdrawn=2), 1, "cancelled: 0 of 2 ended, 2 withdrawn"),
        (backfill("paused", waiting=2), 1, "paused: 0 of 2 ended"),
    ],
)
def test_the_end_of_a_backfill_is_waited_for(
    api: FakeApi, run: Run, last: dict[str, Any], exit_code: int, line: str
) -> None:
    api.on("GET", "/backfills/3", [Reply(backfill("running", running=1, waiting=1)), Reply(last)])
    ended = run(*START, "--wait")
    assert (ended.stdout, ended.exit_code) == (f"backfill 3: {line}\n", exit_code)
    hint = "what failed: duetime backfills show 3 --state failed\n"
    assert ended.stderr.endswith(hint) == ("failed" in last["counts"])
    document = run(*START, "--wait", "-o", "json")
    assert (json.loads(document.stdout), document.exit_code) == (last, exit_code)


def test_a_backfill_that_is_not_over_in_time_is_exit_code_3(api: FakeApi, run: Run) -> None:
    api.on("GET", "/backfills/3", backfill("running", running=1))
    assert error_of(run(*START, "--timeout", "0"), 3) == (
        "backfill 3: not ended after 0 s; it continues; see it with: duetime backfills show 3"
    )


def test_backfills_are_listed_and_shown(api: FakeApi, run: Run) -> None:
    item = backfill("running", succeeded=2, failed=1, running=1)
    api.page("/backfills", item)
    lines = run("backfills", "list", "--job", "7", "--state", "running").stdout.splitlines()
    assert lines[0].split() == ["ID", "JOB", "DESCRIPTION", "STATE", "ENDED", "FAILED", "FROM", "TO", "BY"]
    assert lines[1].split()[:6] == ["3", "7", "load", "running", "3/4", "1"]
    assert api.seen[-1].query == {"job_id": "7", "state": "running", "limit": "50"}
    assert run("backfills", "list", "-q").stdout == "3\n"
    api.on("GET", "/backfills/3", item)
    api.page("/backfills/3/instants", DONE)
    text = run("backfills", "show", "3", "--state", "succeeded").stdout
    assert api.seen[-1].query == {"state": "succeeded", "limit": "50"}
    assert text.splitlines()[-2].split()[:4] == ["LOGICAL", "TIME", "STATE", "RUN"]
    assert text.splitlines()[-1].split()[2:4] == ["succeeded", "71"]
    assert json.loads(run("backfills", "show", "3", "-o", "json").stdout) == {**item, "instants": [DONE]}
    assert error_of(run("backfills", "show", "4"), 1) == "there is no backfill 4 that you may see"


def test_a_backfill_is_paused_resumed_and_cancelled(api: FakeApi, run: Run) -> None:
    for action, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelling")):
        api.on("POST", f"/backfills/3/{action}", backfill(state, running=1, waiting=1))
        line = f"backfill 3: {state}: 0 of 2 ended, 1 in progress\n"
        assert run("backfills", action, "3").stdout == line
        assert api.seen[-1].body is None
    api.on("GET", "/backfills/3", backfill("done", succeeded=2))
    assert run("backfills", "resume", "3", "--wait").stdout == "backfill 3: done: 2 of 2 ended\n"
    run("backfills", "cancel", "3", "--kill")
    assert api.seen[-1].body == {"kill": True}
