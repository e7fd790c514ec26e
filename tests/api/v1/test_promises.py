"""Promises of jobs and groups in the API, their incidents, and who acknowledges them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.group import Group
from app.models.job import Job
from app.models.promise import Incident, IncidentMessage, JobPromise
from tests.support.api_v1 import Api
from tests.support.factories import T0, all_rows, make_group, make_job, only_row, save

ApiOf = Callable[..., Api]
NEW = {"description": "d", "owner": "o", "handler": "h", "schedule_type": "CRON", "schedule": "0 0 2 * * ?"}
CHANNEL = {"name": "On call", "kind": "webhook", "settings": {"url": "http://127.0.0.1:9/x"}}
STARTS = {"kind": "starts_within", "s": 300, "then": "alarm"}
FAILS = {"kind": "fails_at_most", "n": 0, "then": "switch_off"}
ESCALATION = {"channel": "On call", "after_minutes": 15}


def make_incident(job: Job, logical_ms: int = T0, **more: Any) -> Incident:
    kinds = {"1": {"kind": "starts_within", "s": 300}, "2": {"kind": "fails_at_most", "then": "switch_off"}}
    return save(
        Incident(
            incident_key=f"i:{job.id}:{logical_ms}",
            job_id=job.id,
            group_id=job.job_group,
            logical_ms=logical_ms,
            opened_ms=T0 + 1_000,
            **{"state": "open", "kinds": json.dumps(kinds), **more},
        )
    )


def test_a_job_gets_promises_and_loses_them(api: Api) -> None:
    api.post("/channels", CHANNEL)
    group = make_group()
    given = {"promises": [{"kind": "starts_within", "s": 300}, FAILS], "escalation": ESCALATION}
    made = api.post("/jobs", {**NEW, "group_id": group.id, **given})
    path = made.headers["Location"]
    assert (made.status_code, made.json["promises"], made.json["escalation"]) == (
        201,
        [STARTS, FAILS],
        ESCALATION,
    )
    assert api.patch(path, {"description": "other"}).json["promises"] == [STARTS, FAILS]
    assert api.patch(path, {"promises": [FAILS]}).json["promises"] == [FAILS]
    cleared = api.patch(path, {"promises": [], "escalation": None}).json
    assert (cleared["promises"], cleared["escalation"]) == ([], None)
    assert (only_row(Job).promises, only_row(Job).escalation) == (None, None)


@pytest.mark.parametrize(
    ("members", "fields"),
    [
        ({"promises": [STARTS, {"kind": "starts_within", "s": 0}]}, ["promises.1.s"]),
        ({"promises": [{"kind": "starts_within"}]}, ["promises.0.s"]),
        ({"promises": [{"kind": "finishes_by", "at": "25:00"}]}, ["promises.0.at"]),
        ({"promises": [{"kind": "starts_within", "s": 1, "n": 1}]}, ["promises.0.n"]),
        ({"promises": [{"kind": "fails_at_most", "n": 1, "then": "pause"}]}, ["promises.0.then"]),
        ({"promises": [{"kind": "ends"}]}, ["promises.0"]),
        ({"promises": {}}, ["promises"]),
        ({"promises": [STARTS] * 11}, ["promises"]),
        ({"escalation": {"channel": "On call"}}, ["escalation.after_minutes"]),
        ({"escalation": {"channel": "On call", "after_minutes": 0}}, ["escalation.after_minutes"]),
        ({"escalation": ESCALATION}, ["escalation.channel"]),
        ({"promises": [STARTS], "schedule_type": "NONE"}, ["promises.0.kind"]),
    ],
)
def test_an_error_names_its_place(api: Api, members: dict[str, Any], fields: list[str]) -> None:
    job = make_job()
    for answer in (
        api.post("/jobs", {**NEW, "group_id": job.job_group, **members}),
        api.patch(f"/jobs/{job.id}", {"schedule_type": "CRON", "schedule": "0 0 2 * * ?", **members}),
    ):
        assert (answer.status_code, [error["field"] for error in answer.json["errors"]]) == (422, fields)
    if "schedule_type" not in members:
        group = api.post("/groups", {"app_name": "shop", "title": "Shop"}).headers["Location"]
        answer = api.patch(group, members)
        assert (answer.status_code, [error["field"] for error in answer.json["errors"]]) == (422, fields)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", '{"a": 1}', '[{"kind": "other"}]', "null", '[{"kind": "starts_within", "s": "x"}]'],
)
def test_what_another_program_has_stored_breaks_no_answer(api: Api, text: str) -> None:
    job = make_job(promises=text, escalation=text)
    answer = api.get(f"/jobs/{job.id}")
    assert (answer.status_code, answer.json["promises"], answer.json["escalation"]) == (200, [], None)
    assert api.get("/jobs").status_code == 200
    assert api.get(f"/jobs/{job.id}/promises").json == {"job_id": job.id, "items": []}
    assert api.patch(f"/jobs/{job.id}", {"description": "other"}).status_code == 200


def test_a_job_keeps_an_escalation_whose_channel_is_gone(api: Api) -> None:
    job = make_job(escalation=json.dumps(ESCALATION))
    changed = api.patch(f"/jobs/{job.id}", {"description": "other"})
    assert (changed.status_code, changed.json["escalation"]) == (200, ESCALATION)
    path = api.post("/groups", {"app_name": "shop", "title": "Shop"}).headers["Location"]
    refused = api.patch(path, {"escalation": ESCALATION})
    assert [error["field"] for error in refused.json["errors"]] == ["escalation.channel"]


def test_an_escalation_goes_to_a_channel_that_its_author_may_see(api: Api, api_of: ApiOf) -> None:
    job, other = make_job(), make_group()
    given = {"channel": "theirs", "after_minutes": 5}
    api.post("/channels", {**CHANNEL, "name": "theirs", "for_all": False, "group_ids": [other.id]})
    editor = api_of(Right.VIEW, Right.EDIT, group_ids=[job.job_group])
    refused = editor.patch(f"/jobs/{job.id}", {"escalation": given})
    assert [error["field"] for error in refused.json["errors"]] == ["escalation.channel"]
    assert api.patch(f"/jobs/{job.id}", {"escalation": given}).status_code == 200
    kept = editor.patch(f"/jobs/{job.id}", {"description": "mine"})
    assert (kept.status_code, kept.json["escalation"]) == (200, given)


@pytest.mark.databases("postgresql")
def test_a_channel_may_have_a_name_that_cannot_be_stored(api: Api) -> None:
    job = make_job()
    for name in ("a\0b", "\ud800"):
        refused = api.patch(f"/jobs/{job.id}", {"escalation": {"channel": name, "after_minutes": 5}})
        assert refused.status_code in (400, 422)


def test_a_group_has_defaults_that_only_administrators_change(api: Api, api_of: ApiOf) -> None:
    api.post("/channels", CHANNEL)
    made = api.post(
        "/groups", {"app_name": "shop", "title": "Shop", "promises": [STARTS], "escalation": ESCALATION}
    )
    path = made.headers["Location"]
    assert (made.json["promises"], made.json["escalation"]) == ([STARTS], ESCALATION)
    kept = api.patch(path, {"title": "Other"}).json
    assert (kept["promises"], kept["escalation"]) == ([STARTS], ESCALATION)
    etag = api.get(path).headers["ETag"]
    changed = api.patch(path, {"promises": [FAILS], "escalation": None}, headers={"If-Match": etag}).json
    assert (changed["promises"], changed["escalation"]) == ([FAILS], None)
    changes = [
        json.loads(row.changes or "{}") for row in all_rows(AuditEntry) if row.action == "group.update"
    ]
    assert changes[-1]["escalation"] == [json.dumps(ESCALATION, separators=(",", ":")), None]
    assert api.patch(path, {"promises": []}).json["promises"] == []
    assert all_rows(Group)[-1].promises is None
    assert api_of(*Right).patch(path, {"promises": [STARTS]}).status_code == 403


def test_the_promises_of_a_job_are_its_own_and_those_of_its_group(api: Api, api_of: ApiOf) -> None:
    group = make_group(promises=json.dumps([{"kind": "starts_within", "s": 60}, FAILS]))
    job = make_job(
        job_group=group.id,
        promises=json.dumps([STARTS]),
        schedule_type="CRON",
        schedule_conf="0 0 2 * * ?",
    )
    save(
        JobPromise(
            job_id=job.id,
            number=1,
            kind="starts_within",
            definition='{"kind":"starts_within","s":300}',
            since_ms=T0,
            planned_until_ms=T0,
            days='{"2024-05-01":[3,1,0],"2024-05-02":[1,0,2]}',
            kept_ms=T0 + 1,
            broken_ms=T0,
        )
    )
    numbers = {"kept": 4, "broken": 1, "excused": 2}
    assert api.get(f"/jobs/{job.id}/promises").json["items"] == [
        {"promise": STARTS, "source": "job", "state": "kept", **numbers},
        {"promise": FAILS, "source": "group", "state": "new", **dict.fromkeys(numbers, 0)},
    ]
    other = make_group(app_name="other-app")
    assert api_of(Right.VIEW, group_ids=[other.id]).get(f"/jobs/{job.id}/promises").status_code == 404


def test_incidents_of_visible_groups_are_listed_in_parts(api: Api, api_of: ApiOf) -> None:
    job, other = make_job(), make_job(job_group=make_group(app_name="other-app").id)
    first = make_incident(job, log_id=7)
    foreign = make_incident(other)
    ended = make_incident(job, T0 + 60_000, state="kept_again", ended_ms=T0 + 90_000)
    reader = api_of(Right.VIEW, group_ids=[job.job_group])
    part = reader.get("/incidents?limit=1").json
    rest = reader.get(f"/incidents?limit=1&cursor={part['next_cursor']}").json
    assert [item["id"] for item in part["items"] + rest["items"]] == [ended.id, first.id]
    assert rest["next_cursor"] is None
    assert rest["items"][0] == {
        "id": first.id,
        "job_id": job.id,
        "group_id": job.job_group,
        "state": "open",
        "key": f"i:{job.id}:{T0}",
        "logical_time": "2024-05-01T03:04:05.000Z",
        "opened_at": "2024-05-01T03:04:06.000Z",
        "ended_at": None,
        "acknowledged_by": None,
        "acknowledged_at": None,
        "promises": [STARTS, FAILS],
        "run_id": "7",
    }
    assert part["items"][0]["ended_at"] == "2024-05-01T03:05:35.000Z"
    for query, ids in (
        ("state=open", [foreign.id, first.id]),
        (f"state=open&job_id={job.id}", [first.id]),
        (f"group_id={job.job_group}", [ended.id, first.id]),
        ("state=withdrawn", []),
    ):
        assert [item["id"] for item in api.get(f"/incidents?{query}").json["items"]] == ids, query
    assert reader.get(f"/incidents?job_id={other.id}").status_code == 404
    assert reader.get(f"/incidents?group_id={other.job_group}").status_code == 404
    assert reader.get(f"/incidents/{foreign.id}").status_code == 404
    assert reader.get("/incidents?state=closed").status_code == 422


def test_an_incident_has_its_messages(api: Api) -> None:
    incident = make_incident(make_job())
    common = {"incident_id": incident.id, "job_id": incident.job_id, "created_ms": T0}
    outcome = {"mail ops@example.com": "ok", "channel Slack": "refused"}
    save(
        IncidentMessage(
            **common, step="opened", state="PARTLY", next_ms=T0 + 2_000, outcome=json.dumps(outcome)
        )
    )
    save(IncidentMessage(**common, step="escalated", state="PENDING", next_ms=T0 + 900_000))
    reported = json.dumps({"": "reported as a failed run"})
    save(IncidentMessage(**common, step="kept_again", state="SILENT", next_ms=T0, outcome=reported))
    assert api.get(f"/incidents/{incident.id}").json["messages"] == [
        {
            "step": "opened",
            "state": "partly_delivered",
            "at": "2024-05-01T03:04:07.000Z",
            "targets": [
                {"target": "mail ops@example.com", "problem": None},
                {"target": "channel Slack", "problem": "refused"},
            ],
        },
        {"step": "escalated", "state": "waiting", "at": "2024-05-01T03:19:05.000Z", "targets": []},
        {"step": "kept_again", "state": "not_sent", "at": "2024-05-01T03:04:05.000Z", "targets": []},
    ]


def test_an_operator_acknowledges_once(api_of: ApiOf) -> None:
    incident, other = make_incident(make_job()), make_group(app_name="other-app")
    path = f"/incidents/{incident.id}/acknowledge"
    assert api_of(Right.VIEW, name="reader").post(path).status_code == 403
    assert api_of(Right.OPERATE, group_ids=[other.id], name="other").post(path).status_code == 404
    operator = api_of(Right.OPERATE, name="operator")
    assert operator.post(f"{path}?dry_run=true").json["state"] == "acknowledged"
    assert only_row(Incident).state == "open"
    answer = operator.post(path)
    assert (answer.status_code, answer.json["state"], answer.json["messages"]) == (200, "acknowledged", [])
    assert answer.json["acknowledged_by"] == "operator"
    assert api_of(Right.OPERATE, name="second").post(path).json == answer.json
    assert [row.action for row in all_rows(AuditEntry)].count("incident.acknowledge") == 1
    assert operator.post("/incidents/99/acknowledge").status_code == 404


def test_an_incident_that_has_ended_is_not_acknowledged(api: Api) -> None:
    incident = make_incident(make_job(), state="kept_again", ended_ms=T0 + 5_000)
    answer = api.post(f"/incidents/{incident.id}/acknowledge")
    assert (answer.status_code, answer.json["state"], answer.json["acknowledged_by"]) == (
        200,
        "kept_again",
        None,
    )
