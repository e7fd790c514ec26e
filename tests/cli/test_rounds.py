"""Commands ``rounds``, and ``jobs trigger --chain``: runs are printed as they end, the worst counts."""

import json
import re
from typing import Any

import pytest

from tests.cli.fake_api import FakeApi, Reply, problem
from tests.support.cli import Run, error_of, job, run_of

CHAIN = "9f86d081884c7d6"
PREDECESSOR = {
    "job_id": 7,
    "description": "load",
    "outcome": "succeeded",
    "running": False,
    "run_id": "70",
    "retry_at": None,
    "reason": "",
    "succeeded_shards": 1,
    "shards": 1,
    "arrived_at": "2030-01-31T08:00:00.000Z",
}
FAILED = {**PREDECESSOR, "job_id": None, "description": None, "outcome": "failed", "run_id": None}
ROUND = {
    "id": 5,
    "job_id": 9,
    "description": "report",
    "group_id": 1,
    "key": "t:1",
    "logical_time": "2030-01-31T08:00:00.000Z",
    "chain": None,
    "state": "open",
    "reason": "",
    "opened_at": "2030-01-31T08:00:00.000Z",
    "deadline": None,
    "decided_at": None,
    "incomplete": False,
    "run_id": None,
    "cause_run_id": None,
    "predecessors": [PREDECESSOR, FAILED, {**PREDECESSOR, "job_id": 8, "outcome": None, "running": True}],
}


def chain_of(state: str, **changes: Any) -> dict[str, Any]:
    is_open = state in ("waiting", "running")
    return {
        "chain": CHAIN,
        "state": state,
        "ended": not is_open,
        "on_their_way": 1 if is_open else 0,
        "open_rounds": 2 if is_open else 0,
        "not_run_rounds": 0,
        "runs": {},
        **changes,
    }


@pytest.fixture(autouse=True)
def one_job(api: FakeApi) -> None:
    api.on("GET", "/jobs/7", job(7))
    api.on("POST", "/jobs/7/runs", Reply(run_of("waiting", chain=CHAIN), 202))
    api.page("/rounds")


def test_rounds_are_listed_with_what_is_missing(api: FakeApi, run: Run) -> None:
    api.page("/rounds", ROUND)
    lines = run("rounds", "list", "--job", "7", "--state", "open", "--chain", CHAIN).stdout.splitlines()
    assert " ".join(lines[0].split()) == "ID JOB DESCRIPTION LOGICAL TIME STATE REASON RUN MISSING"
    assert lines[1].endswith("a job of another group: failed, 8 load: running")
    asked = {"job_id": "7", "state": "open", "chain": CHAIN, "limit": "50"}
    assert api.seen[-1].query == asked
    api.page("/rounds", {**ROUND, "state": "started", "incomplete": True, "run_id": "71"})
    assert re.search(r"started +incomplete +71 ", run("rounds", "list").stdout)
    api.page("/rounds", ROUND)
    assert run("rounds", "list", "-q").stdout == "5\n"
    assert json.loads(run("rounds", "list", "-o", "json").stdout) == [ROUND]


def test_a_round_is_shown_with_its_predecessors(api: FakeApi, run: Run) -> None:
    api.on("GET", "/rounds/5", ROUND)
    text = run("rounds", "show", "5").stdout
    assert "logical_time" in text
    assert [line.split()[:3] for line in text.splitlines()[-4:]] == [
        ["JOB", "DESCRIPTION", "OUTCOME"],
        ["7", "load", "succeeded"],
        ["a", "job", "of"],
        ["8", "load", "running"],
    ]
    assert json.loads(run("rounds", "show", "5", "-o", "json").stdout) == ROUND
    assert error_of(run("rounds", "show", "6"), 1) == "there is no round 6 that you may see"


def test_missing_runs_are_run_again(api: FakeApi, run: Run) -> None:
    api.on("POST", "/rounds/5/run-missing", Reply({"runs": [run_of("waiting")]}, 202))
    assert run("rounds", "run-missing", "5").stdout == "job 7: run 71: waiting\n"
    assert api.seen[-1].body is None
    assert run("rounds", "run-missing", "5", "-q").stdout == "71\n"
    api.on("POST", "/rounds/5/run-missing", problem(409, "nothing to run"))
    assert "nothing to run" in error_of(run("rounds", "run-missing", "5"), 1)


def test_a_chain_is_triggered_with_the_job(api: FakeApi, run: Run) -> None:
    assert run("jobs", "trigger", "7", "--chain").stdout == "run 71: waiting\n"
    assert api.seen[-1].body == {"chain": True}
    assert "cannot be used together" in run("jobs", "trigger", "7", "--chain", "-f").stderr
    run("runs", "list", "--chain", CHAIN)
    assert api.seen[-1].query["chain"] == CHAIN


@pytest.mark.parametrize(
    ("state", "exit_code"), [("succeeded", 0), ("failed", 1), ("not_started", 1), ("timed_out", 3)]
)
def test_a_chain_is_waited_for_and_its_runs_are_printed_as_they_end(
    api: FakeApi, run: Run, state: str, exit_code: int
) -> None:
    first, second = run_of("succeeded"), run_of(state, id="72", job_id=8)
    pages = [{"items": items, "next_cursor": None} for items in ([], [first], [second, first])]
    api.on("GET", "/runs", [Reply(page) for page in pages])
    answers = [chain_of("waiting"), chain_of("running"), chain_of(state)]
    api.on("GET", f"/chains/{CHAIN}", [Reply(answer) for answer in answers])
    ended = run("jobs", "trigger", "7", "--chain", "--wait")
    words = state.replace("_", " ")
    assert ended.stdout.splitlines() == [
        "job 7: run 71: succeeded after 2.1 s",
        f"job 8: run 72: {words} after 2.1 s",
        f"chain {CHAIN}: {words}",
    ]
    assert ended.exit_code == exit_code
    assert [each.query for each in api.seen if each.path.startswith("/chains")] == [{"wait": "2"}] * 3


def test_rounds_that_were_not_run_are_named_with_their_cause(api: FakeApi, run: Run) -> None:
    api.page("/runs")
    api.on("GET", f"/chains/{CHAIN}", chain_of("not_started"))
    not_run = {**ROUND, "state": "not_run", "reason": "predecessor", "cause_run_id": "70"}
    last = {**not_run, "job_id": 10, "description": "mail"}
    api.page("/rounds", last, not_run, {**not_run, "reason": "excused"})
    ended = run("jobs", "trigger", "7", "--chain", "--wait")
    assert ended.stdout.splitlines() == [
        "job 9 (report): not run: predecessor, run 70",
        "job 10 (mail): not run: predecessor, run 70",
        f"chain {CHAIN}: not started",
    ]
    document = run("jobs", "trigger", "7", "--chain", "--wait", "-o", "json")
    assert json.loads(document.stdout)["state"] == "not_started"
    assert "not run: predecessor" in document.stderr


def test_a_chain_that_is_not_over_in_time_is_exit_code_3(api: FakeApi, run: Run) -> None:
    api.page("/runs")
    api.on("GET", f"/chains/{CHAIN}", chain_of("running"))
    ended = run("jobs", "trigger", "7", "--chain", "--timeout", "0")
    assert error_of(ended, 3) == (
        f"chain {CHAIN}: not ended after 0 s; it continues; its runs: duetime runs list --chain {CHAIN}"
    )
