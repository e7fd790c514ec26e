"""Rights in jobs as code: what a holder of one executor group may name of others."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import ALL_RIGHTS, Actor
from app.errors import InvalidInput, PermissionDenied
from app.models.channel import AlarmChannel
from app.models.code import CodeObject
from app.models.group import Group
from app.models.job import Job
from app.services.code.drift import find_drift
from app.store.jobs.managed_objects import JOB
from tests.services.code.steps import ADMIN, CLOSE, apply, plan
from tests.support.factories import all_rows, only_row

pytestmark = pytest.mark.usefixtures("database")

OPS = {"Ops": {"kind": "mail", "settings": {"addresses": "ops@example.com"}}}


def holder(app_name: str) -> Actor:
    """Return a program with all rights on one group."""
    (group_id,) = (group.id for group in all_rows(Group) if group.app_name == app_name)
    return Actor(user_id=0, username="team", is_admin=False, rights={group_id: ALL_RIGHTS}, via="token team")


def mine(**members: Any) -> Mapping[str, Any]:
    return {"jobs": {"mine/close": {**CLOSE, **members}}}


@pytest.mark.parametrize("name", ["Ops", "Gone"])
def test_only_administrators_route_alarms_and_no_one_else_learns_the_names_of_channels(name: str) -> None:
    apply({"groups": {"mine": {}}, "channels": OPS})
    assert only_row(AlarmChannel).name == "Ops"
    with pytest.raises(PermissionDenied, match="close.alarm_channels: only administrators route alarms"):
        plan(mine(alarm_channels=[name]), actor=holder("mine"))


def test_a_child_in_a_foreign_group_looks_as_if_it_did_not_exist() -> None:
    apply({"groups": {"mine": {}, "theirs": {}}, "jobs": {"theirs/secret": CLOSE}})
    reasons = []
    for key in ("theirs/secret", "theirs/gone"):
        with pytest.raises(InvalidInput) as refused:
            plan(mine(children=[key]), actor=holder("mine"))
        reasons.append(refused.value.message.replace(key, "KEY"))
    assert reasons[0] == reasons[1]


def test_a_foreign_child_that_an_administrator_set_stays() -> None:
    apply({"groups": {"mine": {}, "theirs": {}}, "jobs": {"theirs/secret": CLOSE}})
    apply(mine(children=["theirs/secret"]))
    assert plan(mine(children=["theirs/secret"]), actor=holder("mine")).is_empty
    apply(mine(children=["theirs/secret"], param="changed"), actor=holder("mine"))
    job = only_row(Job, executor_param="changed")
    assert job.child_ids == [ids()["theirs/secret"]]


def ids() -> dict[str, int]:
    return {each.managed_key: each.object_id for each in all_rows(CodeObject) if each.kind == JOB}


def test_the_key_of_a_foreign_child_is_not_shown() -> None:
    apply({"groups": {"mine": {}, "theirs": {}}, "jobs": {"theirs/secret": CLOSE}})
    apply(mine(children=["theirs/secret"]))
    secret = f"#{ids()['theirs/secret']}"
    [changed] = plan(mine(children=[]), actor=holder("mine")).objects
    assert [(each.field, each.old) for each in changed.fields] == [("children", [secret])]
    with session_scope() as session:
        session.get_one(Job, ids()["mine/close"]).child_jobid = ""
    for actor, shown_child in ((holder("mine"), secret), (ADMIN, "theirs/secret")):
        with read_scope() as session:
            [drifted] = find_drift(session, actor=actor)
        assert [(each.field, each.old) for each in drifted.fields] == [("children", [shown_child])]


def test_a_circle_through_a_foreign_job_does_not_name_it() -> None:
    jobs = {"mine/close": {**CLOSE, "children": ["theirs/secret"]}, "mine/last": CLOSE}
    jobs["theirs/secret"] = {**CLOSE, "children": ["mine/last"]}
    apply({"groups": {"mine": {}, "theirs": {}}, "jobs": jobs})
    last = {"jobs": {"mine/last": {**CLOSE, "children": ["mine/close"]}}}
    with pytest.raises(InvalidInput, match="trigger each other forever") as refused:
        plan(last, actor=holder("mine"))
    assert "theirs/secret" not in refused.value.message
    assert f"#{ids()['theirs/secret']}" in refused.value.message
