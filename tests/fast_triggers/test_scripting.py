"""Plain triggers of scripts: what they share with the view, and what never takes the quick path."""

from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from app.console.web.current import COOKIE
from app.database.engine import session_scope
from app.database.rows import bulk
from app.fast_triggers.access_cache import KEPT_MS, RENEWED_MS
from app.fast_triggers.scripting import ScriptTriggers
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.session import LoginSession
from app.models.user import User
from app.store.accounts import rights
from tests.console.conftest import CONTEXT, Console, add_group, add_job, add_user
from tests.factories import all_rows
from tests.fast_triggers.conftest import Clock, Views

PATH = "/jobinfo/trigger"
SUCCESS = {"code": 200, "msg": None, "content": None}
VIEW_RIGHT = {"code": 500, "msg": "permission denied", "content": None}

pytestmark = pytest.mark.usefixtures("clock", "server")


def form(job_id: int, **more: Any) -> dict[str, Any]:
    return {"id": job_id, "executorParam": "day=1 ä", "addressList": "", **more}


def members(row: Any, *left_out: str) -> dict[str, Any]:
    return {
        column.name: getattr(row, column.name)
        for column in row.__table__.columns
        if column.name not in left_out
    }


def test_a_trigger_like_one_let_through_does_the_same_without_its_view(admin: Console, views: Views) -> None:
    job_id = add_job(add_group())
    first = admin.post(PATH, form(job_id))
    second = admin.post(PATH, form(job_id))
    assert (views.count, second.get_json()) == (1, SUCCESS)
    ids = {"X-Request-Id"}
    assert [each for each in first.headers if each[0] not in ids] == [
        each for each in second.headers if each[0] not in ids
    ]
    one, other = all_rows(Fire)
    assert members(one, "id", "fire_key", "due_time") == members(other, "id", "fire_key", "due_time")
    assert second.headers["X-Request-Id"] in other.fire_key
    one, other = (entry for entry in all_rows(AuditEntry) if entry.action == "job.trigger")
    assert members(one, "id", "at_ms") == members(other, "id", "at_ms")


@pytest.mark.parametrize(
    ("sent", "options"),
    [
        ({"addressList": "http://127.0.0.1:1/"}, {}),
        ({"id": ""}, {}),
        ({"id": "0"}, {}),
        ({"other": "1"}, {}),
        ({"id": ["7", "8"]}, {}),
        ({"executorParam": "x" * 513}, {}),
        ({"executorParam": "\0"}, {}),
        ({}, {"query_string": "id=1"}),
        ({}, {"headers": {"Origin": "http://localhost"}}),
        ({}, {"headers": {"Origin": "http://elsewhere"}}),
        ({}, {"headers": {"Sec-Fetch-Site": "cross-site"}}),
        ({}, {"headers": {"Host": "elsewhere"}}),
        ({}, {"environ_base": {"REMOTE_ADDR": "10.0.0.7"}}),
        ({}, {"content_type": "multipart/form-data"}),
    ],
)
def test_other_requests_go_through_the_view(
    admin: Console, views: Views, sent: dict[str, Any], options: dict[str, Any]
) -> None:
    job_id = add_job(add_group())
    admin.post(PATH, form(job_id))
    admin.post(PATH, form(job_id) | sent, **options)
    assert views.count == 2


def test_a_pass_is_of_one_login(admin: Console, views: Views) -> None:
    job_id = add_job(add_group())
    admin.post(PATH, form(job_id))
    another = admin.another()
    assert another.post(PATH, form(job_id)).status_code == 302
    another.client.set_cookie(COOKIE, 64 * "0")
    assert another.post(PATH, form(job_id)).status_code == 302
    assert another.log_in().post(PATH, form(job_id)).get_json() == SUCCESS
    assert views.count == 4


def test_a_pass_lasts_a_second_and_is_renewed_by_one_request(
    admin: Console, views: Views, clock: Clock
) -> None:
    job_id = add_job(add_group())
    counts = []
    for step_ms in (0, 1, RENEWED_MS, 0, KEPT_MS, 0):
        clock.now_ms += step_ms
        admin.post(PATH, form(job_id))
        counts.append(views.count)
    assert counts == [1, 1, 2, 2, 3, 3]


def log_out(console: Console, _user_id: int) -> None:
    console.post("/logout")


def end_login(_console: Console, user_id: int) -> None:
    with session_scope() as session:
        session.query(LoginSession).filter_by(user_id=user_id).delete()


def disable(_console: Console, user_id: int) -> None:
    with session_scope() as session:
        session.get_one(User, user_id).disabled = 1


def take_right(_console: Console, user_id: int) -> None:
    with session_scope() as session:
        group_id = int(session.get_one(User, user_id).permission or 0)
        rights.replace_rights(session, user_id, {group_id: "view"})


@pytest.mark.parametrize(
    ("change", "answer"), [(log_out, None), (end_login, None), (disable, None), (take_right, VIEW_RIGHT)]
)
def test_a_pass_ends_with_the_login_and_the_right(
    console: Console, views: Views, change: Any, answer: Any
) -> None:
    job_id = add_job(group_id := add_group())
    user_id = add_user("bea", [group_id])
    console.log_in("bea")
    assert [console.post(PATH, form(job_id)).get_json() for _ in range(2)] == [SUCCESS, SUCCESS]
    assert views.count == 1
    change(console, user_id)
    refused = console.post(PATH, form(job_id))
    assert refused.get_json(silent=True) == answer
    assert refused.status_code == (302 if answer is None else 200)
    assert len(all_rows(Fire)) == 2


def test_a_pass_does_not_open_other_jobs(console: Console, views: Views) -> None:
    own, foreign = add_job(group_id := add_group()), add_job(add_group("other-app"))
    add_user("bea", [group_id])
    console.log_in("bea")
    console.post(PATH, form(own))
    answers = [console.post(PATH, form(job_id)).get_json()["msg"] for job_id in (foreign, own, 4711)]
    assert answers == ["Job id is invalid", None, "Job id is invalid"]
    assert [fire.job_id for fire in all_rows(Fire)] == [own, own]
    assert [entry.action for entry in all_rows(AuditEntry)].count("job.trigger") == 2


def test_a_trigger_of_unknown_outcome_is_not_tried_again(
    admin: Console, views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = add_job(add_group())
    admin.post(PATH, form(job_id))

    tries = []

    def lose(*_: object) -> None:
        tries.append(1)
        raise OperationalError("COMMIT", None, Exception("connection lost"))

    monkeypatch.setattr(ScriptTriggers, "carry_out", lose)
    answer = admin.post(PATH, form(job_id)).get_json()
    assert (answer["code"], len(all_rows(Fire)), len(tries)) == (500, 1, 1)


def test_the_quick_path_is_only_at_its_path(admin: Console, views: Views) -> None:
    job_id = add_job(add_group())
    admin.post(PATH, form(job_id))
    for path in (f"{CONTEXT}//jobinfo/trigger", f"{CONTEXT}/jobinfo/trigger/", PATH):
        admin.client.post(path, data=form(job_id))
    assert views.count == 4


def test_a_change_handed_to_the_driver_ends_passes(admin: Console, views: Views) -> None:
    job_id = add_job(add_group())
    admin.post(PATH, form(job_id))
    with session_scope() as session:
        (user,) = session.query(User)
        bulk.update_many(session, User, [{"id": user.id, "disabled": 1}])
    assert admin.post(PATH, form(job_id)).status_code == 302
