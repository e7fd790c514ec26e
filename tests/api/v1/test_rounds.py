"""Rounds, chains and graphs in the API."""

import pytest

from app.models.fire import Fire
from app.models.round import Round
from tests.pipeline.round_steps import claim_due, follow, look, run
from tests.pipeline.steps import call_back
from tests.support.api_v1 import Api
from tests.support.factories import T0, all_rows, make_fire, make_job, only_row


def test_rounds_are_listed_and_shown(api: Api) -> None:
    first = make_job()
    last = follow(first)
    failed = run(first, 500)
    page = api.get(f"/rounds?job_id={last.id}&limit=1").json
    [item] = page["items"]
    round_id = only_row(Round).id
    assert item == {
        "id": round_id,
        "job_id": last.id,
        "description": last.job_desc,
        "group_id": last.job_group,
        "key": f"t:{T0}",
        "logical_time": "2024-05-01T03:04:05.000Z",
        "chain": None,
        "state": "not_run",
        "reason": "predecessor",
        "opened_at": "2024-05-01T03:04:05.000Z",
        "deadline": "2024-05-02T03:04:05.000Z",
        "decided_at": "2024-05-01T03:04:05.000Z",
        "incomplete": False,
        "run_id": None,
        "cause_run_id": str(failed),
        "predecessors": [
            {
                "job_id": first.id,
                "description": first.job_desc,
                "outcome": "failed",
                "running": False,
                "run_id": str(failed),
                "retry_at": None,
                "reason": "",
                "succeeded_shards": 0,
                "shards": 1,
                "arrived_at": "2024-05-01T03:04:05.000Z",
            }
        ],
    }
    assert page["next_cursor"] is None
    assert api.get(f"/rounds/{round_id}").json == item
    assert api.get("/rounds?state=open").json["items"] == []
    assert api.get("/rounds?state=other").status_code == 422
    assert api.get("/rounds/99").status_code == 404
    queued = api.post(f"/rounds/{round_id}/run-missing")
    assert queued.status_code == 202
    [made] = queued.json["runs"]
    assert (made["job_id"], made["state"]) == (first.id, "waiting")
    assert api.post(f"/rounds/{round_id}/run-missing").status_code == 409
    skips = api.get(f"/skips?job_id={last.id}").json["items"]
    assert [(skip["reason"], skip["trigger_type"], skip["round"]) for skip in skips] == [
        ("predecessor", "AFTER", round_id)
    ]


def test_a_chain_is_triggered_followed_and_listed(api: Api) -> None:
    root = make_job()
    second = follow(root)
    made = api.post(f"/jobs/{root.id}/runs", {"chain": True, "logical_time": "2024-05-01T00:00:00Z"})
    run_id, chain = made.json["id"], made.json["chain"]
    assert (made.status_code, chain) == (202, run_id.split(".")[2][:15])
    assert api.get(f"/runs?state=waiting&chain={chain}").json["items"][0]["id"] == run_id
    assert api.get(f"/chains/{chain}").json == {
        "chain": chain,
        "state": "waiting",
        "ended": False,
        "on_their_way": 1,
        "open_rounds": 1,
        "not_run_rounds": 0,
        "runs": {},
    }
    for _ in range(2):
        for claimed in claim_due(only_row(Fire).due_time):
            assert call_back(claimed.log_id, 500 if claimed.job_id == second.id else 200)
    ended = api.get(f"/chains/{run_id}?wait=5").json
    assert (ended["state"], ended["ended"], ended["runs"]) == ("failed", True, {"succeeded": 1, "failed": 1})
    runs = api.get(f"/runs?chain={run_id}").json["items"]
    assert {(item["job_id"], item["chain"], item["round"]) for item in runs} == {
        (second.id, chain, only_row(Round).id),
        (root.id, chain, None),
    }
    [other] = api.get(f"/runs?chain={chain}&state=failed").json["items"]
    assert other["job_id"] == second.id
    assert api.get("/chains/000000000000001").status_code == 404
    for path in ("/chains/x", "/runs?chain=x", "/rounds?chain=x"):
        assert (api.get(path).status_code, api.get(path).json["errors"][0]["field"]) == (422, "chain")


@pytest.mark.parametrize("repeats", [False, True])
def test_a_chain_counts_the_last_run_of_each_job(api: Api, repeats: bool) -> None:
    root = make_job()
    follow(root)
    made = api.post(f"/jobs/{root.id}/runs", {"chain": True}).json
    due_ms = only_row(Fire).due_time
    [claimed] = claim_due(due_ms)
    assert call_back(claimed.log_id, 500, now_ms=due_ms)
    look(due_ms)
    if repeats:
        api.post(f"/runs/{claimed.log_id}/retry", {})
        for _ in range(2):
            for each in claim_due(due_ms + 60_000):
                assert call_back(each.log_id, now_ms=due_ms + 60_000)
    chain = api.get(f"/chains/{made['chain']}").json
    assert chain["state"] == ("succeeded" if repeats else "not_started")
    assert chain["not_run_rounds"] == (0 if repeats else 1)


def test_a_graph_has_nodes_and_edges(api: Api) -> None:
    root = make_job()
    last = follow(root, rule="any_succeeded")
    run(root)
    graph = api.get(f"/jobs/{last.id}/graph").json
    assert graph["edges"] == [{"from": root.id, "to": last.id, "kind": "after", "rule": "any_succeeded"}]
    assert graph["truncated"] is False
    assert graph["nodes"][0] == {
        "job_id": root.id,
        "description": root.job_desc,
        "group_id": root.job_group,
        "enabled": False,
        "schedule_type": "NONE",
        "last_round": None,
        "last_run_state": "succeeded",
        "foreign": False,
    }
    assert graph["nodes"][1]["last_round"] == {"id": only_row(Round).id, "state": "started"}
    assert api.get("/jobs/99/graph").status_code == 404


def test_an_instant_that_waits_for_predecessors_says_so(api: Api) -> None:
    job = make_job(schedule_type="CRON", schedule_conf="0 0 3 * * ?", trigger_status=1)
    follow(make_job(), job=job)
    make_fire(job, due_time=T0)
    claim_due()
    [item] = api.get("/runs?state=waiting").json["items"]
    assert (item["reason"], item["round"], item["waits_for"]) == ("predecessors", only_row(Round).id, None)
    assert api.post(f"/runs/{item['id']}/start").json["state"] == "waiting"
    assert [fire.state for fire in all_rows(Fire)] == ["PENDING"]


def test_what_a_job_runs_after_is_set_and_read(api: Api) -> None:
    first, last = make_job(), make_job()
    assert api.get(f"/jobs/{last.id}").json["runs_after"] is None
    changed = api.patch(f"/jobs/{last.id}", {"runs_after": {"jobs": [first.id]}})
    assert changed.status_code == 200
    assert changed.json["runs_after"] == {
        "jobs": [first.id],
        "rule": "all_succeeded",
        "k": 1,
        "round": "logical_time",
        "shards": "all",
        "shards_k": 1,
        "deadline_s": 86_400,
        "at_deadline": "drop",
    }
    wrong = api.patch(f"/jobs/{first.id}", {"runs_after": {"jobs": [last.id, 99], "rule": "none"}})
    assert [error["field"] for error in wrong.json["errors"]] == ["runs_after.rule"]
    wrong = api.patch(f"/jobs/{first.id}", {"runs_after": {"jobs": [last.id, 99]}})
    assert [error["field"] for error in wrong.json["errors"]] == ["runs_after.jobs.0", "runs_after.jobs.1"]
    assert api.patch(f"/jobs/{last.id}", {"runs_after": None}).json["runs_after"] is None
