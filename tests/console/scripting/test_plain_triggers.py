"""Plain triggers: what they share with the view, what goes on to it, and access that ends at once."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import delete, update
from sqlalchemy.exc import OperationalError

from app.console.scripting import plain_triggers
from app.console.web.current import COOKIE
from app.database.engine import session_scope
from app.domain.enums import WeakPassword
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.session import LoginSession
from app.models.user import User
from app.services.accounts.login import LAST_SEEN_EVERY_MS
from app.store.accounts import rights
from tests.support.console import Console, add_group, add_job, add_user
from tests.support.factories import all_rows

PATH = "/jobinfo/trigger"
#: columns of two runs, one after the other
VARYING = ("id", "fire_key", "due_time", "logical_ms")
SUCCESS = {"code": 200, "msg": None, "content": None}


@pytest.fixture
def views(app: Flask) -> list[str]:
    """Triggers that the view has answered."""
    calls: list[str] = []
    endpoint = "scripting_jobs.trigger"
    view = app.view_functions[endpoint]

    def counting(**arguments: Any) -> Any:
        calls.append(endpoint)
        return view(**arguments)

    app.view_functions[endpoint] = counting
    return calls


def form(job_id: int, **more: Any) -> dict[str, Any]:
    return {"id": job_id, "executorParam": "day=1 ä", "addressList": "", **more}


def members(row: Any, *left_out: str) -> dict[str, Any]:
    names = [column.name for column in row.__table__.columns if column.name not in left_out]
    return {name: getattr(row, name) for name in names}


def test_a_plain_trigger_does_what_the_view_does(admin: Console, views: list[str]) -> None:
    job_id = add_job(add_group())
    plain, viewed = admin.post(PATH, form(job_id)), admin.post(PATH + "?x=1", form(job_id))
    assert len(views) == 1
    assert plain.get_json() == viewed.get_json() == SUCCESS
    assert [header for header in plain.headers if header[0] != "X-Request-Id"] == [
        header for header in viewed.headers if header[0] != "X-Request-Id"
    ]
    one, other = all_rows(Fire)
    assert members(one, *VARYING) == members(other, *VARYING)
    assert plain.headers["X-Request-Id"] in one.fire_key
    one, other = (entry for entry in all_rows(AuditEntry) if entry.action == "job.trigger")
    assert members(one, "id", "at_ms") == members(other, "id", "at_ms")


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({"addressList": "http://127.0.0.1:1/"}, {}),
        ({"id": ""}, {}),
        ({"id": "0"}, {}),
        ({"other": "1"}, {}),
        ({"id": ["7", "8"]}, {}),
        ({"executorParam": "x" * 70_000}, {}),
        ({"executorParam": "\0"}, {}),
        ({}, {"query_string": "id=1"}),
        ({}, {"headers": {"Origin": "http://localhost"}}),
        ({}, {"headers": {"Sec-Fetch-Site": "same-origin"}}),
        ({}, {"content_type": "multipart/form-data"}),
    ],
)
def test_other_requests_go_on_to_the_view(
    admin: Console, views: list[str], fields: dict[str, Any], options: dict[str, Any]
) -> None:
    admin.post(PATH, form(add_job(add_group())) | fields, **options)
    assert len(views) == 1


@pytest.mark.parametrize("headers", [{"Origin": "http://elsewhere"}, {"Sec-Fetch-Site": "cross-site"}])
def test_requests_of_other_sites_are_refused(admin: Console, headers: dict[str, str]) -> None:
    assert admin.post(PATH, form(add_job(add_group())), headers=headers).status_code == 403
    assert all_rows(Fire) == []


def test_each_login_has_its_own_rights(console: Console, views: list[str]) -> None:
    own, foreign = add_job(group_id := add_group()), add_job(add_group("other-app"))
    add_user("bea", [group_id])
    console.log_in("bea")
    answers = [console.post(PATH, form(job_id)).get_json()["msg"] for job_id in (foreign, own, 4711)]
    assert answers == ["Job id is invalid", None, "Job id is invalid"]
    assert len(views) == 2
    stranger = console.another()
    assert stranger.post(PATH, form(own)).status_code == 302
    stranger.client.set_cookie(COOKIE, 64 * "0")
    assert stranger.post(PATH, form(own)).status_code == 302
    assert [fire.job_id for fire in all_rows(Fire)] == [own]


def end_login(user_id: int) -> None:
    with session_scope() as session:
        session.execute(delete(LoginSession).where(LoginSession.user_id == user_id))


def change_user(**values: Any) -> Callable[[int], None]:
    def change(user_id: int) -> None:
        with session_scope() as session:
            session.execute(update(User).where(User.id == user_id).values(**values))

    return change


def take_right(user_id: int) -> None:
    with session_scope() as session:
        group_id = int(session.get_one(User, user_id).permission or 0)
        rights.replace_rights(session, user_id, {group_id: "view"})


@pytest.mark.parametrize(
    "change",
    [end_login, change_user(disabled=1), change_user(weak_password=WeakPassword.REFUSED), take_right],
    ids=["login", "disabled", "password", "right"],
)
def test_access_ends_with_the_next_request(console: Console, change: Callable[[int], None]) -> None:
    job_id = add_job(group_id := add_group())
    user_id = add_user("bea", [group_id])
    console.log_in("bea")
    assert console.post(PATH, form(job_id)).get_json() == SUCCESS
    change(user_id)
    assert console.post(PATH, form(job_id)).get_json(silent=True) != SUCCESS
    assert len(all_rows(Fire)) == 1


def test_the_view_notes_that_a_login_is_used(admin: Console, views: list[str]) -> None:
    job_id = add_job(add_group())
    with session_scope() as session:
        earlier = LoginSession.last_seen_ms - LAST_SEEN_EVERY_MS - 1
        session.execute(update(LoginSession).values(last_seen_ms=earlier))
    for _ in range(2):
        assert admin.post(PATH, form(job_id)).get_json() == SUCCESS
    assert len(views) == 1


def test_a_trigger_of_unknown_outcome_is_not_repeated(
    admin: Console, views: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_arguments: object, **_more: object) -> None:
        raise OperationalError("COMMIT", None, Exception("connection lost"))

    monkeypatch.setattr(plain_triggers, "trigger_jobs", lose)
    answer = admin.post(PATH, form(add_job(add_group()))).get_json()
    assert (answer["code"], len(all_rows(Fire)), views) == (500, 0, [])
