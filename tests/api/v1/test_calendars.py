"""Calendars in the API: made, changed, imported, listed by days, and previewed with schedules."""

import json
from typing import Any

import pytest

from app.domain.access.permissions import Right
from tests.support.api_v1 import Api
from tests.support.factories import make_group, make_job

CN = {"days": {"2026-10-01": "holiday"}, "names": {"2026-10-01": "国庆节"}, "valid_until": "2026-12-31"}


def fields(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [error["field"] for error in answer.json["errors"]]


def test_a_calendar_is_made_read_changed_and_deleted(api: Api) -> None:
    made = api.post("/calendars", {"name": "cn", **CN})
    assert (made.status_code, made.headers["Location"]) == (201, "/calendars/cn")
    body = made.json
    assert body["weekend"] == ["saturday", "sunday"]
    assert (body["days"], body["names"], body["valid_until"]) == (CN["days"], CN["names"], "2026-12-31")
    assert (body["version"], body["holidays"], body["workdays"], body["unknown"]) == (1, 1, 0, "weekday")
    assert [version["number"] for version in body["versions"]] == [1]
    assert api.post("/calendars", {"name": "cn"}).status_code == 409
    first = api.get("/calendars/cn")
    etag = {"If-Match": first.headers["ETag"]}
    changed = api.put("/calendars/cn", {**CN, "weekend": ["sunday", 6, 5]}, headers=etag)
    assert (changed.json["weekend"], changed.json["version"]) == (["friday", "saturday", "sunday"], 2)
    assert api.put("/calendars/cn", {}, headers=etag).status_code == 412
    assert api.put("/calendars/de?dry_run=true", {}).status_code == 200
    api.put("/calendars/de", {})
    page = api.get("/calendars?limit=1").json
    assert [item["name"] for item in page["items"]] == ["cn"]
    assert [item["name"] for item in api.get(f"/calendars?cursor={page['next_cursor']}").json["items"]] == [
        "de"
    ]
    assert api.delete("/calendars/de").status_code == 204
    assert api.get("/calendars/de").status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"weekend": ["caturday"]}, "weekend.0"),
        ({"days": {"2026-13-01": "holiday"}}, "days.2026-13-01"),
        ({"days": {"2026-10-01": "feast"}}, "days.2026-10-01"),
        ({"unknown": "later"}, "unknown"),
        ({"valid_until": "2026"}, "valid_until"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_member_is_named(api: Api, body: dict[str, Any], field: str) -> None:
    assert fields(api.put("/calendars/cn", body)) == [field]


def test_a_calendar_in_use_names_its_jobs(api: Api, api_of: Any) -> None:
    api.put("/calendars/cn", CN)
    group, other = make_group(), make_group(app_name="other")
    jobs = [make_job(job_group=each.id, calendar=json.dumps({"name": "cn"})).id for each in (group, other)]
    viewer = api_of(Right.VIEW, group_ids=[group.id])
    shown = viewer.get("/calendars/cn").json
    assert (shown["jobs"], shown["used_by"]) == (2, jobs[:1])
    refused = api.delete("/calendars/cn")
    assert (refused.status_code, f"({jobs[1]})" in refused.json["detail"]) == (409, True)
    assert viewer.put("/calendars/cn", {}).status_code == 403


def test_days_are_imported_and_listed(api: Api) -> None:
    made = api.post("/calendars/cn/import", {"country": "CN", "years": [2026]}).json
    assert (made["days"]["2026-10-01"], made["names"]["2026-10-01"]) == ("holiday", "国庆节")
    assert made["valid_until"] == "2026-12-31"
    days = {day["date"]: day for day in api.get("/calendars/cn/days?year=2026").json["items"]}
    assert len(days) == 365
    assert (days["2026-10-10"]["kind"], days["2026-10-10"]["is_makeup"]) == ("workday", True)
    csv = api.post("/calendars/cn/import", {"csv": "2027-01-01,休,元旦", "replace": True}).json
    assert csv["days"] == {"2027-01-01": "holiday"}
    assert fields(api.post("/calendars/cn/import", {"csv": "2027-01-01"})) == ["csv"]
    assert fields(api.post("/calendars/cn/import", {})) == ["country"]
    assert fields(api.post("/calendars/cn/import", {"country": "XX", "years": [2026]})) == ["country"]


def test_a_schedule_is_previewed_with_its_calendar(api: Api) -> None:
    api.put("/calendars/closed", {"weekend": list(range(1, 7))})
    given = {"schedule_type": "CRON", "schedule": "0 0 9 * * ?", "time_zone": "UTC", "count": 2}
    answer = api.post("/schedules/next-times", {**given, "calendar": {"name": "closed"}}).json
    running = [row["runs_at"] for row in answer["instants"] if row["fate"] == "runs"]
    assert running == [item["at"] for item in answer["items"]]
    assert {row["fate"] for row in answer["instants"]} == {"runs", "skipped"}
    unknown = {**given, "calendar": {"name": "close"}}
    assert fields(api.post("/schedules/next-times", unknown)) == ["calendar.name"]
    assert api.post("/schedules/next-times", given).json["instants"] == []


def test_a_job_has_its_rule_and_marked_instants(api: Api) -> None:
    api.put("/calendars/cn", CN)
    rule = {"name": "cn", "otherwise": "next"}
    job = {"group_id": make_group().id, "description": "pay", "owner": "ann", "handler": "pay"}
    schedule = {"schedule_type": "CRON", "schedule": "0 0 9 * * ?", "time_zone": "UTC"}
    made = api.post("/jobs", {**job, **schedule, "calendar": rule}).json
    assert made["calendar"] == {"name": "cn", "on": "workdays", "otherwise": "next", "nth": None}
    fates = api.get(f"/jobs/{made['id']}/next-times?count=7").json["instants"]
    assert {row["fate"] for row in fates} == {"runs", "merged"}
    patched = api.patch(f"/jobs/{made['id']}", {"calendar": {"name": "cn", "nth": -1}})
    assert patched.json["calendar"]["nth"] == -1
    assert fields(api.patch(f"/jobs/{made['id']}", {"calendar": {"name": "de"}})) == ["calendar.name"]
    wrong = {"calendar": {"name": "cn", "nth": 1, "otherwise": "next"}}
    assert fields(api.patch(f"/jobs/{made['id']}", wrong)) == ["calendar.otherwise"]
