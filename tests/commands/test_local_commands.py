"""The commands over the API against the API itself: names of requests and answers fit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.support.commands import env_file, run

Local = Callable[..., Result]


@pytest.fixture
def local(tmp_path: Path) -> Local:
    """Return a function that runs a command with --local on an installation with the demo jobs."""
    path = env_file(tmp_path, TIMEZONE="UTC")
    for command in (("db", "upgrade"), ("seed-demo",)):
        assert run("--env-file", path, *command).exit_code == 0

    def call(*arguments: object, text: str = "") -> Result:
        ended = run("--env-file", path, *arguments, "--local", text=text)
        assert ended.exit_code == 0, ended.output
        return ended

    return call


def document(ended: Result) -> Any:
    return json.loads(ended.stdout)


def test_jobs_are_listed_shown_and_switched(local: Local) -> None:
    assert "Demo: always fails" in local("jobs", "list", "Demo", "--off", "--owner", "demo").stdout
    assert (
        local("jobs", "list", "--group", "xxl-job-executor-sample", "--handler", "fail", "-q").stdout == "3\n"
    )
    assert "failJobHandler" in local("jobs", "show", "failJobHandler").stdout
    assert document(local("jobs", "start", "3", "-o", "json"))[0]["enabled"] is True
    assert local("jobs", "stop", "Demo: always fails").stdout == "job 3 Demo: always fails: off\n"
    assert len(local("jobs", "next-times", "3", "--count", "4").stdout.splitlines()) == 4


def test_jobs_are_exported_as_code(local: Local, tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    exported = local("jobs", "export", "failJobHandler", "sleepJobHandler").stdout
    (folder / "jobs.yaml").write_text(exported)
    plan = document(local("plan", folder, "-o", "json"))
    assert [(each["action"], each["id"]) for each in plan["objects"] if each["kind"] == "job"] == [
        ("adopt", 3),
        ("adopt", 2),
    ]


def test_runs_are_triggered_planned_and_withdrawn(local: Local) -> None:
    run_id = local("jobs", "trigger", "3", "--in", "1h", "--param", "x", "-q").stdout.strip()
    assert document(local("runs", "show", run_id, "-o", "json"))["state"] == "waiting"
    assert "waiting" in local("runs", "show", run_id).stdout
    assert local("runs", "tail", run_id).stdout == ""
    assert local("runs", "withdraw", run_id).stdout == f"run {run_id}: withdrawn\n"
    filters = (
        "--job",
        "3",
        "--group",
        "1",
        "--state",
        "failed",
        "--from",
        "2026-01-01",
        "--to",
        "2030-01-01",
    )
    assert document(local("runs", "list", *filters, "-o", "json")) == []


def test_groups_instances_and_nodes_are_listed(local: Local) -> None:
    assert "xxl-job-executor-sample" in local("groups", "list").stdout
    assert "Sample executor" in local("groups", "show", "xxl-job-executor-sample").stdout
    assert document(local("instances", "list", "--group", "1", "-o", "json")) == []
    assert document(local("nodes", "list", "-o", "json")) == []


def test_users_and_tokens_are_administered(local: Local) -> None:
    made = local(
        "users", "create", "alice", "--grant", "1=view", "--password-stdin", text="battery-staple-9x\n"
    )
    assert made.stdout == "user alice: created\n"
    local("users", "reset-password", "alice", "--permanent", "--password-stdin", text="battery-staple-8y\n")
    (alice,) = [
        each for each in document(local("users", "list", "-o", "json")) if each["username"] == "alice"
    ]
    assert alice["rights"] == [{"group_id": 1, "rights": ["view"]}]
    token = local("tokens", "create", "ci", "--right", "operate", "--group", "1", "--expires", "2050-01-01")
    assert token.stdout.startswith("xxl_")
    assert " ci " in local("tokens", "list").stdout
    local("tokens", "revoke", "ci")
    assert local("tokens", "list").stdout == ""
