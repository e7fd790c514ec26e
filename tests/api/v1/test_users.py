"""Users, nodes, report and change history in the API."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.orm import Session

from app.clock import DAY_MS, now_ms
from app.database.engine import session_scope
from app.domain.access.permissions import Right
from app.domain.enums import NodeKind
from app.models.right import Right as RightRow
from app.models.user import User
from app.services.report.reporting import midnight_ms
from app.settings.config import Config
from app.store.accounts import audit, users
from app.store.nodes import nodes
from app.store.runs import reporting
from app.store.runs.reporting import Counts
from tests.support.api_v1 import Api
from tests.support.factories import all_rows, make_group, make_job, only_row, save

ApiOf = Callable[..., Api]
ALICE = {"username": "alice", "password": "battery-staple-9"}


def test_a_user_is_added_changed_and_deleted(api: Api) -> None:
    group, other = make_group(), make_group(app_name="other")
    granted = [{"group_id": group.id, "rights": ["view", "operate"]}]
    made = api.post("/users", {**ALICE, "rights": granted})
    path = made.headers["Location"]
    assert made.status_code == 201, made.json
    assert made.json == {
        "id": 1,
        "username": "alice",
        "role": "normal",
        "disabled": False,
        "rights": granted,
        "by_provider": False,
        "weak_password": False,
    }
    etag = api.get(path).headers["ETag"]
    changed = api.patch(path, {"disabled": True}, headers={"If-Match": etag}).json
    assert (changed["disabled"], changed["rights"]) == (True, granted)
    assert api.patch(path, {"disabled": False}, headers={"If-Match": etag}).status_code == 412
    wider = [{"group_id": other.id, "rights": ["view", "operate", "edit", "glue"]}]
    assert api.patch(path, {"rights": wider}).json["rights"] == wider
    assert api.patch(path, {"role": "admin"}).json["rights"] == []
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404


@pytest.mark.parametrize(
    ("username", "body", "query", "stays"),
    [
        ("admin", {"password": "battery-staple-8"}, "", False),
        ("admin", {"password": "battery-staple-8"}, "?dry_run=true", True),
        ("admin", {"role": "admin"}, "", True),
        ("alice", {"password": "battery-staple-8"}, "", True),
    ],
)
def test_the_stored_first_password_is_deleted_once_another_one_is_set(
    api: Api, config: Config, username: str, body: dict[str, Any], query: str, stays: bool
) -> None:
    stored = config.home / "admin_password"
    stored.parent.mkdir(exist_ok=True)
    stored.write_text("first-password", encoding="utf-8")
    path = api.post("/users", {**ALICE, "username": username, "role": "admin"}).headers["Location"]
    assert api.patch(f"{path}{query}", body).status_code == 200
    assert stored.exists() is stays


def test_a_group_without_rights_is_no_permission_of_xxl_job(api: Api) -> None:
    group, other = make_group(), make_group(app_name="other")
    granted = [{"group_id": group.id, "rights": ["view"]}]
    none = {"group_id": other.id, "rights": []}
    path = api.post("/users", {**ALICE, "rights": [none, *granted]}).headers["Location"]
    assert (api.get(path).json["rights"], only_row(User).permission) == (granted, str(group.id))
    assert api.patch(path, {"rights": [{**none, "group_id": group.id}]}).json["rights"] == []
    assert (only_row(User).permission, all_rows(RightRow)) == ("", [])
    assert api.patch(path, {"rights": [{"group_id": 99, "rights": []}]}).status_code == 422


def test_users_are_listed_in_parts(api: Api) -> None:
    for name in ("carol", "alice", "bobby"):
        api.post("/users", {**ALICE, "username": name, "role": "admin" if name == "bobby" else "normal"})
    first = api.get("/users?limit=2").json
    rest = api.get(f"/users?limit=2&cursor={first['next_cursor']}").json
    names = [each["username"] for each in first["items"] + rest["items"]]
    assert (names, rest["next_cursor"]) == (["alice", "bobby", "carol"], None)
    assert [each["username"] for each in api.get("/users?role=admin").json["items"]] == ["bobby"]
    assert [each["username"] for each in api.get("/users?username=ALI").json["items"]] == ["alice"]
    assert ALICE["password"] not in api.get("/users").text


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["username", "password"]),
        ({"username": "bob", "password": "x"}, ["username"]),
        ({"username": "bob smith", "password": "password1"}, ["username", "password"]),
        ({**ALICE, "rights": [{"group_id": 9, "rights": ["view"]}]}, ["rights"]),
        ({**ALICE, "rights": [{"group_id": 1, "rights": ["fly"]}]}, ["rights.0.rights.0"]),
        ({**ALICE, "rights": [{"group_id": 1, "rights": [word]} for word in ("edit", "view")]}, ["rights"]),
    ],
)
def test_a_wrong_user_is_refused(api: Api, body: dict[str, Any], fields: list[str]) -> None:
    answer = api.post("/users", body)
    assert (answer.status_code, [each["field"] for each in answer.json["errors"]]) == (422, fields)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"password": ""}, ["password"]),
        ({"password": " " * 10, "must_change_password": False}, ["password"]),
        ({"must_change_password": True}, ["must_change_password"]),
        ({"must_change_password": False, "disabled": True}, ["must_change_password"]),
    ],
)
def test_what_would_not_change_a_password_is_refused(
    api: Api, body: dict[str, Any], fields: list[str]
) -> None:
    path = api.post("/users", ALICE).headers["Location"]
    answer = api.patch(path, body)
    assert (answer.status_code, [each["field"] for each in answer.json["errors"]]) == (422, fields)
    assert api.patch(path, {"password": "staple-battery-9", "must_change_password": True}).status_code == 200


def test_the_last_administrator_stays(api: Api) -> None:
    path = api.post("/users", {**ALICE, "role": "admin"}).headers["Location"]
    for answer in (
        api.delete(path),
        api.patch(path, {"role": "normal"}),
        api.patch(path, {"disabled": True}),
    ):
        assert (answer.status_code, answer.json["detail"]) == (
            409,
            "The last administrator cannot be changed or removed",
        )


@pytest.mark.databases("mariadb", "postgresql")
def test_a_change_keeps_what_another_one_changes_at_the_same_time(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has one writer at a time."""
    for name in ("admin", "alice"):
        path = api.post("/users", {**ALICE, "username": name, "role": "admin"}).headers["Location"]
    lock = users.lock_enabled_admins

    def change_first(session: Session) -> list[User]:
        monkeypatch.undo()
        assert api.patch(path, {"role": "normal"}).status_code == 200
        return lock(session)

    monkeypatch.setattr(users, "lock_enabled_admins", change_first)
    changed = api.patch(path, {"disabled": True}).json
    assert (changed["role"], changed["disabled"]) == ("normal", True)


