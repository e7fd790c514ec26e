"""Limits of jobs and groups as code: planned once, drifted, exported, undone; unknown ones are refused."""

import json
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import system_actor
from app.errors import InvalidInput
from app.models.group import Group
from app.models.job import Job
from app.models.limit import LimitUse
from app.services.code.plan import plan_document
from app.services.limits import limits
from app.services.limits.limits import LimitDraft
from executor_client.code.loading import load_text
from executor_client.code.writing import write_text
from tests.services.code.steps import CLOSE, NIGHTLY, apply, plan, request, shown
from tests.support.code import drift, exported, undo
from tests.support.factories import T0, only_row
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

LIMITED: dict[str, Any] = {
    "groups": {"sample": {"title": "Sample", "max_running": 8}},
    "jobs": {
        "sample/close": {
            **CLOSE,
            **NIGHTLY,
            "max_running": 1,
            "when_full": "newest",
            "priority": 7,
            "max_wait_s": 600,
            "limits": [{"limit": "database", "weight": 2}, {"limit": "mail"}],
            "limit_key": "${param.customer}",
        }
    },
}


@pytest.fixture(autouse=True)
def _named(database: str) -> None:
    for name, slots in (("database", 3), ("mail", 1)):
        with session_scope() as session:
            actor = system_actor("ann")
            limits.set_limit(session, name, LimitDraft(slots), actor=actor, now_ms=T0)


def uses() -> list[tuple[int, int]]:
    with read_scope() as session:
        return sorted((row.job_id, row.weight) for row in session.scalars(select(LimitUse)))


@every_database
def test_what_was_applied_is_neither_planned_again_nor_drifted() -> None:
    apply(LIMITED)
    assert shown(plan(LIMITED)) == []
    assert drift() == []
    job = only_row(Job)
    assert (only_row(Group).max_running, job.max_running, job.when_full, job.priority) == (8, 1, "newest", 7)
    assert json.loads(job.limits or "") == [
        {"limit": "database", "weight": 2},
        {"limit": "mail", "weight": 1},
    ]
    assert uses() == [(job.id, 1), (job.id, 2)]


def test_changes_are_planned_drift_and_are_undone() -> None:
    apply(LIMITED)
    job_id = only_row(Job).id
    changed = {"jobs": {"sample/close": {**LIMITED["jobs"]["sample/close"], "limits": [], "limit_key": ""}}}
    assert [item[3] for item in shown(plan(changed))] == [["limits", "limit_key"]]
    apply_id = apply(changed).apply_id
    assert uses() == []
    with session_scope() as session:
        session.get_one(Group, only_row(Group).id).max_running = 9
    assert [(each.key, [change.field for change in each.fields]) for each in drift()] == [
        ("sample", ["max_running"])
    ]
    undo(apply_id or 0)
    assert uses() == [(job_id, 1), (job_id, 2)]


def test_an_export_is_applied_as_it_is() -> None:
    apply(LIMITED)
    document = exported()
    assert document["groups"]["sample"]["max_running"] == 8
    assert document["jobs"]["sample/close"]["limits"][1] == {"limit": "mail", "weight": 1}
    loaded = load_text(write_text(document, {}), "file").document
    planned = shown(plan({name: loaded[name] for name in ("groups", "jobs")}))
    assert [fields for _kind, _key, _action, fields in planned] == [[], []], "ownership alone changes"


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"limits": [{"limit": "nothing"}]}, "jobs.sample/close.limits.0.limit"),
        ({"limits": [{"limit": "mail", "weight": 2}]}, "jobs.sample/close.limits.0.weight"),
        ({"limits": [{"weight": 2}]}, "jobs.sample/close.limits.0.limit"),
        ({"limit_key": "${param.a}"}, "jobs.sample/close.limit_key"),
    ],
)
def test_what_cannot_be_is_refused_at_its_place(members: dict[str, Any], place: str) -> None:
    job = {**CLOSE, **NIGHTLY, **members}
    with pytest.raises(InvalidInput) as error:
        plan({"groups": {"sample": {}}, "jobs": {"sample/close": job}})
    assert error.value.field == place


def test_limits_are_refused_beside_a_java_admin() -> None:
    refused = replace(request(LIMITED), readable_by_java=True)
    with pytest.raises(InvalidInput) as error, read_scope() as session:
        plan_document(session, refused, now_ms=T0)
    assert {item.field.rpartition(".")[2] for item in error.value.errors} == {
        "max_running",
        "limits",
        "limit_key",
    }
