"""Rights on objects that change their group or run each other; tests/security has each endpoint."""

import json
from typing import Any

import pytest
from flask import Flask

from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.task import Task
from tests.console.pages import token_of
from tests.console.tasks import result_of
from tests.security.endpoints import IMPORTED, JOB_FORM
from tests.security.places import Place, make_place, snapshot
from tests.support.console_jobs import error_at
from tests.support.console_scripting import BEAN
from tests.support.factories import all_rows

#: rights do not depend on the database
pytestmark = pytest.mark.databases("sqlite")

VIEW, RUN, EDIT, GLUE = Right


@pytest.fixture
def here(app: Flask) -> Place:
    return make_place("here")


@pytest.fixture
def elsewhere(app: Flask, here: Place) -> Place:
    return make_place("elsewhere")


def test_rights_do_not_follow_a_moved_job(here: Place, elsewhere: Place, normal_user: Any) -> None:
    mover = normal_user(
        here.group,
        elsewhere.group,
        username="mover",
        rights={
            here.group: frozenset({VIEW, RUN, EDIT, GLUE}),
            elsewhere.group: frozenset({VIEW, RUN}),
        },
    )
    before = snapshot(without=Task)
    token = {"csrf_token": token_of(mover)}
    target = {"job_group": str(elsewhere.group)}
    moved = mover.post(f"/jobinfo/bulk/move?id={here.job}&id={here.code}", token | target)
    assert result_of(mover, moved).text.count("permission denied") == 2
    assert mover.post(f"/jobinfo/{here.job}/edit", JOB_FORM | token | target).status_code == 403
    assert mover.post(f"/jobinfo/{here.job}/copy", JOB_FORM | token | target).status_code == 403
    assert (
        mover.call("/jobinfo/update", **(BEAN | {"id": here.job, "jobGroup": elsewhere.group}))["msg"]
        == "permission denied"
    )
    assert mover.call("/jobinfo/add", **(BEAN | {"jobGroup": elsewhere.group}))["msg"] == "permission denied"
    assert snapshot(without=Task) == before


def test_code_goes_only_to_groups_with_the_glue_right(
    here: Place, elsewhere: Place, normal_user: Any
) -> None:
    mover = normal_user(
        here.group,
        elsewhere.group,
        username="mover",
        rights={elsewhere.group: frozenset({VIEW, RUN, EDIT})},
    )
    before = snapshot(without=Task)
    token = {"csrf_token": token_of(mover)}
    moved = mover.post(f"/jobinfo/bulk/move?id={here.code}", token | {"job_group": str(elsewhere.group)})
    assert "permission denied" in result_of(mover, moved).text
    script = BEAN | {"jobGroup": elsewhere.group, "glueType": "GLUE_SHELL", "glueSource": "id"}
    assert mover.call("/jobinfo/add", **script)["msg"] == "permission denied"
    assert mover.call("/jobinfo/update", **(script | {"id": here.code}))["msg"] == "permission denied"
    entry = IMPORTED | {
        "appname": elsewhere.app_name,
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
    assert snapshot(without=Task) == before


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
    form = JOB_FORM | {
        "csrf_token": token_of(user),
        "job_group": str(elsewhere.group),
        "child_jobid": str(here.job),
    }
    for path in (f"/jobinfo/{elsewhere.job}/edit", f"/jobinfo/{elsewhere.job}/copy"):
        page = user.post(path, form | {"job_desc": "as it was typed"})
        assert page.status_code == 400
        assert "You have no permission to run one of these child jobs" in error_at(page.text, "child_jobid")
        assert 'value="as it was typed"' in page.text
    assert all_rows(AuditEntry, action="refused.right", username="parent")
    stranger = normal_user(elsewhere.group, username="stranger")
    before = snapshot()
    refused = stranger.call("/jobinfo/update", **(BEAN | changes | {"id": elsewhere.job}))["msg"]
    assert refused == f"Child job id ({here.job}) was not found"
    assert snapshot() == before