def test_a_user_with_a_role_of_its_own_is_a_normal_one(api: Api) -> None:
    """XXL-JOB stores any role; all but 1 are normal users."""
    user = save(User(username="robin", password="-", role=2, permission=""))
    changed = api.patch(f"/users/{user.id}", {"disabled": True}).json
    assert (changed["role"], changed["disabled"]) == ("normal", True)


def test_of_two_users_added_at_the_same_time_the_second_is_refused(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api.post("/users", ALICE).status_code == 201
    monkeypatch.setattr(users, "is_name_taken", lambda *_: False)
    answer = api.post("/users", ALICE)
    assert (answer.status_code, answer.json["detail"]) == (422, "username: The user name is taken")


def test_only_administrators_see_users_nodes_and_changes(api_of: ApiOf) -> None:
    normal = api_of(*Right)
    for path in ("/users", "/users/1", "/nodes", "/audit"):
        assert normal.get(path).status_code == 403, path


def test_nodes_are_listed_with_their_state(api: Api) -> None:
    at_ms = now_ms()
    with session_scope() as session:
        for name, started_ms in (("east", at_ms), ("west", at_ms - 60_000)):
            nodes.start_node(
                session, name, NodeKind.WORKERS, version="1.0", token_fingerprint="secret", now_ms=started_ms
            )
    answer = api.get("/nodes")
    assert [(each["name"], each["alive"], each["kind"]) for each in answer.json["items"]] == [
        ("east", True, "workers"),
        ("west", False, "workers"),
    ]
    assert "secret" not in answer.text


def test_the_report_has_every_day_of_a_range(api_of: ApiOf, config: Config) -> None:
    job, other = make_job(), make_job()
    with session_scope() as session:
        for back in (0, 1):
            counts = {job.job_group: Counts(1, 2, 3), other.job_group: Counts(0, 10, 0)}
            day_ms = midnight_ms(now_ms(), config.time_zone, back)
            reporting.save_report(session, day_ms, counts, now_ms=now_ms())
    reader = api_of(Right.VIEW, group_ids=[job.job_group])
    report = reader.get("/report").json
    assert (len(report["days"]), report["time_zone"], report["uncounted_until"]) == (
        30,
        config.time_zone,
        None,
    )
    today = report["days"][-1]
    assert today == {"day": today["day"], "succeeded": 2, "failed": 3, "running": 1}
    assert report["days"][0] == {"day": report["days"][0]["day"], "succeeded": 0, "failed": 0, "running": 0}
    one = reader.get(f"/report?from={today['day']}&to={today['day']}").json
    assert one["days"] == [today]
    summary = reader.get("/report/summary").json
    assert (summary["groups"], summary["failed_today"], summary["scheduling"]) == (1, 3, False)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=2024-05-02&to=2024-05-01", "from"),
        ("from=2020-01-01&to=2024-05-01", "from"),
        ("from=yesterday", "from"),
        ("to=9999-12-31", "to"),
    ],
)
def test_a_wrong_range_is_refused(api: Api, query: str, field: str) -> None:
    answer = api.get(f"/report?{query}")
    assert (answer.status_code, [each["field"] for each in answer.json["errors"]]) == (422, [field])


def test_the_change_history_names_the_token(api: Api) -> None:
    api.post("/users", ALICE)
    (entry,) = api.get("/audit?action=user.").json["items"]
    assert (entry["action"], entry["object_type"], entry["object_id"]) == ("user.add", "user", 1)
    assert (entry["via"], entry["user_id"]) == ("token admin", None)
    assert ALICE["password"] not in str(entry)
    assert api.get("/audit?object_type=user&object_id=1").json["items"] == [entry]
    assert [each["field"] for each in api.get("/audit?object_id=1").json["errors"]] == ["object_type"]


def test_the_change_history_is_listed_in_parts(api: Api) -> None:
    with session_scope() as session:
        row = {"username": "ann", "action": "job.start"}
        audit.insert_entries(session, [{**row, "at_ms": now_ms() - DAY_MS + number} for number in range(5)])
    found, cursor = [], ""
    for _part in range(3):
        part = api.get(f"/audit?action=job.&limit=2&cursor={cursor}").json
        found += [each["id"] for each in part["items"]]
        cursor = part["next_cursor"]
    assert (cursor, len(found), found) == (None, 5, sorted(found, reverse=True))
    assert api.get("/audit?cursor=nonsense").status_code == 422
