"""Alarms, channels and mutes in the API."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.api.v1.schemas.alarms import ChannelSettings, KindName
from app.database.engine import read_scope
from app.domain.access.permissions import Right
from app.domain.alarms.channel_kinds import KINDS, ChannelKind
from app.models.alarm import Alarm
from app.models.channel import AlarmChannel
from app.models.mute import Mute
from app.services.alarms.targets import settings_of
from app.store.alarms import channels
from tests.support.api_v1 import Api
from tests.support.factories import T0, make_job, make_log, only_row, save

ApiOf = Callable[..., Api]
HOOK = "http://127.0.0.1:9/secret-path"


def test_the_alarms_of_visible_groups_are_listed_in_parts(api_of: ApiOf) -> None:
    job, other = make_job(), make_job()
    for number, each in enumerate((job, other, job, job)):
        outcome = '{"mail ops@example.com": "ok", "channel Slack": "refused"}' if number == 3 else None
        log = make_log(each)
        save(Alarm(job_id=each.id, log_id=log.id, reason="failed", created_ms=T0 + number, outcome=outcome))
    reader = api_of(Right.VIEW, group_ids=[job.job_group])
    first = reader.get("/alarms?limit=2").json
    rest = reader.get(f"/alarms?limit=2&cursor={first['next_cursor']}").json
    assert [each["run_id"] for each in first["items"] + rest["items"]] == ["4", "3", "1"]
    assert rest["next_cursor"] is None
    assert first["items"][0] == {
        "id": 4,
        "job_id": job.id,
        "run_id": "4",
        "reason": "failed",
        "state": "waiting",
        "attempts": 0,
        "created_at": "2024-05-01T03:04:05.003Z",
        "targets": [
            {"target": "mail ops@example.com", "problem": None},
            {"target": "channel Slack", "problem": "refused"},
        ],
        "mute_id": None,
    }
    assert reader.get(f"/alarms?job_id={other.id}").status_code == 404
    assert reader.get("/alarms?state=sent").json["items"] == []
    found = reader.get("/alarms?from=2024-05-01T03:04:05.002Z&to=2024-05-01T03:04:05.002Z").json["items"]
    assert [each["run_id"] for each in found] == ["3"]


def test_a_mute_ends_when_it_was_told_to_or_is_deleted(api_of: ApiOf) -> None:
    job, other = make_job(), make_job()
    operator = api_of(Right.OPERATE, group_ids=[job.job_group])
    made = operator.post("/mutes", {"job_id": job.id, "until": "2030-01-31T00:00:00Z", "reason": "Night"})
    path = made.headers["Location"]
    assert (made.status_code, path) == (201, f"/mutes/{made.json['id']}")
    assert made.json["until"] == "2030-01-31T00:00:00.000Z"
    assert operator.get(path).json == made.json
    group = operator.post("/mutes", {"group_id": job.job_group}).json
    assert (group["until"], group["job_id"], group["name"]) == (None, None, "Demo")
    part = operator.get("/mutes?limit=1").json
    rest = operator.get(f"/mutes?limit=1&cursor={part['next_cursor']}").json
    assert [part["items"][0]["id"], rest["items"][0]["id"], rest["next_cursor"]] == [
        made.json["id"],
        group["id"],
        None,
    ]
    assert operator.delete(path).status_code == 204
    assert operator.get(path).status_code == 404
    assert operator.post("/mutes", {"job_id": other.id}).status_code == 404
    reader = api_of(Right.VIEW, name="reader")
    assert reader.delete(f"/mutes/{group['id']}").status_code == 403
    assert len(reader.get("/mutes").json["items"]) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        ({"job_id": 1, "group_id": 1}, "body"),
        ({"job_id": 1, "until": "2020-01-01T00:00:00Z"}, "until"),
        ({"job_id": 1, "reason": "x" * 201}, "reason"),
    ],
)
def test_a_wrong_mute_is_refused(api: Api, body: Any, field: str) -> None:
    make_job()
    answer = api.post("/mutes", body)
    assert (answer.status_code, [each["field"] for each in answer.json["errors"]]) == (422, [field])


def test_the_settings_of_a_channel_are_those_of_its_kind() -> None:
    fields = {each.name for kind in KINDS.values() for each in kind.fields}
    assert set(ChannelSettings.model_fields) == fields
    assert set(KindName.__args__) == {kind.value for kind in ChannelKind}


def test_a_channel_is_added_changed_and_deleted(api: Api) -> None:
    job = make_job()
    body = {"name": "Hook", "kind": "webhook", "settings": {"url": HOOK}}
    made = api.post("/channels", body)
    path = made.headers["Location"]
    assert (made.status_code, made.json["settings"]["url"], made.json["for_all"]) == (201, "***", True)
    assert made.json["daily"] is False
    change = {
        "name": "Hook 2",
        "daily": True,
        "for_all": False,
        "job_ids": [job.id],
        "settings": {"url": "***"},
    }
    changed = api.patch(
        path, change, headers={"If-Match": made.headers.get("ETag") or api.get(path).headers["ETag"]}
    )
    assert changed.status_code == 200, changed.json
    assert (changed.json["name"], changed.json["for_all"], changed.json["job_ids"]) == (
        "Hook 2",
        False,
        [job.id],
    )
    assert "secret-path" not in api.get(path).text + api.get("/channels").text
    assert settings_of(only_row(AlarmChannel)) == {"url": HOOK}
    assert api.patch(path, {"settings": {"url": HOOK + "2"}}).json["daily"] is True
    assert settings_of(only_row(AlarmChannel)) == {"url": HOOK + "2"}
    assert [each["name"] for each in api.get("/channels").json["items"]] == ["Hook 2"]
    assert api.delete(path).status_code == 204
    assert api.get(path).status_code == 404


@pytest.mark.databases("mariadb", "postgresql")
def test_a_change_of_a_channel_keeps_what_another_one_changes_at_the_same_time(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has one writer at a time."""
    job = make_job()
    body = {"name": "Hook", "kind": "webhook", "settings": {"url": HOOK}}
    path = api.post("/channels", body).headers["Location"]
    lock = channels.lock_channels

    def change_first(session: Session) -> list[AlarmChannel]:
        monkeypatch.undo()
        assert api.patch(path, {"for_all": False, "job_ids": [job.id]}).status_code == 200
        return lock(session)

    monkeypatch.setattr(channels, "lock_channels", change_first)
    changed = api.patch(path, {"name": "Hook 2"}).json
    assert (changed["name"], changed["for_all"], changed["job_ids"]) == ("Hook 2", False, [job.id])


