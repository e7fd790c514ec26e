"""Executor groups, instances and drains over the API."""

from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_network
from typing import Any
from unittest.mock import ANY

import pytest

from app.clock import now_ms
from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.drain import Drain
from app.models.group import Group
from app.models.registry import Registration
from app.settings.config import Config
from tests.support.api_v1 import ALL, Api, app_of, make_token
from tests.support.factories import FIRST, SECOND, all_rows, make_group, make_job, only_row, save
from tests.support.plan import every_database
from tests.support.statements import statements

ApiOf = Callable[..., Api]
ENTERED = ["http://10.0.0.5:9999", "http://10.0.0.6:9999"]
TOKEN = "a-token-of-the-group-0123456789abcdef"


@pytest.fixture
def api(config: Config, database: str) -> Api:
    """The API of a console whose executors have addresses in 10.0.0.0/8."""
    config = replace(config, executor_networks=(ip_network("10.0.0.0/8"),))
    return Api(app_of(config), make_token(*ALL, admin=True, name="admin"))


def make_registered(app_name: str, address: str) -> Group:
    row = {"registry_group": "EXECUTOR", "registry_key": app_name, "registry_value": address}
    save(Registration(**row, boot_id="b1", capabilities="durable-dedup", update_time=now_ms()))
    return make_group(app_name=app_name, address_type=0, address_list=address)


