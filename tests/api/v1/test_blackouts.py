"""Blackouts in the API, and what they do to runs by hand."""

from dataclasses import replace

from app.models.fire import Fire
from app.settings.config import Config
from tests.support.api_v1 import ALL, Api, app_of, make_token
from tests.support.factories import T0, make_fire, make_job, only_row

AHEAD = {"from": "2090-01-01T00:00:00.500Z", "to": "2090-01-02T00:00:00.500Z"}


def test_a_blackout_is_made_read_listed_and_ended(api: Api) -> None:
    job = make_job()
    made = api.post("/blackouts", {**AHEAD, "job_id": job.id, "reason": " moving ", "afterwards": "run_once"})
    assert made.status_code == 201
    assert made.headers["Location"].endswith(f"/blackouts/{made.json['id']}")
    window = {"from": "2090-01-01T00:00:00.000Z", "to": "2090-01-02T00:00:01.000Z"}
    assert made.json == {
        "id": made.json["id"],
        "state": "coming",
        "window": window,
        **window,
        "cron": None,
        "duration_s": None,
        "time_zone": None,
        "group_id": None,
        "job_id": job.id,
        "tag": None,
        "name": job.job_desc,
        "afterwards": "run_once",
        "reason": "moving",
        "author": "admin",
        "created_at": made.json["created_at"],
        "ended_at": None,
    }
    path = f"/blackouts/{made.json['id']}"
    assert api.get(path).json["window"] == window
    recurring = {"cron": "0 0 2 ? * SUN", "duration_s": 7200, "time_zone": "UTC", "reason": "maintenance"}
    second = api.post("/blackouts", recurring).json["id"]
    third = api.post("/blackouts", {"tag": "x", "reason": "now"}).json["id"]
    page = api.get("/blackouts?limit=2").json
    assert [item["id"] for item in page["items"]] == [third, second]
    assert [item["id"] for item in api.get(f"/blackouts?cursor={page['next_cursor']}").json["items"]] == [
        made.json["id"]
    ]
    assert [item["id"] for item in api.get("/blackouts?state=on").json["items"]] == [third]
    assert api.post(f"{path}/end?dry_run=true").json["state"] == "over"
    ended = api.post(f"{path}/end").json
    assert (ended["state"], ended["to"], ended["window"]) == ("over", window["from"], None)
    assert api.post(f"{path}/end").status_code == 409
    assert [item["id"] for item in api.get("/blackouts?state=over").json["items"]] == [made.json["id"]]
    assert api.get("/blackouts/99").status_code == 404


def test_errors_name_the_members(api: Api) -> None:
    body = {"cron": "x", "duration_s": 1, "to": "2000-01-01T00:00:00Z", "reason": ""}
    refused = api.post("/blackouts", body)
    assert refused.status_code == 422
    assert [error["field"] for error in refused.json["errors"]] == ["reason", "cron", "duration_s"]
    zero = api.post("/blackouts", {"cron": "0 0 2 * * ?\x00", "duration_s": 60, "reason": "x"})
    assert [error["field"] for error in zero.json["errors"]] == ["cron"]
    assert (
        api.post("/blackouts", {"reason": "x", "to": "2000-01-01T00:00:00Z"}).json["errors"][0]["field"]
        == "to"
    )


def test_beside_a_java_admin_there_is_none(config: Config, database: str) -> None:
    api = Api(app_of(replace(config, shared_with_java=True)), make_token(*ALL, admin=True, name="admin"))
    refused = api.post("/blackouts", {"reason": "moving"})
    assert refused.status_code == 422
    assert "XXL_JOB_SHARED_WITH_JAVA" in refused.json["detail"]


def test_a_trigger_is_refused_unless_it_is_forced(api: Api) -> None:
    job = make_job()
    api.post("/blackouts", {"job_id": job.id, "reason": "moving"})
    refused = api.post(f"/jobs/{job.id}/runs", {})
    assert (refused.status_code, refused.json["detail"]) == (
        409,
        "a blackout is on, without an end: moving",
    )
    assert api.post(f"/jobs/{job.id}/runs", {"force": True}).status_code == 202
    [batched] = api.post("/runs:batch", {"runs": [{"job_id": job.id}]}).json["items"]
    assert batched["status"] == 409


def test_a_run_that_waits_says_until_when_and_why(api: Api) -> None:
    job = make_job()
    api.post("/blackouts", {"job_id": job.id, "reason": "moving"})
    fire = make_fire(job, trigger_type="RETRY", state="GATED", waits_for="blackout", due_time=T0)
    [item] = api.get("/runs?state=waiting").json["items"]
    assert (item["id"], item["reason"]) == (f"w{fire.id}", "blackout")
    assert item["blackout"] == {"until": None, "reason": "moving"}
    assert api.post(f"/runs/w{fire.id}/start").status_code == 200
    assert only_row(Fire).admitted_ms > 0
