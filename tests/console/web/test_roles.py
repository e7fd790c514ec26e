"""Roles: every endpoint that needs a right, as each kind of user, on visible and foreign objects.

A foreign object answers like a missing one; a missing right is reported; a refused request changes no table.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from flask import Flask
from sqlalchemy import select
from werkzeug.test import TestResponse

from app.clock import now_ms
from app.console import POLICY
from app.console.web.access import Access
from app.db import read_scope, session_scope
from app.domain.permissions import Right
from app.models.base import Base
from app.models.drain import Drain
from app.models.favourite import Favourite
from app.models.fire import Fire
from app.models.glue import GlueVersion
from app.models.group import Group
from app.models.job import Job
from app.models.log import JobLog
from app.models.mute import Mute
from app.models.right import Right as RightRow
from app.models.tag import JobTag
from app.models.user import User
from app.services.jobs import glue
from tests.console.conftest import ACTOR, CONTEXT, Console, add_group, add_job, add_user
from tests.console.pages import token_of
from tests.console.scripting.test_jobs import BEAN
from tests.console.scripting.test_others import add_log
from tests.console.tasks import result_of

#: rights do not depend on the database
pytestmark = pytest.mark.databases("sqlite")

#: an unused id
MISSING = 987_654
TABLES: tuple[type[Base], ...] = (
    Fire,
    GlueVersion,
    Group,
    Job,
    JobLog,
    JobTag,
    Favourite,
    Drain,
    Mute,
    User,
    RightRow,
)
FORM = {
    "job_desc": "mine",
    "author": "eve",
    "schedule_type": "NONE",
    "glue_type": "BEAN",
    "executor_handler": "x",
    "executor_route_strategy": "FIRST",
    "misfire_strategy": "DO_NOTHING",
    "executor_block_strategy": "SERIAL_EXECUTION",
    "delivery": "auto",
    "retry_backoff_percent": "100",
}
IMPORTED = {"jobDesc": "mine", "author": "eve", "executorHandler": "x"}
CODE = {"glueSource": "id", "glueRemark": "four", "glue_source": "id", "glue_remark": "four"}


class Place(NamedTuple):
    """Objects of a group: a job of each kind, a run and a version; all ids may be MISSING."""

    group: int
    app_name: str
    job: int
    code: int
    log: int
    version: int


class Call(NamedTuple):
    """One request; ``path`` and the values of ``form`` may contain names of Place fields."""

    right: Right
    path: str
    #: None: by GET
    form: dict[str, Any] | None = None


def bulk(right: Right, act: str) -> list[Call]:
    return [
        Call(right, f"/jobinfo/bulk/{act}?id={{job}}"),
        Call(right, f"/jobinfo/bulk/{act}?id={{job}}", {"job_group": "{group}", "tag": "x"}),
    ]


def confirmed(right: Right, path: str, **form: str) -> list[Call]:
    """A confirmation page and its form."""
    return [Call(right, path), Call(right, path, form)]


VIEW, RUN, EDIT, WRITE = Right.VIEW, Right.OPERATE, Right.EDIT, Right.GLUE
BOUNDS = {"job_group": "{group}", "job_id": "0", "kind": "9"}
CALLS: dict[str, list[Call]] = {
    "jobs.show": [Call(VIEW, "/jobinfo/{job}"), Call(VIEW, "/jobinfo/{code}")],
    "jobs.next_times": [Call(VIEW, "/jobinfo/{job}/next-times")],
    "jobs.nodes": [Call(VIEW, "/jobinfo/{job}/nodes")],
    "jobs.add": [Call(EDIT, "/jobinfo/new", FORM | {"job_group": "{group}"})],
    "jobs.copy": [
        *confirmed(EDIT, "/jobinfo/{job}/copy"),
        Call(EDIT, "/jobinfo/{job}/copy", FORM | {"job_group": "{group}"}),
    ],
    "jobs.edit": [
        Call(EDIT, "/jobinfo/{job}/edit"),
        Call(EDIT, "/jobinfo/{job}/edit", FORM | {"job_group": "{group}"}),
    ],
    "job_actions.start": confirmed(RUN, "/jobinfo/{job}/start"),
    "job_actions.stop": confirmed(RUN, "/jobinfo/{job}/stop"),
    "job_actions.run": confirmed(RUN, "/jobinfo/{job}/run") + confirmed(RUN, "/jobinfo/{job}/run?log={log}"),
    "job_actions.kill": confirmed(RUN, "/jobinfo/{job}/kill"),
    "job_actions.remove": confirmed(EDIT, "/jobinfo/{job}/delete"),
    "job_bulk.bulk": bulk(RUN, "start")
    + bulk(RUN, "stop")
    + bulk(EDIT, "move")
    + bulk(EDIT, "tag")
    + bulk(EDIT, "untag")
    + bulk(EDIT, "delete"),
    "favourites.star": [
        Call(VIEW, "/jobinfo/favourite", {"add": "{job}"}),
        Call(VIEW, "/jobinfo/favourite", {"remove": "{job}"}),
    ],
    "job_transfer.export": [Call(VIEW, "/jobinfo/export?id={job}")],
    "job_transfer.import_file": [
        Call(
            EDIT,
            "/jobinfo/import",
            {"apply": "1", "text": json.dumps({"format": 1, "jobs": [IMPORTED | {"appname": "{app_name}"}]})},
        )
    ],
    "glue.edit": confirmed(WRITE, "/jobcode?jobId={code}", **CODE)
    + confirmed(WRITE, "/jobcode?jobId={code}&version={version}", **CODE),
    "glue_versions.diff": [Call(WRITE, "/jobcode/diff?jobId={code}&old={version}&new=0")],
    "glue_versions.restore": confirmed(WRITE, "/jobcode/restore?jobId={code}&version={version}", **CODE),
    "glue.newest": [Call(WRITE, "/jobcode/newest?jobId={code}&after=0")],
    "logs.show": [Call(VIEW, "/joblog/{log}")],
    "logs.message": [Call(VIEW, "/joblog/{log}/note")],
    "logs.lines": [Call(VIEW, "/joblog/{log}/lines")],
    "logs.raw": [Call(VIEW, "/joblog/{log}/log.txt")],
    "logs.kill": confirmed(RUN, "/joblog/{log}/kill"),
    "log_cleaning.clean": [
        Call(RUN, "/joblog/clean", BOUNDS),
        Call(RUN, "/joblog/clean", BOUNDS | {"up_to_id": "999999", "total": "1"}),
        Call(RUN, "/joblog/clean", BOUNDS | {"job_group": "0", "job_id": "{job}", "up_to_id": "999999"}),
    ],
    "group_page.show": [Call(VIEW, "/jobgroup/{group}")],
    "group_page.drain": confirmed(RUN, "/jobgroup/{group}/drain?address=http://127.0.0.1:1024"),
    "group_page.undrain": [Call(RUN, "/jobgroup/{group}/undrain", {"address": "http://127.0.0.1:1024"})],
    "alarm_mutes.mute_job": confirmed(RUN, "/jobinfo/{job}/mute", span="1h"),
    "alarm_mutes.unmute_job": [Call(RUN, "/jobinfo/{job}/unmute", {})],
    "alarm_mutes.mute_group": confirmed(RUN, "/jobgroup/{group}/mute", span="1h"),
    "alarm_mutes.unmute_group": [Call(RUN, "/jobgroup/{group}/unmute", {})],
    "alarm_tests.job": confirmed(EDIT, "/jobinfo/{job}/test-alarm"),
    "alarm_tests.group": confirmed(EDIT, "/jobgroup/{group}/test-alarm"),
    "scripting_jobs.add": [Call(EDIT, "/jobinfo/add", BEAN | {"jobGroup": "{group}"})],
    "scripting_jobs.update": [Call(EDIT, "/jobinfo/update", BEAN | {"jobGroup": "{group}", "id": "{job}"})],
    "scripting_jobs.remove": [Call(EDIT, "/jobinfo/remove", {"id": "{job}"})],
    "scripting_jobs.start": [Call(RUN, "/jobinfo/start", {"id": "{job}"})],
    "scripting_jobs.stop": [Call(RUN, "/jobinfo/stop", {"id": "{job}"})],
    "scripting_jobs.trigger": [Call(RUN, "/jobinfo/trigger", {"id": "{job}"})],
    "scripting_jobs.save_code": [Call(WRITE, "/jobcode/save", CODE | {"id": "{code}"})],
    "scripting_logs.log_detail_cat": [
        Call(VIEW, "/joblog/logDetailCat", {"logId": "{log}", "fromLineNum": "1"})
    ],
    "scripting_logs.log_kill": [Call(RUN, "/joblog/logKill", {"id": "{log}"})],
    "scripting_logs.clear_log": [
        Call(RUN, "/joblog/clearLog", {"jobGroup": "{group}", "jobId": "0", "type": "9"}),
        Call(RUN, "/joblog/clearLog", {"jobGroup": "0", "jobId": "{job}", "type": "9"}),
        Call(RUN, "/joblog/clearLog", {"jobGroup": "{group}", "jobId": "{job}", "type": "9"}),
    ],
    "scripting_groups.load_by_id": [Call(VIEW, "/jobgroup/loadById", {"id": "{group}"})],
}
#: endpoints without an object of their own: a foreign group adds nothing to their answers
LISTS = {
    "job_bulk.running": "/jobinfo/running?id={job}&id={code}",
    "logs.detail_page": "/joblog/logDetailPage?id={log}",
    "log_export.export": "/joblog/runs.csv?range=all&jobGroup={group}&jobId={job}",
    "scripting_jobs.page_list": "/jobinfo/pageList?jobGroup={group}&triggerStatus=-1&jobDesc=&id={job}",
    "scripting_logs.page_list": "/joblog/pageList?jobGroup={group}&jobId={job}&logStatus=-1",
    "scripting_logs.jobs_by_group": "/joblog/getJobsByGroup?jobGroup={group}",
}
#: pages open to every logged-in user
OPEN = (
    "/",
    "/?hours=24",
    "/report",
    "/load",
    "/jobinfo",
    "/jobinfo?jobGroup={group}",
    "/jobinfo/export",
    "/jobinfo/export?jobGroup={group}",
    "/jobinfo/new?jobGroup={group}",
    "/joblog?range=all",
    "/joblog?range=all&jobGroup={group}",
    "/joblog?range=all&jobId={job}",
    "/joblog?range=all&jobId={job}&jobGroup={own}",
    "/pick/jobs?q=",
    "/pick/jobs?q={job}",
    "/pick/jobs?q=secret&jobGroup={group}&right=operate",
    "/pick/groups?q=secret",
    "/pick/groups?q={group}&right=edit",
    "/chartInfo?startDate=2000-01-01 00:00:00&endDate=2099-01-01 00:00:00",
    "/account",
    "/help",
)


def make_place(app_name: str, title: str) -> Place:
    group = add_group(app_name, title, addresses="http://127.0.0.1:1024")
    job = add_job(
        group, job_desc=f"{title} job", executor_param=f"{title} parameter", author=f"{title} owner"
    )
    code = add_job(
        group,
        job_desc=f"{title} script",
        glue_type="GLUE_SHELL",
        glue_source=f"echo {title}",
        executor_handler="",
    )
    with session_scope() as session:
        version = glue.save_source(
            session, code, f"echo {title} 2", f"{title} remark", actor=ACTOR, now_ms=now_ms()
        )
    log = add_log(job, group, address="http://127.0.0.1:1024")
    return Place(group, app_name, job, code, log, version)


@pytest.fixture
def here(app: Flask) -> Place:
    return make_place("secret-app", "secret")


@pytest.fixture
def elsewhere(app: Flask, here: Place) -> Place:
    return make_place("other-app", "other")


NOWHERE = Place(MISSING, "no-such-app", MISSING, MISSING, MISSING, MISSING)


def all_calls() -> list[tuple[str, Call]]:
    return [(endpoint, call) for endpoint, calls in CALLS.items() for call in calls]


def filled(text: str, place: Place) -> str:
    for name, value in place._asdict().items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def send(console: Console, call: Call, place: Place) -> TestResponse:
    path = filled(call.path, place)
    if call.form is None:
        return console.get(path)
    form = {name: filled(str(value), place) for name, value in call.form.items()}
    return console.post(path, form | {"csrf_token": token_of(console)})


def answer_of(response: TestResponse) -> tuple[int, object]:
    """Return status and text of an answer without ids and names."""
    answer = response.get_json(silent=True)
    text = re.sub(r"[0-9]+", "#", str(answer.get("msg"))) if isinstance(answer, dict) else ""
    return response.status_code, (answer.get("code"), text) if isinstance(answer, dict) else ""


def snapshot() -> list[Any]:
    with read_scope() as session:
        return [[tuple(row) for row in session.execute(select(model.__table__))] for model in TABLES]


def is_refused(response: TestResponse, *, status: int) -> bool:
    answer = response.get_json(silent=True)
    if isinstance(answer, dict) and "code" in answer:
        return answer["code"] == 500 and (status != 403 or answer["msg"] == "permission denied")
    return response.status_code == status


def test_every_endpoint_that_needs_a_right_is_covered() -> None:
    needing = {
        name
        for name, access in POLICY.items()
        if access in (Access.VIEW, Access.OPERATE, Access.EDIT, Access.GLUE)
    }
    assert needing == CALLS.keys() | LISTS.keys()


def test_foreign_objects_answer_like_missing_ones_and_stay_unchanged(
    here: Place, elsewhere: Place, normal_user: Any
) -> None:
    eve = normal_user(elsewhere.group, username="evemallory")
    before = snapshot()
    for endpoint, call in all_calls():
        foreign, missing = send(eve, call, here), send(eve, call, NOWHERE)
        assert answer_of(foreign) == answer_of(missing), call
        assert (
            endpoint == "scripting_jobs.remove"
            or is_refused(foreign, status=404)
            or foreign.status_code == 400
        ), call
        assert "secret" not in foreign.text.replace(here.app_name, ""), call
        assert snapshot() == before, call


@pytest.mark.parametrize(
    "rights",
    [{VIEW}, {VIEW, RUN}, {VIEW, EDIT}, {VIEW, WRITE}, {VIEW, RUN, EDIT}],
    ids=lambda rights: "+".join(sorted(rights)),
)
def test_a_missing_right_is_reported_and_nothing_changes(
    here: Place, elsewhere: Place, normal_user: Any, rights: set[Right]
) -> None:
    # the other group grants every right, so that only the object's own group decides
    nina = normal_user(here.group, elsewhere.group, username="nina", rights={here.group: frozenset(rights)})
    before = snapshot()
    for endpoint, call in all_calls():
        if call.right not in rights:
            refused = send(nina, call, here)
            assert is_refused(refused, status=400 if endpoint == "job_transfer.import_file" else 403), (
                call,
                refused.status_code,
            )
            assert snapshot() == before, call


def test_the_right_alone_is_enough(app: Flask, normal_user: Any) -> None:
    for number, (_endpoint, call) in enumerate(all_calls()):
        place = make_place(f"app-{number:02d}", "own")
        nina = normal_user(
            place.group, username=f"nina{number}", rights={place.group: frozenset({VIEW, call.right})}
        )
        answer = send(nina, call, place)
        assert answer.status_code != 403, call
        assert (answer.get_json(silent=True) or {}).get("msg") != "permission denied", call


@pytest.mark.parametrize("lost", ["disabled", "without groups"])
def test_a_user_without_groups_reaches_nothing(
    here: Place, admin: Console, normal_user: Callable[..., Console], lost: str
) -> None:
    norman = normal_user(here.group)
    norman_id = 2
    token = token_of(norman)
    if lost == "disabled":
        form = {"csrf_token": token_of(admin), "role": "0", "disabled": "y", "right": f"{here.group}:view"}
        assert admin.post(f"/user/{norman_id}/edit", form).status_code == 303
    else:
        assert (
            admin.call("/user/update", id=norman_id, username="norman", role=0, permission="")["code"] == 200
        )
    before = snapshot()
    for _endpoint, call in all_calls():
        path = filled(call.path, here)
        form = {name: filled(str(value), here) for name, value in (call.form or {}).items()} | {
            "csrf_token": token
        }
        answer = norman.get(path) if call.form is None else norman.post(path, form)
        if lost == "disabled":
            assert (answer.status_code, answer.headers["Location"]) == (302, f"{CONTEXT}/toLogin"), call
        else:
            assert is_refused(answer, status=403), call
    assert snapshot() == before


def test_lists_and_pickers_contain_nothing_foreign(here: Place, elsewhere: Place, normal_user: Any) -> None:
    eve = normal_user(elsewhere.group, username="evemallory")
    for path in (*OPEN, *LISTS.values()):
        filled_path = filled(path, here).replace("{own}", str(elsewhere.group))
        answer = eve.get(filled_path)
        assert answer.status_code in (200, 303), filled_path
        assert "secret" not in answer.text.replace(filled_path, "").replace("q=secret", ""), filled_path
    assert eve.get(filled(LISTS["job_bulk.running"], here)).get_json() == {}


def test_rights_do_not_follow_a_moved_job(here: Place, elsewhere: Place, normal_user: Any) -> None:
    mover = normal_user(
        here.group,
        elsewhere.group,
        username="mover",
        rights={here.group: frozenset({VIEW, RUN, EDIT, WRITE}), elsewhere.group: frozenset({VIEW, RUN})},
    )
    before = snapshot()
    token = {"csrf_token": token_of(mover)}
    target = {"job_group": str(elsewhere.group)}
    moved = mover.post(f"/jobinfo/bulk/move?id={here.job}&id={here.code}", token | target)
    assert result_of(mover, moved).text.count("permission denied") == 2
    assert mover.post(f"/jobinfo/{here.job}/edit", FORM | token | target).status_code == 403
    assert mover.post(f"/jobinfo/{here.job}/copy", FORM | token | target).status_code == 403
    assert (
        mover.call("/jobinfo/update", **(BEAN | {"id": here.job, "jobGroup": elsewhere.group}))["msg"]
        == "permission denied"
    )
    assert mover.call("/jobinfo/add", **(BEAN | {"jobGroup": elsewhere.group}))["msg"] == "permission denied"
    assert snapshot() == before


def test_code_goes_only_to_groups_with_the_glue_right(
    here: Place, elsewhere: Place, normal_user: Any
) -> None:
    mover = normal_user(
        here.group, elsewhere.group, username="mover", rights={elsewhere.group: frozenset({VIEW, RUN, EDIT})}
    )
    before = snapshot()
    token = {"csrf_token": token_of(mover)}
    moved = mover.post(f"/jobinfo/bulk/move?id={here.code}", token | {"job_group": str(elsewhere.group)})
    assert "permission denied" in result_of(mover, moved).text
    script = BEAN | {"jobGroup": elsewhere.group, "glueType": "GLUE_SHELL", "glueSource": "id"}
    assert mover.call("/jobinfo/add", **script)["msg"] == "permission denied"
    assert mover.call("/jobinfo/update", **(script | {"id": here.code}))["msg"] == "permission denied"
    entry = IMPORTED | {
        "appname": "other-app",
        "glueType": "GLUE_SHELL",
        "glueSource": "id",
        "executorHandler": "",
    }
    answer = mover.post(
        "/jobinfo/import", token | {"apply": "1", "text": json.dumps({"format": 1, "jobs": [entry]})}
    )
    assert (
        answer.status_code,
        "You have no permission to write code for this executor group" in answer.text,
    ) == (400, True)
    assert snapshot() == before


def test_a_child_is_run_only_with_the_operate_right_on_it(
    here: Place, elsewhere: Place, normal_user: Any
) -> None:
    user = normal_user(here.group, elsewhere.group, username="parent", rights={here.group: frozenset({VIEW})})
    before = snapshot()
    changes = {"jobGroup": elsewhere.group, "childJobId": here.job}
    assert user.call("/jobinfo/add", **(BEAN | changes))["msg"] == "permission denied"
    assert (
        user.call("/jobinfo/update", **(BEAN | changes | {"id": elsewhere.job}))["msg"] == "permission denied"
    )
    form = FORM | {
        "csrf_token": token_of(user),
        "job_group": str(elsewhere.group),
        "child_jobid": str(here.job),
    }
    assert user.post(f"/jobinfo/{elsewhere.job}/edit", form).status_code == 403
    stranger = normal_user(elsewhere.group, username="stranger")
    before = snapshot()
    refused = stranger.call("/jobinfo/update", **(BEAN | changes | {"id": elsewhere.job}))["msg"]
    assert refused == f"Child job id ({here.job}) was not found"
    assert snapshot() == before


def test_logins_of_others_are_not_ended(normal_user: Callable[..., Console], admin: Console) -> None:
    norman = normal_user(add_group())
    token = {"csrf_token": token_of(norman)}
    admins_login = 1
    assert norman.post(f"/account/logins/{admins_login}/end", token).status_code == 404
    assert norman.post(f"/user/1/logins/{admins_login}/end", token).status_code == 403
    assert norman.post("/account/logins/end", token).status_code == 303
    assert admin.get("/account").status_code == 200
    add_user("nobody1")
