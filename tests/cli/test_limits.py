"""Commands ``limits`` and those of waiting runs: list, set, delete; start, withdraw, release, force."""

import json
from typing import Any

import pytest

from tests.cli.fake_api import FakeApi, problem
from tests.support.cli import Run

GROUP = {"id": 3, "app_name": "shop", "title": "Shop"}
DATABASE = {
    "name": "reporting database",
    "slots": 3,
    "group_id": None,
    "jobs": 2,
    "max_weight": 1,
    "used": 3,
    "waiting": 4,
}
MAIL = {**DATABASE, "name": "mail", "slots": 1, "group_id": 3}
RUN = {
    "id": "w12",
    "job_id": 7,
    "handler": "",
    "state": "waiting",
    "started_at": None,
    "due_at": "2030-01-31T08:00:00.000Z",
    "logical_time": "2030-01-31T08:00:00.000Z",
    "duration_ms": None,
    "address": "",
    "reason": "waits for a slot of the job: 1 of 1 are taken",
}


def test_limits_are_listed_with_their_use(api: FakeApi, run: Run) -> None:
    api.page("/groups", GROUP)
    api.page("/limits", MAIL, DATABASE)
    lines = run("limits", "list").stdout.splitlines()
    assert lines[0].split() == ["NAME", "SLOTS", "IN", "USE", "WAITING", "JOBS", "EXECUTOR"]
    assert lines[1].split() == ["mail", "1", "3", "4", "2", "shop"]
    assert lines[2].split()[-1] == "(all)"
    assert run("limits", "list", "-q").stdout == "mail\nreporting database\n"
    assert json.loads(run("limits", "list", "-o", "json").stdout) == [MAIL, DATABASE]


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ((), {"slots": 3}),
        (("--group", "shop"), {"slots": 3, "group_id": 3}),
        (("--for-all",), {"slots": 3, "group_id": None}),
    ],
)
def test_a_limit_is_set(api: FakeApi, run: Run, options: tuple[str, ...], body: dict[str, Any]) -> None:
    api.page("/groups", GROUP)
    api.on("PUT", "/limits/.*", DATABASE)
    ended = run("limits", "set", "reporting database", "--slots", "3", *options)
    assert ended.stdout == "limit reporting database: 3 slots\n"
    assert (api.seen[-1].path, api.seen[-1].body) == ("/limits/reporting database", body)


def test_what_cannot_be_set_is_refused(api: FakeApi, run: Run) -> None:
    both = run("limits", "set", "a", "--slots", "1", "--group", "shop", "--for-all")
    assert (both.exit_code, "cannot be used together" in both.stderr) == (2, True)
    assert run("limits", "set", "a").exit_code == 2
    assert run("limits", "set", "a", "--slots", "0").exit_code == 2


def test_a_limit_is_deleted(api: FakeApi, run: Run) -> None:
    api.on("GET", "/limits/mail", MAIL)
    api.on("DELETE", "/limits/mail", None)
    assert run("limits", "delete", "mail").stdout == "limit mail: deleted\n"
    assert json.loads(run("limits", "delete", "mail", "-o", "json").stdout) == MAIL
    missing = run("limits", "delete", "none")
    assert (missing.exit_code, "there is no limit none" in missing.stderr) == (1, True)
    api.on("DELETE", "/limits/mail", problem(409, "Jobs use this limit: report (7)"))
    assert "report (7)" in run("limits", "delete", "mail").stderr


def test_waiting_runs_are_listed_started_withdrawn_and_released(api: FakeApi, run: Run) -> None:
    api.page("/runs", RUN)
    listed = run("runs", "list", "--state", "waiting").stdout
    assert "w12" in listed
    assert "waits for a slot of the job" in listed
    api.on("POST", "/runs/w12/start", RUN)
    assert run("runs", "start", "w12").stdout == "run w12: starts now\n"
    api.on("GET", "/runs/w12", RUN)
    api.on("DELETE", "/runs/w12", None)
    assert run("runs", "withdraw", "w12").stdout == "run w12: withdrawn\n"
    api.on("POST", "/runs/9/release", {**RUN, "id": "9", "state": "unresolved"})
    assert run("runs", "release", "9").stdout == "run 9: its slots are free\n"
    api.on("POST", "/runs/10/release", problem(409, "The run holds no slot of a limit"))
    refused = run("runs", "release", "10")
    assert (refused.exit_code, "holds no slot" in refused.stderr) == (1, True)


def test_runs_are_forced(api: FakeApi, run: Run) -> None:
    api.on("GET", "/jobs/7", {"id": 7})
    api.on("POST", "/jobs/7/runs", RUN)
    run("jobs", "trigger", "7", "--force")
    assert api.seen[-1].body == {"force": True}
    run("jobs", "trigger", "7")
    assert api.seen[-1].body == {}
    api.on("POST", "/runs/9/retry", RUN)
    run("runs", "retry", "9", "--force")
    assert api.seen[-1].body == {"force": True}
    run("runs", "retry", "9")
    assert not api.seen[-1].body
