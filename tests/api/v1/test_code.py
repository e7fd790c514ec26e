"""API: jobs as code, from a plan to its undoing, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.domain.access.permissions import Right
from app.models.code import Apply
from app.models.job import Job
from tests.support.api_v1 import Api
from tests.support.factories import all_rows, make_group, make_job, only_row
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")

ROOT = Path(__file__).parents[3]
DOCUMENT: dict[str, Any] = {
    "format": 1,
    "groups": {"sample": {"title": "Sample"}},
    "jobs": {
        "sample/close": {
            "description": "Close the books",
            "handler": "closeHandler",
            "schedule_type": "CRON",
            "schedule": "0 0 2 * * ?",
            "time_zone": "UTC",
            "enabled": True,
        }
    },
}


def test_a_document_is_planned_applied_exported_and_undone(api: Api) -> None:
    make_group(app_name="other-app")
    planned = api.post("/code/plan", {"document": DOCUMENT}).json
    assert planned["summary"] == {"create": 2, "update": 0, "adopt": 0, "delete": 0, "unchanged": 0}
    assert [each[11:] for each in planned["objects"][1]["next_times"]["after"]] == ["02:00:00.000Z"] * 3
    assert all_rows(Job) == []
    body = {"document": DOCUMENT, "source": "infra@1a2b3c", "plan_hash": planned["plan_hash"]}
    applied = api.post("/code/apply", body).json
    assert applied["plan"]["plan_hash"] == planned["plan_hash"]
    assert only_row(Job).trigger_status == 1
    assert api.post("/code/plan", {"document": DOCUMENT}).json["objects"] == []
    assert api.get("/code/drift").json == {"items": []}
    exported = api.get("/code/export?groups=sample").json
    assert exported["document"]["jobs"]["sample/close"]["schedule"] == "0 0 2 * * ?"
    [listed] = api.get("/code/applies").json["items"]
    assert (listed["id"], listed["source"], listed["undone_at"]) == (
        applied["apply_id"],
        "infra@1a2b3c",
        None,
    )
    undone = api.post(f"/code/applies/{applied['apply_id']}/undo", {}).json
    assert undone["summary"]["delete"] == 2
    assert all_rows(Job) == []


def test_an_export_of_values_that_a_java_admin_stored_is_adopted(api: Api) -> None:
    make_job(executor_timeout=-5, schedule_type="OLD", misfire_strategy="OLD")
    document = api.get("/code/export").json["document"]
    planned = api.post("/code/plan", {"document": document}).json
    assert (planned["summary"]["adopt"], planned["summary"]["update"]) == (2, 0)


def test_an_apply_of_another_plan_is_a_conflict(api: Api) -> None:
    planned = api.post("/code/plan", {"document": DOCUMENT}).json
    api.post("/code/apply", {"document": DOCUMENT, "source": "a"})
    refused = api.post(
        "/code/apply", {"document": DOCUMENT, "source": "a", "plan_hash": planned["plan_hash"]}
    )
    assert refused.status_code == 409


def test_a_repeated_apply_or_undoing_is_answered_again(api: Api) -> None:
    make_group(app_name="other-app")
    plan_hash = api.post("/code/plan", {"document": DOCUMENT}).json["plan_hash"]
    body = {"document": DOCUMENT, "source": "a", "plan_hash": plan_hash}
    first, second = (api.post("/code/apply", body, headers={"Idempotency-Key": "1"}) for _ in range(2))
    assert (first.status_code, second.data) == (200, first.data)
    path = f"/code/applies/{first.json['apply_id']}/undo"
    first, second = (api.post(path, {}, headers={"Idempotency-Key": "2"}) for _ in range(2))
    assert (first.status_code, second.data) == (200, first.data)


def test_a_dry_run_of_an_apply_keeps_nothing(api: Api) -> None:
    answer = api.post("/code/apply?dry_run=true", {"document": DOCUMENT, "source": "a"})
    assert (answer.status_code, answer.headers["X-Dry-Run"]) == (200, "true")
    assert (all_rows(Job), all_rows(Apply)) == ([], [])


def test_applies_and_undoings_are_planned_before_they_take_the_locks(api: Api) -> None:
    make_group(app_name="other-app")
    with statements() as sent:
        applied = api.post("/code/apply", {"document": DOCUMENT, "source": "a"}).json
    assert planned_at(sent) < locked_at(sent)
    with statements() as sent:
        assert api.post(f"/code/applies/{applied['apply_id']}/undo", {}).status_code == 200
    assert planned_at(sent) < locked_at(sent)


def test_an_apply_that_writes_nothing_takes_no_lock(api: Api) -> None:
    make_group(app_name="other-app")
    body = {"document": DOCUMENT, "source": "a"}
    apply_id = api.post("/code/apply", body).json["apply_id"]
    assert api.post(f"/code/applies/{apply_id}/undo", {}).status_code == 200
    api.post("/code/apply", body)
    with statements() as sent:
        assert api.post("/code/apply", body).json["apply_id"] is None
        assert api.post("/code/apply", {**body, "plan_hash": "another"}).status_code == 409
        assert api.post("/code/apply", {**body, "prune": ["sample/close"]}).status_code == 422
        assert api.post(f"/code/applies/{apply_id}/undo", {}).status_code == 409
    assert locked_at(sent) == len(sent)


def planned_at(sent: list[str]) -> int:
    """Return the number of the first statement that a plan begins with."""
    return next(number for number, each in enumerate(sent) if "FROM xxl_job_managed" in each)


def locked_at(sent: list[str]) -> int:
    """Return the number of the first statement that takes a lock; how many there are if none does."""
    return next((number for number, each in enumerate(sent) if "UPDATE xxl_job_lock" in each), len(sent))


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"shedule": "0 0 2 * * ?"}, "document.jobs.sample/close.shedule"),
        ({"timeout_s": "30"}, "document.jobs.sample/close.timeout_s"),
        ({"retry_count": 99_999}, "document.jobs.sample/close.retry_count"),
        ({"route_strategy": "NEAREST"}, "document.jobs.sample/close.route_strategy"),
        ({"handler": "a", "schedule_type": "CRON", "schedule": "0 0"}, "jobs.sample/close.schedule"),
        ({"handler": ""}, "jobs.sample/close.handler"),
        ({"handler": "a", "children": ["gone"]}, "jobs.sample/close.children"),
        ({"handler": "a", "children": ["close"]}, "jobs.sample/close.children"),
        ({"handler": "a", "alarm_channels": ["gone"]}, "jobs.sample/close.alarm_channels"),
        ({"handler": "a", "enabled": True}, "jobs.sample/close.enabled"),
        ({"code": {"language": "BASIC", "source": "10"}}, "jobs.sample/close.code.language"),
    ],
)
def test_errors_name_the_place_of_the_value(api: Api, members: dict[str, Any], field: str) -> None:
    make_group(app_name="sample")
    refused = api.post("/code/plan", {"document": {"jobs": {"sample/close": members}}})
    assert refused.status_code == 422, refused.text
    assert [each["field"] for each in refused.json["errors"]] == [field]


def test_all_errors_of_all_objects_are_reported_at_once(api: Api) -> None:
    jobs = {"sample/a": {"handler": ""}, "gone-app/b": {"handler": "x"}, "sample/c": {"handler": ""}}
    make_group(app_name="sample")
    refused = api.post("/code/plan", {"document": {"jobs": jobs}})
    assert {each["field"] for each in refused.json["errors"]} == {
        "jobs.sample/a.handler",
        "jobs.gone-app/b",
        "jobs.sample/c.handler",
    }


def test_two_jobs_that_match_are_named(api: Api) -> None:
    group = make_group(app_name="sample")
    twins = [make_job(job_group=group.id, job_desc="twice", executor_param=str(each)).id for each in (1, 2)]
    jobs = {"sample/twice": {"description": "twice", "handler": "demoJobHandler", "param": "3"}}
    [error] = api.post("/code/plan", {"document": {"jobs": jobs}}).json["errors"]
    assert error["field"] == "jobs.sample/twice.description"
    assert f"{twins[0]}, {twins[1]}" in error["reason"]
    jobs["sample/twice"]["param"] = "2"
    [planned] = api.post("/code/plan", {"document": {"jobs": jobs}}).json["objects"]
    assert (planned["action"], planned["id"]) == ("adopt", twins[1])


def test_only_named_objects_are_deleted(api: Api) -> None:
    api.post("/code/apply", {"document": DOCUMENT, "source": "a"})
    document = {"groups": DOCUMENT["groups"]}
    planned = api.post("/code/plan", {"document": document}).json
    assert (planned["objects"], planned["unlisted"]) == ([], ["sample/close"])
    body = {"document": document, "source": "a", "prune": ["sample/close"]}
    [deleted] = api.post("/code/apply", body).json["plan"]["objects"]
    assert (deleted["action"], deleted["key"]) == ("delete", "sample/close")
    refused = api.post("/code/plan", {"document": DOCUMENT, "prune": ["sample/close", "sample/gone"]})
    assert [each["field"] for each in refused.json["errors"]] == ["prune", "prune"]


def test_rights_are_those_of_the_token(api: Api, api_of: Callable[..., Api]) -> None:
    api.post("/code/apply", {"document": DOCUMENT, "source": "a"})
    group_id = only_row(Job).job_group
    document = {"jobs": {"sample/close": {**DOCUMENT["jobs"]["sample/close"], "timeout_s": 9}}}
    body = {"document": document, "source": "a"}
    assert api_of(Right.VIEW, name="reader").post("/code/apply", body).status_code == 403
    elsewhere = api_of(Right.EDIT, name="other", group_ids=[make_group(app_name="other-app").id])
    assert elsewhere.post("/code/plan", {"document": document}).status_code == 422
    editor = api_of(Right.EDIT, name="editor", group_ids=[group_id])
    assert editor.post("/code/apply", body).status_code == 200
    stopped = {"jobs": {"sample/close": {**document["jobs"]["sample/close"], "enabled": False}}}
    refused = editor.post("/code/apply", {"document": stopped, "source": "a"})
    assert (refused.status_code, "start and stop jobs" in refused.json["detail"]) == (403, True)
    assert editor.post("/code/plan", {"document": {"groups": {"new-app": {}}}}).status_code == 403
    assert editor.get("/code/applies").status_code == 403
    assert Api(api.app).get("/code/drift").status_code == 401


def test_the_schema_for_editors_is_public_and_published_as_it_is(api: Api) -> None:
    answer = Api(api.app).get("/code/schema.json")
    assert answer.content_type == "application/schema+json"
    published = ROOT / "docs" / "reference" / "jobs-as-code.schema.json"
    assert json.loads(answer.text) == json.loads(published.read_text()), (
        "save /code/schema.json of the API there"
    )
