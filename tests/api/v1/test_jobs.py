"""Jobs over the API: their members, all errors at once, switches, next times."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from app.clock import DAY_MS, now_ms
from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.code import CodeObject
from app.models.job import Job
from app.models.log import JobLog
from tests.support.api_v1 import Api
from tests.support.factories import T0, all_rows, make_due_job, make_group, make_job, make_log, only_row, save
from tests.support.plan import every_database
from tests.support.statements import statements

ApiOf = Callable[..., Api]
HOURLY = {"schedule_type": "CRON", "schedule": "0 0 * * * ?"}


def new_job(group_id: int, **members: Any) -> dict[str, Any]:
    required = {"group_id": group_id, "description": "night", "owner": "ann", "handler": "report"}
    return {**required, **members}


def fields(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [each["field"] for each in answer.json["errors"]]


def test_a_job_is_added_with_defaults_and_read_again(api: Api) -> None:
    group = make_group()
    child = make_job(job_group=group.id)
    given = new_job(
        group.id,
        **HOURLY,
        children=[child.id],
        tags=["b", "a"],
        not_after="2099-01-01T00:00:00+08:00",
        param=" x ",
        retry_count=2,
        enabled=True,
    )
    answer = api.post("/jobs", given)
    assert answer.status_code == 201, answer.text
    job = answer.json
    assert answer.headers["Location"].endswith(f"/jobs/{job['id']}")
    again = api.get(f"/jobs/{job['id']}")
    assert (again.json, again.headers["ETag"]) == (job, answer.headers["ETag"])
    expected = {**given, "tags": ["a", "b"], "not_after": "2098-12-31T16:00:00.000Z"}
    assert {name: job[name] for name in given} == expected
    assert (job["route_strategy"], job["delivery"], job["run_mode"]) == ("FIRST", "auto", "BEAN")
    assert (len(job["next_times"]), job["last_run"]) == (1, None)
    assert only_row(AuditEntry, action="job.add").via == "token admin"


def test_all_errors_of_a_job_are_named_by_its_members(api: Api) -> None:
    wrong = new_job(
        77,
        handler="",
        schedule_type="CRON",
        schedule="every day",
        children=[999],
        tags=["a,b"],
        alarm_email="no-address",
        source_remark="\x00",
    )
    named = fields(api.post("/jobs", wrong))
    expected = ["group_id", "alarm_email", "schedule", "source_remark", "handler", "children", "tags"]
    assert named == expected
    assert "glueRemark" not in api.post("/jobs", wrong).text


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"route_strategy": "ANY"}, "route_strategy"),
        ({"retry_count": -1}, "retry_count"),
        ({"retry_count": "1"}, "retry_count"),
        ({"description": ""}, "description"),
        ({"jobDesc": "x"}, "jobDesc"),
        ({"not_before": "1970-01-01T00:00:00Z"}, "not_before"),
        ({"children": [0]}, "children.0"),
        ({"enabled": True}, "schedule_type"),
        ({"param": None}, "param"),
        ({"time_zone": "Mars"}, "time_zone"),
    ],
)
def test_an_invalid_member_is_refused(api: Api, members: dict[str, Any], field: str) -> None:
    assert fields(api.post("/jobs", new_job(make_group().id, **members))) == [field]
    assert all_rows(Job) == []


def test_only_given_members_change(api: Api) -> None:
    job = make_job(executor_param="keep", child_jobid="")
    answer = api.patch(f"/jobs/{job.id}", {"description": "new", "tags": ["x"], "not_before": None})
    assert answer.status_code == 200, answer.text
    assert (answer.json["description"], answer.json["param"], answer.json["tags"]) == ("new", "keep", ["x"])
    again = api.patch(f"/jobs/{job.id}", {"owner": "bob"})
    assert again.json["tags"] == ["x"]
    assert again.headers["ETag"] == api.get(f"/jobs/{job.id}").headers["ETag"]
    assert len(all_rows(AuditEntry, action="job.update")) == 2
    assert api.patch(f"/jobs/{job.id}", {"owner": "bob"}).status_code == 200
    assert len(all_rows(AuditEntry, action="job.update")) == 2
    assert fields(api.patch(f"/jobs/{job.id}", {"run_mode": "GLUE_SHELL"})) == ["run_mode"]
    assert fields(api.patch(f"/jobs/{job.id}", {"source": "x"})) == ["source"]


def test_a_schedule_and_its_switch_change_together_or_not_at_all(api: Api) -> None:
    job = make_job()
    path = f"/jobs/{job.id}"
    assert fields(api.patch(path, {**HOURLY, "schedule": "x", "enabled": True})) == ["schedule"]
    assert fields(api.patch(path, {"owner": "bob", "enabled": True})) == ["schedule_type"]
    assert only_row(Job, id=job.id).author == "alice"
    on = api.patch(path, {**HOURLY, "enabled": True}).json
    assert (on["enabled"], len(on["next_times"])) == (True, 1)
    off = api.patch(path, {"schedule_type": "NONE", "schedule": "", "enabled": False}).json
    assert (off["enabled"], off["next_times"], off["schedule_type"]) == (False, [], "NONE")


def test_starting_and_stopping_twice_is_as_once(api: Api) -> None:
    job = make_job(schedule_type="FIX_RATE", schedule_conf="60")
    for action, enabled in (("start", True), ("stop", False)):
        first, second = (api.post(f"/jobs/{job.id}/{action}") for _ in range(2))
        assert (first.status_code, first.json["enabled"], second.json) == (200, enabled, first.json)
    assert len(all_rows(AuditEntry, action="job.start")) == len(all_rows(AuditEntry, action="job.stop")) == 1


@every_database
def test_a_dry_run_of_every_write_changes_nothing(api: Api) -> None:
    job = make_due_job(now_ms() + DAY_MS)
    make_log(job)
    path = f"/jobs/{job.id}"
    requests: list[tuple[str, str, Any, int]] = [
        ("POST", "/jobs", new_job(job.job_group), 201),
        ("PATCH", path, {"owner": "bob"}, 200),
        ("POST", f"{path}/stop", None, 200),
        ("DELETE", path, None, 204),
    ]
    for method, target, body, status in requests:
        answer = api(method, f"{target}?dry_run=true", body)
        assert (answer.status_code, answer.headers["X-Dry-Run"]) == (status, "true")
    found = only_row(Job)
    assert (found.author, found.trigger_status) == (job.author, 1)
    assert len(all_rows(JobLog)) == 1
    assert all_rows(AuditEntry, object_type="job") == []


def test_a_change_is_limited_to_the_version_that_was_read(api: Api) -> None:
    job = make_job()
    path = f"/jobs/{job.id}"
    etag = api.get(path).headers["ETag"]
    make_log(job)
    assert api.get(path).json["last_run"]["state"] == "running"
    assert api.patch(path, {"owner": "bob"}, headers={"If-Match": etag}).status_code == 200
    for method, body in (("PATCH", {"owner": "eve"}), ("DELETE", None)):
        assert api(method, path, body, headers={"If-Match": etag}).status_code == 412
    assert only_row(Job).author == "bob"


def test_a_repeated_add_makes_one_job_and_a_repeated_delete_is_answered(api: Api) -> None:
    body, headers = new_job(make_group().id), {"Idempotency-Key": "k"}
    first, second = (api.post("/jobs", body, headers=headers) for _ in range(2))
    assert (first.status_code, second.json) == (201, first.json)
    path, key = f"/jobs/{first.json['id']}", {"Idempotency-Key": "d"}
    assert [api.delete(path, headers=key).status_code for _ in range(2)] == [204, 204]
    assert all_rows(Job) == []
    assert api.delete(path).status_code == 404


@every_database
def test_jobs_are_listed_newest_first_part_by_part(api: Api) -> None:
    group = make_group()
    ids = [make_job(job_group=group.id).id for _ in range(5)][::-1]
    first = api.get("/jobs?limit=3").json
    rest = api.get(f"/jobs?limit=3&cursor={first['next_cursor']}").json
    assert [job["id"] for job in first["items"] + rest["items"]] == ids
    assert rest["next_cursor"] is None
    assert fields(api.get("/jobs?cursor=abc")) == ["cursor"]
    assert fields(api.get("/jobs?sort=id")) == ["sort"]


@every_database
def test_filters_of_the_list(api: Api) -> None:
    one, two = make_group(app_name="app-one"), make_group(app_name="app-two")
    a = make_job(job_group=one.id, job_desc="Night report", executor_handler="reportHandler", author="ann")
    b = make_due_job(T0, job_group=two.id, job_desc="import", executor_handler="importHandler", author="bob")
    api.patch(f"/jobs/{b.id}", {"tags": ["Money"]})

    def found(query: str) -> list[int]:
        return [job["id"] for job in api.get(f"/jobs?{query}").json["items"]]

    for query in (f"group_id={one.id}", "app_name=app-one", "q=REPORT", "handler=reporth", "owner=ANN"):
        assert found(query) == [a.id], query
    for query in ("tag=money", "enabled=true", "schedule_type=FIX_RATE"):
        assert found(query) == [b.id], query
    for query in ("q=%00", "app_name=%00", "tag=x", f"group_id={one.id}&enabled=true", "app_name=app"):
        assert found(query) == [], query


def test_more_jobs_take_no_more_statements(api: Api) -> None:
    group = make_group()
    for _ in range(12):
        make_log(make_job(job_group=group.id))
    api.get("/jobs")
    with statements() as for_two:
        api.get("/jobs?limit=2")
    with statements() as for_all:
        assert len(api.get("/jobs").json["items"]) == 12
    assert len(for_all) == len(for_two) <= 8
    assert not any("glue_source" in each for each in for_all)


def test_jobs_of_other_groups_do_not_exist(api_of: ApiOf) -> None:
    mine, other = make_job(), make_job()
    limited = api_of(Right.VIEW, Right.OPERATE, Right.EDIT, group_ids=[mine.job_group])
    assert [job["id"] for job in limited.get("/jobs").json["items"]] == [mine.id]
    path = f"/jobs/{other.id}"
    requests: list[tuple[str, str, Any]] = [
        ("GET", path, None),
        ("PATCH", path, {"owner": "eve"}),
        ("POST", f"{path}/start", None),
        ("GET", f"{path}/next-times", None),
        ("DELETE", path, None),
        ("DELETE", f"{path}?dry_run=true", None),
    ]
    assert {limited(*request).status_code for request in requests} == {404}
    assert fields(limited.post("/jobs", new_job(other.job_group))) == ["group_id"]
    assert only_row(Job, id=other.id).author == other.author


def test_each_right_allows_its_own_changes(api_of: ApiOf) -> None:
    job = make_job(schedule_type="FIX_RATE", schedule_conf="60")
    path = f"/jobs/{job.id}"
    viewer = api_of(Right.VIEW, name="viewer")
    operator = api_of(Right.VIEW, Right.OPERATE, name="operator")
    editor = api_of(Right.VIEW, Right.EDIT, name="editor")
    assert viewer.get(path).status_code == 200
    for caller, body, status in (
        (viewer, {"owner": "eve"}, 403),
        (viewer, {"enabled": True}, 403),
        (operator, {"enabled": True}, 403),
        (editor, {"owner": "bob"}, 200),
        (editor, {"enabled": False}, 403),
    ):
        assert caller.patch(path, body).status_code == status, body
    assert operator.delete(path).status_code == 403
    assert [operator.post(f"{path}/start").status_code, editor.post(f"{path}/stop").status_code] == [200, 403]
    code = new_job(job.job_group, run_mode="GLUE_SHELL", source="true", handler="")
    assert editor.post("/jobs", code).status_code == 403
    assert editor.delete(path).status_code == 204


def test_next_times_are_in_the_zone_of_the_job(api: Api) -> None:
    job = make_job(schedule_type="CRON", schedule_conf="0 30 2 * * ?", time_zone="Asia/Shanghai")
    answer = api.get(f"/jobs/{job.id}/next-times?count=3").json
    assert (answer["time_zone"], len(answer["items"])) == ("Asia/Shanghai", 3)
    for each in answer["items"]:
        assert each["at"].endswith("T18:30:00.000Z")
        assert each["local"].endswith("T02:30:00+08:00")
    for count in (0, 101):
        assert fields(api.get(f"/jobs/{job.id}/next-times?count={count}")) == ["count"]


def test_a_schedule_is_tried_without_a_job(api_of: ApiOf) -> None:
    viewer = api_of(Right.VIEW)
    given = {"schedule_type": "CRON", "schedule": "0 0 12 1 1 ?", "time_zone": "UTC", "count": 2}
    answer = viewer.post("/schedules/next-times", given).json
    assert [each["local"][5:] for each in answer["items"]] == ["01-01T12:00:00+00:00"] * 2
    delay = {"schedule_type": "FIX_DELAY", "schedule": "60"}
    assert viewer.post("/schedules/next-times", delay).json["items"] == []
    wrong = {
        **given,
        "schedule": "x",
        "not_before": "2030-01-02T00:00:00Z",
        "not_after": "2030-01-01T00:00:00Z",
    }
    assert fields(viewer.post("/schedules/next-times", wrong)) == ["schedule", "not_after"]


def test_a_job_shows_which_of_its_members_code_owns(api: Api) -> None:
    mine, other = make_job(), make_job()
    row = {"kind": "job", "managed_key": "app/night", "source": "infra@1a2b", "applied_ms": T0}
    save(CodeObject(**row, object_id=mine.id, fields='{"schedule": "0 0 * * * ?", "owner": "ann"}'))
    assert api.get(f"/jobs/{mine.id}").json["managed"] == {
        "key": "app/night",
        "source": "infra@1a2b",
        "members": ["schedule", "owner"],
        "applied_at": "2024-05-01T03:04:05.000Z",
    }
    assert api.get(f"/jobs/{other.id}").json["managed"] is None


@every_database
def test_changes_of_different_members_at_the_same_time_are_all_kept(api: Api) -> None:
    job = make_job()
    given: dict[str, Any] = {"owner": "bob", "param": "new", "timeout_s": 7, "tags": ["x"]}
    statuses: list[int] = []

    def change(name: str) -> None:
        statuses.append(api.patch(f"/jobs/{job.id}", {name: given[name]}).status_code)

    threads = [threading.Thread(target=change, args=[name]) for name in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    changed = api.get(f"/jobs/{job.id}").json
    assert statuses == [200] * len(given)
    assert {name: changed[name] for name in given} == given
