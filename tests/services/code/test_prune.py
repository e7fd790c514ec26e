"""Deletions of an apply, and the files that still name what is deleted."""

from typing import Any

import pytest

from app.database.engine import session_scope
from app.errors import InvalidInput
from app.models.channel import AlarmChannel, ChannelScope
from app.models.code import CodeObject
from app.models.group import Group
from app.models.job import Job
from tests.services.code.steps import CLOSE, apply, plan, shown
from tests.support.code import exported, managed, rename, undo
from tests.support.factories import all_rows, only_row

pytestmark = pytest.mark.usefixtures("database")

OPS = {"kind": "mail", "settings": {"addresses": "ops@example.com"}}
ROUTED = {**OPS, "for_all": False}
SEND = CLOSE | {"description": "Send"}


def refusals(document: dict[str, Any], prune: list[str]) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refused:
        plan(document, prune=prune)
    return [(each.field, str(each.message)) for each in refused.value.errors]


@pytest.mark.parametrize(
    ("section", "members", "pruned", "place"),
    [
        ("jobs", {"sample/close": {**CLOSE, "children": ["send"]}}, "sample/send", "sample/close.children"),
        ("jobs", {"sample/close": {"alarm_channels": ["ops"]}}, "channel:Ops", "sample/close.alarm_channels"),
        ("jobs", {"other/close": CLOSE}, "group:other", "other/close"),
        ("channels", {"Dev": {**OPS, "jobs": ["sample/send"]}}, "sample/send", "Dev.jobs"),
        ("channels", {"Dev": {**OPS, "groups": ["other"]}}, "group:other", "Dev.groups"),
    ],
)
def test_files_do_not_name_what_is_deleted(section: str, members: Any, pruned: str, place: str) -> None:
    apply({"groups": {"sample": {}, "other": {}}, "jobs": {"sample/send": SEND}, "channels": {"Ops": OPS}})
    apply({"jobs": {"sample/close": CLOSE}})
    problem = f"{pruned} is to be deleted: remove it here first"
    assert refusals({section: members}, [pruned]) == [(f"{section}.{place}", problem)]


def test_a_channel_that_no_job_names_any_more_is_deleted() -> None:
    jobs = {"sample/close": {**CLOSE, "alarm_channels": ["Ops", "Dev"]}}
    apply({"groups": {"sample": {}}, "jobs": jobs, "channels": {"Ops": OPS, "Dev": OPS}})
    before = exported()
    jobs = {"sample/close": {**CLOSE, "alarm_channels": ["Dev"]}}
    applied = apply({"jobs": jobs, "channels": {"Dev": OPS}}, prune=["channel:Ops"])
    assert shown(applied.plan) == [
        ("job", "sample/close", "update", ["alarm_channels"]),
        ("channel", "Ops", "delete", []),
    ]
    assert [channel.name for channel in all_rows(AlarmChannel)] == ["Dev"]
    undo(applied.apply_id)
    assert exported() == before


def test_a_channel_that_an_apply_added_for_a_job_is_deleted_again() -> None:
    apply({"groups": {"sample": {}}, "jobs": {"sample/close": {**CLOSE, "alarm_channels": []}}})
    routed = {"jobs": {"sample/close": {**CLOSE, "alarm_channels": ["Ops"]}}, "channels": {"Ops": OPS}}
    undo(apply(routed).apply_id)
    assert (all_rows(AlarmChannel), all_rows(ChannelScope)) == ([], [])


def test_a_group_to_delete_has_no_other_jobs() -> None:
    apply({"groups": {"sample": {}, "other": {}}, "jobs": {"other/close": CLOSE, "other/send": SEND}})
    refused = [("prune", "group:other still has jobs: delete or move them first")]
    assert refusals({}, ["group:other"]) == refused
    assert refusals({}, ["group:other", "other/close"]) == refused
    apply({}, prune=["group:other", "other/close", "other/send"])
    assert [group.app_name for group in all_rows(Group)] == ["sample"]


