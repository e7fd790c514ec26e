"""Commands ``incidents``: listed by state and job, acknowledged by id."""

import json

from tests.cli.fake_api import FakeApi, problem
from tests.support.cli import Run

JOB = {"id": 7, "description": "Close books", "handler": "closeBooks"}
OPEN = {
    "id": 3,
    "job_id": 7,
    "group_id": 1,
    "state": "open",
    "key": "i:7:1769846400000",
    "logical_time": "2026-01-31T08:00:00.000Z",
    "opened_at": "2026-01-31T08:05:02.000Z",
    "ended_at": None,
    "acknowledged_by": None,
    "acknowledged_at": None,
    "promises": [{"kind": "starts_within", "s": 300, "then": "alarm"}],
    "run_id": None,
}
ACKNOWLEDGED = {**OPEN, "state": "acknowledged", "acknowledged_by": "ann", "messages": []}


def test_incidents_are_listed_by_state_and_job(api: FakeApi, run: Run) -> None:
    api.on("GET", "/jobs/7", JOB)
    api.page("/incidents", OPEN)
    lines = run("incidents", "list", "--state", "open", "--job", "7").stdout.splitlines()
    assert lines[0].split()[:4] == ["ID", "JOB", "STATE", "PROMISES"]
    assert lines[1].split()[:4] == ["3", "7", "open", "starts_within"]
    query = api.seen[-1].query
    assert (query["state"], query["job_id"]) == ("open", "7")
    assert json.loads(run("incidents", "list", "--json").stdout) == [OPEN]
    assert json.loads(run("incidents", "list", "-o", "json").stdout) == [OPEN]
    assert run("incidents", "list", "--quiet").stdout == "3\n"
    assert run("incidents", "list", "--state", "closed").exit_code == 2


def test_several_incidents_are_acknowledged(api: FakeApi, run: Run) -> None:
    api.on("POST", r"/incidents/[34]/acknowledge", ACKNOWLEDGED)
    ended = run("incidents", "ack", "3", "4")
    assert (ended.exit_code, ended.stdout) == (0, "incident 3: acknowledged\nincident 4: acknowledged\n")
    documents = json.loads(run("incidents", "ack", "3", "4", "-o", "json").stdout)
    assert documents == [ACKNOWLEDGED] * 2


def test_an_incident_that_is_missing_is_named(api: FakeApi, run: Run) -> None:
    api.on("POST", "/incidents/9/acknowledge", problem(404, "incident does not exist"))
    ended = run("incidents", "ack", "9")
    assert ended.exit_code == 1
    assert "there is no incident 9 that you may see" in ended.stderr
    assert run("incidents", "ack").exit_code == 2
    assert run("incidents", "ack", "x").exit_code == 2
