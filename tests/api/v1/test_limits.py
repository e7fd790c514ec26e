"""Named limits and waiting runs in the API."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.access.permissions import Right
from app.domain.limits.waits import Wait, WaitReason
from app.models.fire import Fire
from app.models.job import Job
from app.models.limit import Limit
from app.models.skip import Skip
from app.store.limits.slots import NO_END
from tests.support.api_v1 import Api
from tests.support.factories import T0, all_rows, make_fire, make_group, make_job, make_run, only_row, save

ApiOf = Callable[..., Api]
EDITOR = (Right.VIEW, Right.EDIT)


def wait(job: Job, limit: Limit, place: int = T0, **columns: Any) -> Fire:
    text = Wait(limit.id, WaitReason.FULL, 1, 1).text
    values = {"state": "WAITING", "deadline_ms": place, "lease_until": NO_END, "waits_for": text}
    return make_fire(job, **{**values, **columns})


def test_a_limit_is_set_read_listed_and_deleted(api: Api) -> None:
    made = api.put("/limits/reporting database", {"slots": 3})
    expected = {
        "name": "reporting database",
        "slots": 3,
        "group_id": None,
        "jobs": 0,
        "max_weight": 0,
        "used": 0,
        "waiting": 0,
        "sharing": [],
        "holders": [],
    }
    assert (made.status_code, made.json) == (200, expected)
    first = api.get("/limits/reporting%20database")
    assert first.json == made.json
    assert first.headers["ETag"] == made.headers["ETag"]
    etag = {"If-Match": first.headers["ETag"]}
    assert api.put("/limits/reporting database", {"slots": 4}, headers=etag).status_code == 200
    assert api.put("/limits/reporting database", {"slots": 5}, headers=etag).status_code == 412
    assert api.delete("/limits/reporting database", headers=etag).status_code == 412
    assert api.put("/limits/mail?dry_run=true", {"slots": 1}).status_code == 200
    assert api.put("/limits/mail", {"slots": 1}, headers={"Idempotency-Key": "a"}).status_code == 200
    page = api.get("/limits?limit=1").json
    assert [item["name"] for item in page["items"]] == ["mail"]
    rest = api.get(f"/limits?limit=1&cursor={page['next_cursor']}").json
    assert ([item["name"] for item in rest["items"]], rest["next_cursor"]) == (["reporting database"], None)
    assert api.delete("/limits/mail").status_code == 204
    assert api.delete("/limits/mail").status_code == 404


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        ("a", {}, "slots"),
        ("a", {"slots": 0}, "slots"),
        ("a", {"slots": 10_001}, "slots"),
        ("a", {"slots": "1"}, "slots"),
        ("a", {"slots": 1, "group_id": 99}, "group_id"),
        ("a", {"slots": 1, "users": 1}, "users"),
        ("x" * 65, {"slots": 1}, "name"),
    ],
)
def test_a_wrong_limit_names_the_member(api: Api, name: str, body: dict[str, Any], field: str) -> None:
    answer = api.put(f"/limits/{name}", body)
    assert (answer.status_code, answer.json["errors"][0]["field"]) == (422, field)


def test_a_limit_shows_its_jobs_and_holders_to_those_who_may_see_them(api: Api, api_of: ApiOf) -> None:
    job, foreign = make_job(), make_job()
    api.put("/limits/database", {"slots": 3})
    share = [{"limit": "database", "weight": 2}]
    for each in (job, foreign):
        changed = api.patch(f"/jobs/{each.id}", {"limits": share})
        assert (changed.status_code, changed.json["limits"]) == (200, share)
    run, _ = make_run(job, admitted_ms=T0), make_run(foreign, state="HELD", admitted_ms=T0)
    limit = api.get("/limits/database").json
    assert (limit["jobs"], limit["max_weight"], limit["used"]) == (2, 2, 4)
    assert [row["held"] for row in limit["holders"]] == [False, True]
    viewer = api_of(Right.VIEW, group_ids=[job.job_group])
    limit = viewer.get("/limits/database").json
    assert [row["job_id"] for row in limit["sharing"]] == [job.id]
    assert [(row["run_id"], row["job_id"]) for row in limit["holders"]] == [
        (str(run.id), job.id),
        (None, None),
    ]
    assert viewer.put("/limits/database", {"slots": 9}).status_code == 403
    refused = api.delete("/limits/database")
    assert (refused.status_code, job.job_desc in refused.json["detail"]) == (409, True)
    lowered = api.put("/limits/database", {"slots": 1})
    assert (lowered.status_code, lowered.json["errors"][0]["field"]) == (422, "slots")
    unknown = api.patch(f"/jobs/{job.id}", {"limits": [{"limit": "nothing"}]})
    assert unknown.json["errors"][0]["field"] == "limits.0.limit"
    assert "duetime limits set nothing" in unknown.json["errors"][0]["reason"]


def test_a_group_has_a_limit(api: Api, api_of: ApiOf) -> None:
    group = make_group(address_type=0)
    changed = api.patch(f"/groups/{group.id}", {"max_running": 5})
    assert (changed.status_code, changed.json.get("max_running")) == (200, 5)
    assert api.patch(f"/groups/{group.id}", {"title": "Other"}).status_code == 200
    wrong = api.patch(f"/groups/{group.id}", {"max_running": -1})
    assert (wrong.status_code, wrong.json["errors"][0]["field"]) == (422, "max_running")
    editor = api_of(*EDITOR, group_ids=[group.id])
    assert editor.put("/limits/own", {"slots": 1, "group_id": group.id}).status_code == 200
    assert editor.put("/limits/all", {"slots": 1}).status_code == 403
    assert editor.put("/limits/own", {"slots": 2}).json["group_id"] == group.id


def test_waiting_runs_come_first_in_their_order(api: Api) -> None:
    job = make_job(max_running=1, priority=8)
    limit = save(Limit(kind="job", name=str(job.id)))
    run = make_run(job, admitted_ms=T0)
    later, first = wait(job, limit, T0 + 2, trigger_type="PARENT"), wait(job, limit, T0 + 1)
    made = api.post(f"/jobs/{job.id}/runs", {"in_s": 3_600}).json
    ids, cursor = [], ""
    for _ in range(3):
        page = api.get(f"/runs?state=waiting&limit=1&cursor={cursor}").json
        ids += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert ids == [f"w{first.id}", f"w{later.id}", made["id"]]
    waiting, second, planned = api.get("/runs?state=waiting").json["items"]
    assert (waiting["position"], waiting["priority"], waiting["trigger_type"]) == (1, 8, "CRON")
    assert waiting["waits_for"] == {
        "kind": "job",
        "limit": None,
        "key": "",
        "reason": "full",
        "used": 1,
        "slots": 1,
        "runs": [str(run.id)],
    }
    assert waiting["reason"] == "waits for a slot of the job: 1 of 1 are taken"
    assert (second["position"], second["trigger_type"], planned["waits_for"]) == (2, "PARENT", None)
    one = api.get(f"/runs/w{first.id}").json
    assert {name: one[name] for name in waiting} == waiting


def test_a_waiting_run_is_started_or_withdrawn(api: Api) -> None:
    job = make_job(max_running=1)
    limit = save(Limit(kind="job", name=str(job.id)))
    first, second = wait(job, limit), wait(job, limit)
    assert api.post(f"/runs/w{first.id}/start?dry_run=true").status_code == 200
    repeated = api.post(f"/runs/w{first.id}/retry")
    assert (repeated.status_code, "waits for a limit" in repeated.json["detail"]) == (409, True)
    started = api.post(f"/runs/w{first.id}/start")
    assert (started.status_code, started.json["state"], started.json["waits_for"]) == (200, "waiting", None)
    assert api.post(f"/runs/w{first.id}/start").status_code == 409
    assert api.delete(f"/runs/w{second.id}").status_code == 204
    assert api.delete(f"/runs/w{second.id}").status_code == 404
    assert [(fire.id, fire.state, fire.admitted_ms > 0) for fire in all_rows(Fire)] == [
        (first.id, "PENDING", True)
    ]
    skip = api.get("/skips").json["items"][0]
    assert (skip["reason"], skip["trigger_type"], only_row(Skip).from_ms) == ("withdrawn", "", T0)
    run = make_run(job)
    for answer in (api.post(f"/runs/{run.id}/start"), api.post(f"/runs/{run.id}/release")):
        assert answer.status_code == 409


def test_a_held_slot_is_released(api: Api) -> None:
    run = make_run(make_job(max_running=1), state="HELD", admitted_ms=T0)
    assert api.post(f"/runs/{run.id}/release").status_code == 200
    assert all_rows(Fire) == []


def test_a_run_is_forced(api: Api) -> None:
    job = make_job(max_running=1)
    api.post(f"/jobs/{job.id}/runs", {"force": True})
    api.post("/runs:batch", {"runs": [{"job_id": job.id, "force": True}, {"job_id": job.id}]})
    planned = api.post(f"/jobs/{job.id}/runs", {"force": True, "in_s": 60})
    assert (planned.status_code, planned.json["errors"][0]["field"]) == (422, "force")
    run = make_run(job, log={"handle_code": 500})
    api.post(f"/runs/{run.id}/retry", {"force": True})
    api.post(f"/runs/{run.id}/retry")
    forced = [fire.admitted_ms > 0 for fire in all_rows(Fire) if fire.log_id is None]
    assert forced == [True, True, False, True, False]