def test_a_job_that_goes_back_to_its_group_keeps_no_other_one() -> None:
    document = {"groups": {"sample": {}, "other": {}}, "jobs": {"sample/close": CLOSE}}
    apply(document)
    with session_scope() as session:
        session.get_one(Job, only_row(Job).id).job_group = only_row(Group, app_name="other").id
    apply({"groups": {"sample": {}}, "jobs": document["jobs"]}, prune=["group:other"])
    assert only_row(Job).job_group == only_row(Group).id


def test_the_last_group_stays() -> None:
    apply({"groups": {"sample": {}}})
    assert refusals({}, ["group:sample"]) == [("prune", "At least one executor group must remain")]
    apply({"groups": {"other": {}}}, prune=["group:sample"])
    assert [group.app_name for group in all_rows(Group)] == ["other"]


@pytest.mark.parametrize("name", ["Night", "OPS"])
def test_a_channel_that_the_files_rename_too_is_kept(name: str) -> None:
    apply({"groups": {"sample": {}}, "channels": {"Ops": OPS}})
    before = managed()
    rename(AlarmChannel.name, "Ops", to=name)
    document = {"jobs": {"sample/close": {**CLOSE, "alarm_channels": [name]}}, "channels": {name: ROUTED}}
    assert plan(document).unlisted_keys == ()
    applied = apply(document, prune=["channel:Ops"])
    assert shown(applied.plan)[1:] == [
        ("channel", name, "adopt", ["for_all"]),
        ("channel", "Ops", "delete", []),
    ]
    assert applied.plan.objects[-1].notes == (f"it stays: the files have it as {name}",)
    assert (only_row(AlarmChannel).name, only_row(CodeObject, kind="channel").managed_key) == (name, name)
    assert only_row(ChannelScope).job_id == only_row(Job).id
    undo(applied.apply_id)
    assert (only_row(AlarmChannel).name, managed()) == (name, before)


def test_a_group_that_the_files_rename_too_is_kept() -> None:
    apply({"groups": {"sample": {}, "other": {"title": "Other"}}, "jobs": {"other/close": CLOSE}})
    group = only_row(Group, app_name="other")
    rename(Group.app_name, "other", to="other-2")
    document = {"groups": {"other-2": {"title": "Other"}}, "jobs": {"other-2/close": CLOSE}}
    apply(document, prune=["group:other", "other/close"])
    assert only_row(Group, app_name="other-2").id == group.id
    assert only_row(Job).job_group == group.id


@pytest.mark.parametrize(
    ("document", "pruned", "now", "place"),
    [
        ({"jobs": {"sample/close": {"alarm_channels": ["night"]}}}, "channel:Ops", "Night", "alarm_channels"),
        ({"jobs": {"other-2/new": CLOSE}}, "group:other", "other-2", ""),
    ],
)
def test_files_do_not_name_what_is_deleted_by_its_present_name(
    document: dict[str, Any], pruned: str, now: str, place: str
) -> None:
    apply({"groups": {"sample": {}, "other": {}}, "jobs": {"sample/close": CLOSE}, "channels": {"Ops": OPS}})
    rename(AlarmChannel.name, "Ops", to="Night")
    rename(Group.app_name, "other", to="other-2")
    [key] = document["jobs"]
    where = f"jobs.{key}.{place}".rstrip(".")
    problem = f"{pruned}, now {now}, is to be deleted: remove it here first"
    assert refusals(document, [pruned]) == [(where, problem)]


def test_a_renamed_channel_that_no_file_has_is_deleted() -> None:
    jobs = {"sample/close": {**CLOSE, "alarm_channels": ["Ops"]}}
    apply({"groups": {"sample": {}}, "jobs": jobs, "channels": {"Ops": OPS}})
    rename(AlarmChannel.name, "Ops", to="Night")
    apply({"jobs": {"sample/close": {**CLOSE, "alarm_channels": []}}}, prune=["channel:Ops"])
    assert (all_rows(AlarmChannel), all_rows(ChannelScope)) == ([], [])