def test_an_optional_secret_is_removed_by_null(api: Api) -> None:
    settings = {"server": "http://127.0.0.1:9", "topic": "jobs", "token": "tk_1"}
    path = api.post("/channels", {"name": "n", "kind": "ntfy", "settings": settings}).headers["Location"]
    api.patch(path, {"settings": {"topic": "other"}})
    assert settings_of(only_row(AlarmChannel)) == settings | {"topic": "other"}
    assert api.patch(path, {"settings": {"token": None}}).json["settings"]["token"] is None
    assert settings_of(only_row(AlarmChannel))["token"] == ""
    api.patch(path, {"settings": {"token": "tk_2"}})
    moved = api.patch(path, {"settings": {"server": "http://127.0.0.2:9"}})
    assert [each["field"] for each in moved.json["errors"]] == ["settings.token"]


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        ({"settings": {"addresses": "no-address"}}, ["settings.addresses"]),
        ({"settings": {"url": HOOK}}, ["settings.url"]),
        ({"for_all": False}, ["group_ids"]),
        ({"group_ids": [9], "job_ids": [9]}, ["group_ids", "job_ids"]),
        ({"for_all": True, "group_ids": [1]}, ["for_all"]),
        ({"for_all": True, "job_ids": [1], "name": ""}, ["name", "for_all"]),
        ({"for_all": False, "group_ids": [9], "job_ids": [9]}, ["group_ids", "job_ids"]),
        ({"kind": "fax"}, ["kind"]),
        ({"settings": {"number": "1"}}, ["settings.number"]),
    ],
)
def test_a_wrong_channel_is_refused(api: Api, more: dict[str, Any], fields: list[str]) -> None:
    body = {"name": "Mail", "kind": "mail", "settings": {"addresses": "ops@example.com"}, **more}
    answer = api.post("/channels", body)
    assert (answer.status_code, [each["field"] for each in answer.json["errors"]]) == (422, fields)


def test_groups_or_jobs_limit_a_channel_to_them(api: Api) -> None:
    job = make_job()
    body = {"name": "Hook", "kind": "webhook", "settings": {"url": HOOK}}
    made = api.post("/channels", {**body, "group_ids": [job.job_group]})
    assert (made.json["for_all"], made.json["group_ids"]) == (False, [job.job_group])
    path = made.headers["Location"]
    assert api.patch(path, {"for_all": True, "group_ids": [job.job_group]}).status_code == 422
    for change, scopes in (
        ({"for_all": True}, (True, [], [])),
        ({"name": "Hook 2"}, (True, [], [])),
        ({"group_ids": [], "job_ids": []}, (True, [], [])),
        ({"job_ids": [job.id]}, (False, [], [job.id])),
        ({"group_ids": [job.job_group]}, (False, [job.job_group], [job.id])),
        ({"job_ids": []}, (False, [job.job_group], [])),
    ):
        changed = api.patch(path, change).json
        assert (changed["for_all"], changed["group_ids"], changed["job_ids"]) == scopes, change
    same = {name: changed[name] for name in ("for_all", "group_ids", "job_ids")}
    assert api.patch(path, same).json | {"updated_at": ""} == changed | {"updated_at": ""}
    assert [each["field"] for each in api.patch(path, {"group_ids": [99]}).json["errors"]] == ["group_ids"]


def test_a_test_message_is_sent_unless_it_is_a_dry_run(api: Api) -> None:
    body = {"name": "Hook", "kind": "webhook", "settings": {"url": HOOK}}
    path = api.post("/channels", body).headers["Location"] + "/test"
    dry = api.post(f"{path}?dry_run=true").json
    assert dry == {"targets": ["channel Hook"], "results": [], "unmailed": []}
    (result,) = api.post(path).json["results"]
    assert result["target"] == "channel Hook"
    assert result["problem"]


def test_channels_are_for_administrators(api_of: ApiOf) -> None:
    assert api_of(*Right).get("/channels").status_code == 403


def test_a_dry_run_keeps_no_mute(api: Api) -> None:
    job = make_job()
    answer = api.post("/mutes?dry_run=true", {"job_id": job.id})
    assert (answer.status_code, answer.json["job_id"]) == (201, job.id)
    with read_scope() as session:
        assert session.scalar(select(Mute)) is None
