"""Drift: what was changed or deleted elsewhere since it was applied."""

from typing import Any

import pytest

from app.database.engine import session_scope
from app.domain.access.permissions import Actor, Right
from app.domain.code.plan import Action
from app.models.channel import AlarmChannel
from app.models.group import Group
from app.models.job import Job
from app.models.tag import JobTag
from app.services.alarms import channel_setup
from app.services.code.drift import DriftedObject
from app.services.executors import groups
from app.services.jobs import jobs
from app.store.jobs.managed_objects import CHANNEL, GROUP
from tests.services.code.steps import ADMIN, apply, plan
from tests.support.code import WHOLE, drift, rename
from tests.support.factories import T0, make_group, only_row, save

pytestmark = pytest.mark.usefixtures("database")


def fields(found: list[DriftedObject]) -> list[tuple[str, str, Any, Any]]:
    return [(each.key, change.field, change.old, change.new) for each in found for change in each.fields]


def change(**columns: Any) -> Job:
    job = only_row(Job, job_desc="Close the books")
    with session_scope() as session:
        stored = session.get(Job, job.id)
        for name, value in columns.items():
            setattr(stored, name, value)
    return job


def test_what_was_just_applied_has_no_drift() -> None:
    apply(WHOLE)
    assert drift() == []


def test_owned_fields_drift_and_others_do_not() -> None:
    apply(WHOLE)
    job = change(schedule_conf="0 0 4 * * ?", executor_param="of the console", child_jobid="")
    save(JobTag(job_id=job.id, tag="other", tag_key="other"))
    assert fields(drift()) == [
        ("sample/close", "schedule", "0 0 2 * * ?", "0 0 4 * * ?"),
        ("sample/close", "children", ["sample/mail"], []),
        ("sample/close", "tags", ["money"], ["money", "other"]),
    ]


def test_drift_is_shown_by_the_next_plan_which_ends_it() -> None:
    apply(WHOLE)
    change(schedule_conf="0 0 4 * * ?")
    [found] = plan(WHOLE).objects
    assert [(each.field, each.was_edited) for each in found.fields] == [("schedule", True)]
    apply(WHOLE)
    assert drift() == []


def test_a_change_of_the_code_that_the_console_made_first_ends_the_drift() -> None:
    apply(WHOLE)
    change(schedule_conf="0 0 4 * * ?")
    same = {"jobs": {"sample/close": {**WHOLE["jobs"]["sample/close"], "schedule": "0 0 4 * * ?"}}}
    [found] = plan(same).objects
    assert (found.fields, found.owned_names) == ((), ("schedule",))
    apply(same)
    assert drift() == []


def test_deleted_objects_drift() -> None:
    make_group(app_name="other-app")
    apply(WHOLE)
    with session_scope() as session:
        for job in session.query(Job):
            jobs.remove_job(session, job.id, actor=ADMIN, now_ms=T0)
        for channel in channel_setup.list_channels(session, actor=ADMIN):
            channel_setup.remove_channel(session, channel.channel.id, actor=ADMIN, now_ms=T0)
        for group in groups.visible_groups(session, ADMIN):
            if group.app_name == "sample":
                groups.remove_group(session, group.id, actor=ADMIN, now_ms=T0)
    assert [(each.kind, each.key) for each in drift() if each.is_gone] == [
        ("channel", "Ops"),
        ("group", "sample"),
        ("job", "sample/close"),
        ("job", "sample/mail"),
    ]
    assert {each.action.value for each in apply(WHOLE).plan.objects} == {"create"}
    assert drift() == []


def test_a_user_sees_the_drift_of_his_groups() -> None:
    apply(WHOLE)
    job = change(executor_handler="other")
    reader = Actor(7, "ann", is_admin=False, rights={job.job_group: frozenset({Right.VIEW})})
    assert [each.key for each in drift(actor=reader)] == ["sample/close"]
    assert drift(actor=Actor(8, "bob", is_admin=False)) == []


def test_a_renamed_group_drifts_and_the_plan_says_that_it_makes_another_one() -> None:
    apply(WHOLE)
    rename(Group.app_name, "sample", to="sample-2")
    assert fields(drift()) == [("sample", "app_name", "sample", "sample-2")]
    [planned, *_jobs] = plan(WHOLE).objects
    assert (planned.kind, planned.action) == (GROUP, Action.CREATE)
    assert planned.notes == ("it was renamed to sample-2 in the console; this makes another group",)
    rename(Group.app_name, "sample-2", to="sample")
    assert drift() == []
    assert plan(WHOLE).is_empty


def test_a_renamed_channel_drifts_and_the_plan_says_that_it_makes_another_one() -> None:
    document = {"channels": {"Ops": {**WHOLE["channels"]["Ops"], "for_all": True}}}
    apply(document)
    rename(AlarmChannel.name, "Ops", to="OPS")
    assert (drift(), plan(document).is_empty) == ([], True)
    rename(AlarmChannel.name, "OPS", to="Night")
    assert fields(drift()) == [("Ops", "name", "Ops", "Night")]
    [planned] = plan(document).objects
    assert (planned.kind, planned.action) == (CHANNEL, Action.CREATE)
    assert planned.notes == ("it was renamed to Night in the console; this makes another channel",)