def fields(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [each["field"] for each in answer.json["errors"]]


def test_a_group_is_added_changed_and_deleted(api: Api) -> None:
    make_group()
    given = {"app_name": "my-app", "title": "Mine", "address_type": "manual", "addresses": ENTERED}
    added = api.post("/groups", {**given, "access_token": TOKEN, "alarm_urls": ["json://hook.example.com"]})
    assert added.status_code == 201, added.text
    group = added.json
    assert {name: group[name] for name in given} == given
    assert (group["has_own_token"], group["jobs"], group["instances"]["listed"]) == (True, 0, 2)
    assert TOKEN not in added.text
    assert "hook.example.com" not in added.text
    path = f"/groups/{group['id']}"
    headers = {"If-Match": api.get(path).headers["ETag"]}
    changed = api.patch(path, {"title": "Ours"}, headers=headers)
    assert (changed.status_code, changed.json) == (200, group | {"title": "Ours", "updated_at": ANY})
    assert changed.headers["ETag"] == api.get(path).headers["ETag"]
    assert api.patch(path, {"title": "Theirs"}, headers=headers).status_code == 412
    assert (only_row(Group, id=group["id"]).alarm_urls or "").startswith("json")
    assert api.patch(path, {"address_type": "auto"}).json["addresses"] == []
    assert api.delete(f"{path}?dry_run=true").status_code == 204
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404


def test_a_replaced_token_stays_valid_until_the_changeover_ends(api: Api) -> None:
    path = f"/groups/{make_group(access_token=TOKEN, address_list=ENTERED[0]).id}"
    changed = api.patch(path, {"access_token": TOKEN[::-1]}).json
    assert changed["token_changeover_since"] is not None
    assert fields(api.patch(path, {"access_token": TOKEN + "x"})) == ["access_token"]
    assert api.post(f"{path}/end-token-changeover").json["token_changeover_since"] is None
    assert api.post(f"{path}/end-token-changeover").status_code == 409
    assert api.patch(path, {"access_token": None}).json["has_own_token"] is False


def test_all_errors_of_a_group_are_named_by_its_members(api: Api) -> None:
    wrong = {
        "app_name": "my app",
        "title": "<b>",
        "address_type": "manual",
        "addresses": ["10.0.0.1", "ftp://a"],
        "access_token": "short",
        "alarm_urls": ["nothing"],
    }
    named = fields(api.post("/groups", wrong))
    assert named == ["app_name", "title", "addresses", "addresses", "access_token", "alarm_urls"]
    assert fields(api.post("/groups", {"app_name": "abc", "title": "x", "addresses": ["a,b"]})) == [
        "app_name",
        "addresses.0",
    ]


def test_only_a_manual_group_is_given_addresses(api: Api) -> None:
    given = {"app_name": "my-app", "title": "Mine", "addresses": ENTERED}
    for body in (given, given | {"address_type": "auto"}):
        assert fields(api.post("/groups", body)) == ["addresses"]
    group = make_registered("app-auto", FIRST)
    path = f"/groups/{group.id}"
    assert fields(api.patch(path, {"addresses": ENTERED})) == ["addresses"]
    assert api.patch(path, {"addresses": []}).json["addresses"] == [FIRST]
    as_read_earlier = {"addresses": ENTERED, "address_type": "auto"}
    assert api.patch(path, as_read_earlier).json["addresses"] == [FIRST]
    read = {name: api.get(path).json[name] for name in ("app_name", "address_type", "addresses")}
    assert api.patch(path, {**read, "title": "Ours"}).json["title"] == "Ours"
    changed = api.patch(path, {"addresses": ENTERED, "address_type": "manual"}).json
    assert (changed["address_type"], changed["addresses"]) == ("manual", ENTERED)
    assert api.patch(path, {"addresses": ENTERED[:1]}).json["addresses"] == ENTERED[:1]
    read = {name: api.get(path).json[name] for name in ("title", "addresses")}
    assert api.patch(path, {**read, "address_type": "auto"}).json["address_type"] == "auto"


def test_a_group_with_jobs_and_the_last_one_stay(api: Api) -> None:
    job = make_job()
    assert api.delete(f"/groups/{job.job_group}").status_code == 409
    api.delete(f"/jobs/{job.id}")
    assert api.delete(f"/groups/{job.job_group}").status_code == 409


@every_database
def test_groups_and_instances_are_listed_with_a_fixed_number_of_statements(api: Api) -> None:
    names = [f"app-{letter}" for letter in "edcba"]
    groups = [make_registered(name, f"http://127.0.0.1:{2000 + at}") for at, name in enumerate(names)]
    make_job(job_group=groups[0].id)
    first = api.get("/groups?limit=3").json
    rest = api.get(f"/groups?limit=3&cursor={first['next_cursor']}").json
    listed = first["items"] + rest["items"]
    assert [each["app_name"] for each in listed] == sorted(names)
    assert (listed[-1]["jobs"], listed[-1]["instances"]) == (1, {"listed": 1, "online": 1, "drained": 0})
    assert listed[0]["last_heartbeat_at"] is not None
    assert [each["app_name"] for each in api.get("/groups?app_name=PP-A").json["items"]] == ["app-a"]
    first = api.get("/instances?limit=3").json
    rest = api.get(f"/instances?limit=3&cursor={first['next_cursor']}").json
    assert [each["app_name"] for each in first["items"] + rest["items"]] == sorted(names)
    for path in ("/groups", "/instances", "/drains"):
        with statements() as for_one:
            api.get(f"{path}?limit=1")
        with statements() as for_all:
            api.get(path)
        assert len(for_all) == len(for_one) <= 9, path


@every_database
def test_an_instance_shows_its_state_and_is_drained_and_undrained(api: Api) -> None:
    group = make_registered("my-app", FIRST)
    path = f"/groups/{group.id}/instances"
    assert api.get(path).json["items"] == [
        {
            "group_id": group.id,
            "app_name": "my-app",
            "address": FIRST,
            "state": "online",
            "is_registered": True,
            "is_listed": True,
            "is_drained": False,
            "last_heartbeat_at": api.get(path).json["items"][0]["last_heartbeat_at"],
            "boot_id": "b1",
            "capabilities": ["durable-dedup"],
            "load": {"running": 0, "waiting": 0},
        }
    ]
    body = {"group_id": group.id, "address": FIRST}
    assert api.post("/drains?dry_run=true", body).status_code == 201
    assert all_rows(Drain) == []
    first, second = (api.post("/drains", body) for _ in range(2))
    assert (first.status_code, second.json) == (201, first.json)
    assert first.json["drained_by"] == "admin"
    assert api.get(path).json["items"][0]["is_drained"] is True
    assert api.get(f"/drains?group_id={group.id}").json["items"] == [first.json]
    drain = first.headers["Location"].rpartition("/drains")[2]
    assert api.get(f"/drains{drain}").json == first.json
    assert [api.delete(f"/drains{drain}").status_code for _ in range(2)] == [204, 404]
    assert len(all_rows(AuditEntry, action="group.undrain")) == 1
    assert fields(api.post("/drains", {**body, "address": "http://10.9.9.9:1"})) == ["address"]
    assert fields(api.post("/drains", {**body, "group_id": 99})) == ["group_id"]


def test_what_other_groups_have_is_not_visible(api: Api, api_of: ApiOf) -> None:
    mine, other = make_registered("app-mine", FIRST), make_registered("app-other", SECOND)
    limited = api_of(Right.VIEW, Right.OPERATE, group_ids=[mine.id])
    drain = api.post("/drains", {"group_id": other.id, "address": SECOND}).json
    assert [each["id"] for each in limited.get("/groups").json["items"]] == [mine.id]
    assert [each["group_id"] for each in limited.get("/instances").json["items"]] == [mine.id]
    assert limited.get(f"/instances?group_id={other.id}").json["items"] == []
    assert limited.get("/drains").json["items"] == []
    requests: list[tuple[str, str, int]] = [
        ("GET", f"/groups/{other.id}", 404),
        ("GET", f"/groups/{other.id}/instances", 404),
        ("GET", f"/drains/{drain['id']}", 404),
        ("DELETE", f"/drains/{drain['id']}", 404),
        ("DELETE", f"/groups/{mine.id}", 403),
    ]
    for method, path, status in requests:
        assert limited(method, path).status_code == status, path
    assert fields(limited.post("/drains", {"group_id": other.id, "address": SECOND})) == ["group_id"]
    assert limited.patch(f"/groups/{mine.id}", {"title": "x"}).status_code == 403
