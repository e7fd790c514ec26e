"""Commands ``jobs trigger`` and ``runs``: waiting, exit codes, logs."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from executor_client.api.client import ApiClient
from tests.cli.fake_api import FakeApi, Reply, problem
from tests.support.cli import Run, error_of, job, run_of


@pytest.fixture(autouse=True)
def one_job(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("executor_client.api.client.PAUSE_S", 0.0)
    api.on("GET", "/jobs/7", job(7))
    api.on("POST", "/jobs/7/runs", Reply(run_of("waiting"), 202))


@pytest.mark.parametrize(
    ("state", "exit_code", "line"),
    [
        ("succeeded", 0, "run 71: succeeded after 2.1 s\n"),
        ("failed", 1, "run 71: failed after 2.1 s: disk full\n"),
        ("killed", 1, "run 71: killed after 2.1 s: disk full\n"),
        ("not_started", 1, "run 71: not started after 2.1 s: disk full\n"),
        ("timed_out", 3, "run 71: timed out after 2.1 s: disk full\n"),
    ],
)
def test_waiting_ends_as_the_run(api: FakeApi, run: Run, state: str, exit_code: int, line: str) -> None:
    ended = run_of(state, reason="" if state == "succeeded" else "disk full")
    api.on("GET", "/runs/71", [Reply(run_of("waiting")), Reply(run_of("running")), Reply(ended)])
    result = run("jobs", "trigger", "7", "--wait", "--param", "--all")
    assert (result.exit_code, result.stdout, result.stderr) == (exit_code, line, "")
    (body,) = [each.body for each in api.seen if each.method == "POST"]
    assert body == {"param": "--all"}
    assert [each.query for each in api.seen if each.path == "/runs/71"] == [{}, {"wait": "2"}, {"wait": "2"}]


def test_a_long_wait_without_a_terminal_is_noted_once(
    api: FakeApi, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executor_client.cli.output.progress.NOTE_S", 0)
    answers = [Reply(run_of("waiting")), Reply(run_of("waiting")), Reply(run_of("succeeded"))]
    api.on("GET", "/runs/71", answers)
    result = run("jobs", "trigger", "7", "--wait")
    assert result.stdout == "run 71: succeeded after 2.1 s\n"
    assert result.stderr == ("run 71: waiting after 0 s; the nodes that are alive: duetime nodes list\n")


def test_a_run_that_is_not_over_in_time_is_exit_code_3(api: FakeApi, run: Run) -> None:
    api.on("GET", "/runs/71", run_of("running"))
    ended = run("jobs", "trigger", "7", "--timeout", "0")
    assert (
        error_of(ended, 3)
        == "run 71: not ended after 0 s; it continues; follow it with: duetime runs tail -f 71"
    )


def test_without_waiting_the_id_is_printed(api: FakeApi, run: Run) -> None:
    assert run("jobs", "trigger", "7").stdout == "run 71: waiting\n"
    assert run("jobs", "trigger", "7", "-q").stdout == "71\n"
    assert json.loads(run("jobs", "trigger", "7", "-o", "json").stdout)["id"] == "71"
    assert run("jobs", "trigger", "7", "--in", "1h30m").stdout.startswith(
        "run 71: waiting, due at 2030-01-31 "
    )
    assert api.seen[-1].body == {"in_s": 5400}
    run("jobs", "trigger", "7", "--at", "2030-01-31T09:00:00+01:00")
    assert api.seen[-1].body["at"].startswith("2030-01-31T")


def test_a_document_of_a_run_that_failed_is_complete(api: FakeApi, run: Run) -> None:
    api.on("GET", "/runs/71", run_of("failed", reason="disk full"))
    ended = run("jobs", "trigger", "7", "--wait", "-o", "json")
    assert (ended.exit_code, json.loads(ended.stdout)["state"]) == (1, "failed")
    assert ended.stderr == "run 71: failed after 2.1 s: disk full\n"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--at", "tomorrow"), "'tomorrow' is not a time such as"),
        (("--in", "soon"), "'soon' is not a duration such as 90s, 10m or 1h30m"),
        (("--in", "5", "--at", "2030-01-01"), "--at and --in cannot be used together"),
        (("--param", "a\udcff"), "not valid UTF-8: "),
    ],
)
def test_wrong_options_are_exit_code_2(run: Run, options: tuple[str, ...], line: str) -> None:
    ended = run("jobs", "trigger", "7", *options)
    assert ended.exit_code == 2
    assert line in ended.stderr


def test_a_refused_trigger_is_exit_code_1(api: FakeApi, run: Run) -> None:
    api.on("POST", "/jobs/7/runs", problem(403, "permission denied"))
    line = error_of(run("jobs", "trigger", "7", "-w"), 1)
    assert line == "permission denied: the token does not have the right; see: duetime whoami"


def test_ctrl_c_leaves_the_run(api: FakeApi, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Iterator[Any]:
        raise KeyboardInterrupt

    monkeypatch.setattr(ApiClient, "watch", interrupted)
    ended = run("jobs", "trigger", "7", "--wait")
    assert (ended.exit_code, ended.stdout) == (130, "")
    assert ended.stderr == "\nrun 71 continues; follow it with: duetime runs tail -f 71\n"


def events(*each: dict[str, Any]) -> Reply:
    return Reply(tuple(json.dumps(event).encode() + b"\n" for event in each))


def test_a_log_is_followed_over_broken_connections(api: FakeApi, run: Run) -> None:
    first = events({"line": 1, "text": "one"}, {"heartbeat": True}, {"error": "10.0.0.5 does not answer"})
    last = events({"line": 2, "text": "two"}, {"end": True, "state": "succeeded", "next_line": 3})
    api.on("GET", "/runs/71/log", [first, problem(429, "too many", Retry_After="0"), last])
    ended = run("runs", "tail", "-f", "71")
    assert (ended.exit_code, ended.stdout) == (0, "one\ntwo\n")
    assert ended.stderr == "10.0.0.5 does not answer\n"
    assert [each.query["from_line"] for each in api.seen] == ["1", "2", "2"]


def test_control_characters_of_an_executor_do_not_reach_the_terminal(api: FakeApi, run: Run) -> None:
    api.on("GET", "/runs/71", run_of("failed"))
    line = {"line": 1, "text": "\x1b]0;title\x07\x1b[2J\x9b2Jone\b\r"}
    end = {"end": True, "state": "failed", "next_line": 2}
    api.on("GET", "/runs/71/log", events({"error": "no\x1b[2Jlog"}, line, end))
    for command in (("runs", "tail", "-f", "71"), ("jobs", "trigger", "7", "--follow")):
        ended = run(*command, color=True)
        assert ended.stdout.startswith(" ]0;title  [2J 2Jone  \n")
        assert "no [2Jlog" in ended.stderr
    api.on("GET", "/runs/71/log", problem(502, "\x1b]52;c;eA==\x07"))
    assert error_of(run("runs", "tail", "71", color=True), 1) == " ]52;c;eA== "


def test_a_log_whose_streams_end_at_once_is_given_up(api: FakeApi, run: Run) -> None:
    api.on("GET", "/runs/71/log", events())
    ended = run("runs", "tail", "-f", "71")
    assert (ended.exit_code, "ends at once" in ended.stderr, len(api.seen)) == (1, True, 3)


def test_a_trigger_prints_the_log_meanwhile(api: FakeApi, run: Run) -> None:
    api.on("GET", "/runs/71", [Reply(run_of("waiting")), Reply(run_of("running")), Reply(run_of("failed"))])
    end = {"end": True, "state": "failed", "next_line": 2}
    api.on("GET", "/runs/71/log", events({"line": 1, "text": "one"}, end))
    ended = run("jobs", "trigger", "7", "--follow")
    assert (ended.exit_code, ended.stdout) == (1, "one\nrun 71: failed after 2.1 s\n")


def test_a_log_is_printed_piece_by_piece(api: FakeApi, run: Run) -> None:
    pieces = {"1": (["one"], 2, ""), "2": ([], 2, "no more")}

    def answer(seen: Any) -> Any:
        lines, next_line, message = pieces[seen.query["from_line"]]
        from_line = int(seen.query["from_line"])
        answer = {"from_line": from_line, "lines": lines, "next_line": next_line}
        return {**answer, "message": message, "end": False}

    api.on("GET", "/runs/71/log", answer)
    ended = run("runs", "tail", "71")
    assert (ended.stdout, ended.stderr) == ("one\n", "no more\n")
    assert json.loads(run("runs", "tail", "71", "-o", "json").stdout) == [{"line": 1, "text": "one"}]


def test_what_is_missing_of_an_archived_log_goes_to_standard_error_once(api: FakeApi, run: Run) -> None:
    gone = "Lines from 3 on were not fetched: the instance did not answer"

    def answer(seen: Any) -> Any:
        first = int(seen.query["from_line"])
        piece = {"from_line": first, "lines": [f"line {first}"], "next_line": first + 1, "message": ""}
        return {**piece, "end": first == 2, "missing": [{"text": gone}]}

    api.on("GET", "/runs/71/log", answer)
    ended = run("runs", "tail", "71")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, "line 1\nline 2\n", f"{gone}\n")


def broadcast(api: FakeApi) -> None:
    """Answer about run 71 as a broadcast of two shards, of which the second grows."""
    shards = [{"id": "8", "shard": "0/2", "state": "failed"}, {"id": "9", "shard": "1/2", "state": "failed"}]
    states = [Reply(run_of(state, shards=shards)) for state in ("running", "running", "failed")]
    api.on("GET", "/runs/71", states)
    api.on(
        "GET", "/runs/71/log", problem(409, "This run has several shards; use the id of one of them: 8, 9")
    )

    def piece(first: int, *lines: str, message: str = "") -> Reply:
        answer = {"from_line": first, "next_line": first + len(lines), "lines": lines, "message": message}
        return Reply({**answer, "end": False})

    api.on("GET", "/runs/8/log", [piece(1, "one"), piece(2)])
    api.on(
        "GET",
        "/runs/9/log",
        [piece(1, message="none yet"), piece(1, message="none yet"), piece(1, "uno"), piece(2)],
    )


@pytest.mark.parametrize("command", [("runs", "tail", "-f", "71"), ("jobs", "trigger", "7", "--follow")])
def test_the_logs_of_all_shards_are_followed(api: FakeApi, run: Run, command: tuple[str, ...]) -> None:
    broadcast(api)
    api.on("GET", "/runs/71/log", events({"end": True, "state": "running", "next_line": 1, "shards": ["8"]}))
    ended = run(*command)
    lines = ended.stdout.splitlines()
    assert (lines[:2], ended.stderr) == (["[0/2] one", "[1/2] uno"], "[1/2] none yet\n")
    assert (ended.exit_code, len(lines)) == ((1, 3) if "trigger" in command else (0, 2))


def test_the_lines_of_shards_are_documents_with_their_run(api: FakeApi, run: Run) -> None:
    broadcast(api)
    ended = run("runs", "tail", "71", "-o", "json")
    assert json.loads(ended.stdout) == [{"run": "8", "shard": "0/2", "line": 1, "text": "one"}]
    assert (ended.exit_code, ended.stderr) == (0, "[1/2] none yet\n")


def test_a_shard_whose_log_cannot_be_read_does_not_hide_the_others(api: FakeApi, run: Run) -> None:
    broadcast(api)
    api.on("GET", "/runs/9/log", problem(502, "10.0.0.5 does not answer"))
    ended = run("runs", "tail", "71")
    assert (ended.stdout, ended.stderr) == ("[0/2] one\n", "[1/2] 10.0.0.5 does not answer\n")


def test_a_run_whose_log_is_refused_is_no_broadcast(api: FakeApi, run: Run) -> None:
    api.on("GET", "/runs/71", run_of("waiting", shards=[]))
    api.on("GET", "/runs/71/log", problem(409, "its log was deleted"))
    assert error_of(run("runs", "tail", "71"), 1) == "its log was deleted"


def test_a_run_can_stand_for_another_time(api: FakeApi, run: Run) -> None:
    answer = run_of("waiting", logical_time="2024-05-01T00:00:00.000Z")
    api.on("POST", "/jobs/7/runs", Reply(answer, 202))
    text = run("jobs", "trigger", "7", "--logical-time", "2024-05-01T00:00:00Z").stdout
    assert text.startswith("run 71: waiting, for 2024-0")
    assert datetime.fromisoformat(api.seen[-1].body["logical_time"]).timestamp() == 1_714_521_600
    assert run("jobs", "trigger", "7").stdout == "run 71: waiting\n"


@pytest.mark.parametrize(
    ("started_at", "logical_time", "shown"),
    [
        ("2024-05-01T00:00:59.999Z", "2024-05-01T00:00:00.000Z", False),
        ("2024-05-01T00:01:00.000Z", "2024-05-01T00:00:00.000Z", True),
        (None, "2024-05-01T00:00:00.000Z", True),
        ("2024-05-01T00:01:00.000Z", None, False),
    ],
)
def test_a_list_shows_logical_times_that_differ(
    api: FakeApi, run: Run, started_at: str | None, logical_time: str | None, shown: bool
) -> None:
    row = run_of("running", started_at=started_at, logical_time=logical_time, handler="h", address="a")
    api.on("GET", "/runs", {"items": [row], "next_cursor": None})
    instants = ("--logical-from", "2024-05-01T00:00:00Z", "--logical-to", "2024-05-02T00:00:00Z")
    assert (" for 2024-0" in run("runs", "list", *instants).stdout) == shown
    assert {"logical_from", "logical_to"} <= api.seen[-1].query.keys()
