"""Backfills in the API."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.domain.access.permissions import Right
from app.domain.schedules.instants import write_instant
from app.models.backfill import Backfill
from app.models.fire import Fire
from app.models.log import JobLog
from app.settings.config import Config
from tests.pipeline.round_steps import claim_due
from tests.pipeline.steps import LOOPBACK, call_back, record_sent, sent
from tests.services.backfills.backfill_steps import go_on, minute, minutely
from tests.support.api_v1 import ALL, Api, app_of, make_token
from tests.support.factories import all_rows, make_group, make_log, only_row
from tests.support.fake_executor import Answer, FakeExecutor

ApiOf = Callable[..., Api]


def span(first: int, last: int, **more: Any) -> dict[str, Any]:
    """Return the body of a backfill of these instants, counted back from T0."""
    return {"from": write_instant(minute(first)), "to": write_instant(minute(last) + 1), **more}


def end_next(code: int = 200) -> None:
    """End the run that is due next."""
    for run in claim_due(only_row(Fire).due_time):
        call_back(run.log_id, code)


def test_a_dry_run_lists_the_instants(api: Api) -> None:
    job = minutely()
    make_log(job, fire_time=minute(2), handle_code=200)
    answer = api.post(f"/jobs/{job.id}/backfills?dry_run=true", span(3, 1, which="missing"))
    assert (answer.status_code, answer.headers["X-Dry-Run"]) == (202, "true")
    assert answer.json == {
        "id": None,
        "message": "3 instants: 1 already succeeded, 2 to run",
        "summary": {"instants": 3, "to_run": 2, "succeeded": 1, "missing": 2},
        "overlapping": [],
        "instants": [
            {"time": write_instant(minute(number)), "standing": standing, "run": is_run, "reason": ""}
            for number, standing, is_run in [
                (3, "missing", True),
                (2, "succeeded", False),
                (1, "missing", True),
            ]
        ],
    }
    assert not all_rows(Backfill)


def test_a_backfill_is_made_shown_and_its_instants_are_listed(api: Api) -> None:
    job = minutely()
    key = {"Idempotency-Key": "a"}
    made = api.post(f"/jobs/{job.id}/backfills", span(3, 1, on_failure="go_on"), headers=key)
    backfill_id = made.json["id"]
    assert (made.status_code, made.json["message"]) == (202, "3 instants: 3 to run")
    assert made.headers["Location"].endswith(f"/backfills/{backfill_id}")
    again = api.post(f"/jobs/{job.id}/backfills", span(3, 1, on_failure="go_on"), headers=key)
    assert (again.status_code, again.json["id"]) == (202, backfill_id)
    refused = api.post(f"/jobs/{job.id}/backfills", span(1, 1))
    assert (refused.status_code, f"Backfill {backfill_id} runs some" in refused.json["detail"]) == (409, True)
    overlap = api.post(f"/jobs/{job.id}/backfills?dry_run=true", {"times": [write_instant(minute(1))]})
    assert overlap.json["overlapping"] == [backfill_id]
    end_next(500)
    go_on(backfill_id, now_ms=only_row(Backfill).created_ms)
    item = api.get(f"/backfills/{backfill_id}").json
    assert {name: item[name] for name in ("job_id", "description", "group_id", "state", "author")} == {
        "job_id": job.id,
        "description": job.job_desc,
        "group_id": job.job_group,
        "state": "running",
        "author": "admin",
    }
    assert (item["from"], item["to"], item["which"]) == (*span(3, 1).values(), "all")
    assert (item["order"], item["max_running"], item["children"]) == ("oldest_first", 1, "none")
    assert (item["total"], item["ended"], item["ended_at"], item["reason"]) == (3, 1, None, "")
    assert item["counts"] == {"failed": 1, "running": 1, "waiting": 1}
    assert item["summary"] == {"instants": 3, "to_run": 3, "missing": 3}
    claim_due(only_row(Fire).due_time)
    path = f"/backfills/{backfill_id}/instants"
    first, second, third = api.get(path).json["items"]
    failed, running = all_rows(JobLog)
    assert [first["time"], second["time"]] == [write_instant(minute(number)) for number in (3, 2)]
    assert (first["state"], first["run_id"], first["attempt"]) == ("failed", str(failed.id), 1)
    assert (second["state"], second["run_id"], second["ended_at"]) == ("running", str(running.id), None)
    assert (third["state"], third["run_id"], third["begun_at"]) == ("waiting", None, None)
    page = api.get(f"{path}?limit=2").json
    rest = api.get(f"{path}?limit=2&cursor={page['next_cursor']}").json
    assert ([*page["items"], *rest["items"]], rest["next_cursor"]) == ([first, second, third], None)
    assert api.get(f"{path}?state=failed").json["items"] == [first]


def test_runs_name_their_backfill(api: Api) -> None:
    job = minutely(executor_fail_retry_count=1)
    backfill_id = api.post(f"/jobs/{job.id}/backfills", span(2, 1)).json["id"]
    make_log(job, logical_ms=minute(2), trigger_type="MANUAL")
    for code in (500, 500):
        end_next(code)
    go_on(backfill_id)
    api.post(f"/backfills/{backfill_id}/resume")
    claim_due(only_row(Fire).due_time)
    other, first, retry, again = sorted(api.get("/runs").json["items"], key=lambda run: int(run["id"]))
    assert [run["trigger_type"] for run in (again, retry, first)] == ["BACKFILL", "RETRY", "BACKFILL"]
    assert [run["backfill"] for run in (again, retry, first, other)] == [backfill_id] * 3 + [None]
    assert api.get(f"/runs/{retry['id']}").json["backfill"] == backfill_id


def test_backfills_are_listed_by_job_and_state(api: Api) -> None:
    jobs = [minutely(), minutely()]
    first, second = (api.post(f"/jobs/{job.id}/backfills", span(1, 1)).json["id"] for job in jobs)
    api.post(f"/backfills/{first}/pause")
    page = api.get("/backfills?limit=1").json
    assert [item["id"] for item in page["items"]] == [second]
    rest = api.get(f"/backfills?limit=1&cursor={page['next_cursor']}").json
    assert ([item["id"] for item in rest["items"]], rest["next_cursor"]) == ([first], None)
    assert [item["id"] for item in api.get("/backfills?state=paused").json["items"]] == [first]
    assert [item["id"] for item in api.get(f"/backfills?job_id={jobs[1].id}").json["items"]] == [second]
    assert api.get("/backfills/99").status_code == 404


def test_a_backfill_is_paused_resumed_and_cancelled(api: Api) -> None:
    job = minutely()
    path = f"/backfills/{api.post(f'/jobs/{job.id}/backfills', span(3, 1)).json['id']}"
    assert api.post(f"{path}/pause").json["state"] == "paused"
    assert api.post(f"{path}/resume?dry_run=true").json["state"] == "running"
    assert api.post(f"{path}/resume").json["state"] == "running"
    assert api.post(f"{path}/cancel?dry_run=true").json["state"] == "running"
    cancelled = api.post(f"{path}/cancel")
    assert (cancelled.status_code, cancelled.json["state"]) == (200, "cancelled")
    assert cancelled.json["counts"] == {"withdrawn": 3}
    for action in ("pause", "resume", "cancel", "cancel?dry_run=true"):
        refused = api.post(f"{path}/{action}")
        assert (refused.status_code, refused.json["detail"]) == (409, "The backfill was cancelled")


def test_cancelling_kills_on_request(config: Config, database: str, hook: FakeExecutor) -> None:
    api = Api(app_of(replace(config, executor_networks=LOOPBACK)), make_token(*ALL, admin=True, name="admin"))
    job = minutely(job_group=make_group(address_list=hook.address).id)
    path = f"/backfills/{api.post(f'/jobs/{job.id}/backfills', span(3, 1)).json['id']}"
    [run] = claim_due(only_row(Fire).due_time)
    record_sent(sent(run))
    hook.respond("kill", Answer.json())
    assert api.post(f"{path}/cancel").json["state"] == "cancelling"
    killed = api.post(f"{path}/cancel", {"kill": True})
    assert (killed.status_code, killed.json["state"]) == (200, "cancelled")
    assert killed.json["counts"] == {"failed": 1, "withdrawn": 2}
    assert len(hook.requests_for("kill")) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        (span(3, 1, times=["2024-05-01T00:00:00Z"]), "body"),
        ({"from": "2024-05-02T00:00:00Z", "to": "2024-05-01T00:00:00Z"}, "to"),
        ({"from": "2024-05-02T00:00:00Z", "to": "2090-05-01T00:00:00Z"}, "to"),
        ({"times": ["2090-05-01T00:00:00Z"]}, "times"),
        (span(3, 1, max_running=0), "max_running"),
        (span(3, 1, which="some"), "which"),
    ],
)
def test_a_wrong_backfill_names_the_member(api: Api, body: dict[str, Any], field: str) -> None:
    answer = api.post(f"/jobs/{minutely().id}/backfills", body)
    assert (answer.status_code, answer.json["errors"][0]["field"]) == (422, field)


def test_a_viewer_reads_and_others_see_nothing(api: Api, api_of: ApiOf) -> None:
    job, other = minutely(), minutely()
    backfill_id = api.post(f"/jobs/{job.id}/backfills", span(3, 1)).json["id"]
    viewer = api_of(Right.VIEW, group_ids=[job.job_group])
    assert viewer.get(f"/backfills/{backfill_id}").status_code == 200
    assert viewer.post(f"/backfills/{backfill_id}/pause").status_code == 403
    assert viewer.post(f"/jobs/{job.id}/backfills", span(3, 1)).status_code == 403
    foreign = api_of(*ALL, group_ids=[other.job_group], name="foreign")
    assert foreign.get("/backfills").json["items"] == []
    for path in ("", "/instants"):
        assert foreign.get(f"/backfills/{backfill_id}{path}").status_code == 404
    for action in ("pause", "resume", "cancel"):
        assert foreign.post(f"/backfills/{backfill_id}/{action}").status_code == 404
    assert foreign.post(f"/jobs/{job.id}/backfills?dry_run=true", span(3, 1)).status_code == 404


def test_a_backfill_is_refused_beside_a_java_admin(config: Config, database: str) -> None:
    api = Api(app_of(replace(config, shared_with_java=True)), make_token(*ALL, admin=True, name="admin"))
    assert api.post(f"/jobs/{minutely().id}/backfills", span(3, 1)).status_code == 409
