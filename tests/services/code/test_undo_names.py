"""Undoing of an apply where names of groups and channels were changed or taken since."""

from typing import Any

import pytest

from app.database.engine import session_scope
from app.errors import Conflict
from app.models.channel import AlarmChannel, ChannelScope
from app.models.group import Group
from app.models.job import Job
from app.services.alarms import channel_setup
from app.services.alarms.targets import settings_of
from tests.services.code.steps import ADMIN, CLOSE, apply, plan, shown
from tests.support.code import exported, managed, owned_ids, rename, undo
from tests.support.factories import T0, all_rows, make_group, only_row, save

pytestmark = pytest.mark.usefixtures("database")


def mail(addresses: str, **members: Any) -> dict[str, Any]:
    return {"kind": "mail", "settings": {"addresses": addresses}, **members}


ROUTED = {
    "groups": {"sample": {}},
    "channels": {"Ops": mail("ops@example.com", for_all=False, groups=["sample"])},
}


def addresses() -> dict[str, str]:
    return {channel.name: settings_of(channel)["addresses"] for channel in all_rows(AlarmChannel)}


def test_a_group_that_was_added_again_by_hand_is_not_overwritten() -> None:
    make_group(app_name="other-app")
    apply({"groups": {"sample": {"title": "Sample"}}, "jobs": {"sample/close": CLOSE}})
    apply_id = apply({}, prune=["sample/close", "group:sample"]).apply_id
    group = make_group(app_name="sample", title="By hand")
    with pytest.raises(Conflict, match="group sample exists again"):
        undo(apply_id)
    assert only_row(Group, app_name="sample").title == "By hand"
    undo(apply_id, forced=True)
    job = only_row(Job)
    assert (job.job_group, only_row(Group, app_name="sample").title) == (group.id, "Sample")
    assert owned_ids() == {"sample": group.id, "sample/close": job.id}


def test_a_group_whose_name_another_one_shares_is_changed_back() -> None:
    apply({"groups": {"sample": {"title": "Sample"}}})
    group = only_row(Group)
    apply_id = apply({"groups": {"sample": {"title": "Changed"}}}).apply_id
    other = make_group(app_name="other", title="Other")
    rename(Group.app_name, "sample", to="other")
    undo(apply_id)
    assert {each.id: each.title for each in all_rows(Group)} == {group.id: "Sample", other.id: "Other"}


@pytest.mark.parametrize("present", ["two@example.com", "one@example.com"])
def test_a_channel_that_has_taken_the_name_of_a_deleted_one_is_not_overwritten(present: str) -> None:
    apply({"channels": {"One": mail("one@example.com"), "Two": mail(present)}})
    apply_id = apply({}, prune=["channel:One"]).apply_id
    rename(AlarmChannel.name, "Two", to="one")
    with pytest.raises(Conflict, match="channel One exists again"):
        undo(apply_id)
    assert addresses() == {"one": present}
    undo(apply_id, forced=True)
    assert addresses() == {"one": "one@example.com"}
    assert owned_ids() == {"One": only_row(AlarmChannel).id}


def test_a_channel_with_the_id_of_a_deleted_one_is_left_alone() -> None:
    apply({"channels": {"One": mail("one@example.com")}})
    former = only_row(AlarmChannel)
    apply_id = apply({}, prune=["channel:One"]).apply_id
    save(AlarmChannel(id=former.id, name="Dev", kind="mail", settings='{"addresses": "dev@example.com"}'))
    undo(apply_id)
    assert addresses() == {"Dev": "dev@example.com", "One": "one@example.com"}
    assert owned_ids() == {"One": only_row(AlarmChannel, name="One").id}


def test_channels_that_exchanged_their_names_keep_their_owners() -> None:
    apply({"channels": {"One": mail("one@example.com"), "Two": mail("two@example.com")}})
    before = managed()
    changed = {"One": mail("third@example.com"), "Two": mail("fourth@example.com")}
    apply_id = apply({"channels": changed}).apply_id
    for name, to in (("One", "Third"), ("Two", "One"), ("Third", "Two")):
        rename(AlarmChannel.name, name, to=to)
    undo(apply_id)
    assert addresses() == {"Two": "one@example.com", "One": "two@example.com"}
    assert managed() == before


def routed_to(*names: str) -> dict[str, Any]:
    return {**ROUTED, "jobs": {"sample/close": {**CLOSE, "alarm_channels": list(names)}}}


def routes() -> list[str]:
    channels = {channel.id: channel.name for channel in all_rows(AlarmChannel)}
    return [channels[scope.channel_id] for scope in all_rows(ChannelScope) if scope.job_id]


@pytest.mark.parametrize("prune", [[], ["sample/close"]])
def test_a_job_gets_back_an_alarm_channel_that_was_renamed_since(prune: list[str]) -> None:
    apply(routed_to("Ops"))
    apply_id = apply({} if prune else routed_to(), prune=prune).apply_id
    rename(AlarmChannel.name, "Ops", to="Night")
    undo(apply_id)
    assert routes() == ["Night"]


def test_a_renamed_alarm_channel_is_no_change_of_its_jobs() -> None:
    apply(routed_to())
    apply_id = apply(routed_to("Ops")).apply_id
    rename(AlarmChannel.name, "Ops", to="Night")
    undo(apply_id)
    assert routes() == []


def test_alarm_channels_that_were_deleted_since_are_left_out() -> None:
    apply(routed_to("Ops"))
    apply_id = apply(routed_to()).apply_id
    with session_scope() as session:
        channel_setup.remove_channel(session, only_row(AlarmChannel).id, actor=ADMIN, now_ms=T0)
    undo(apply_id)
    assert (only_row(Job).author, routes()) == ("ann", [])


def test_a_channel_that_was_added_and_renamed_since_is_deleted_with_its_routes() -> None:
    apply({"groups": {"sample": {}}, "jobs": {"sample/close": {**CLOSE, "alarm_channels": []}}})
    document = {**ROUTED, "channels": {"Ops": mail("ops@example.com")}, "jobs": routed_to("Ops")["jobs"]}
    apply_id = apply(document).apply_id
    rename(AlarmChannel.name, "Ops", to="Night")
    undo(apply_id)
    assert (all_rows(AlarmChannel), all_rows(ChannelScope)) == ([], [])


@pytest.mark.parametrize(
    ("section", "column", "members"),
    [
        ("groups", Group.app_name, {"title": "Sample"}),
        ("channels", AlarmChannel.name, mail("ops@example.com")),
    ],
)
def test_what_was_adopted_by_its_new_name_goes_back_to_its_former_key(
    section: str, column: Any, members: dict[str, Any]
) -> None:
    apply({section: {"first": members}})
    before = managed()
    rename(column, "first", to="second")
    apply_id = apply({section: {"second": members}}).apply_id
    assert owned_ids().keys() == {"second"}
    undo(apply_id)
    assert managed() == before


def test_a_former_key_that_another_object_has_got_since_keeps_it() -> None:
    apply({"channels": {"One": mail("one@example.com")}})
    rename(AlarmChannel.name, "One", to="Uno")
    apply_id = apply({"channels": {"Uno": mail("one@example.com")}}).apply_id
    apply({"channels": {"One": mail("other@example.com")}})
    with pytest.raises(Conflict, match="channel One exists again"):
        undo(apply_id)


def test_a_channel_with_the_former_name_of_another_one_goes_back_to_its_own_key() -> None:
    apply({"channels": {"One": mail("one@example.com"), "Two": mail("two@example.com")}})
    before = managed()
    for name, to in (("One", "Third"), ("Two", "One")):
        rename(AlarmChannel.name, name, to=to)
    undo(apply({"channels": {"One": mail("two@example.com")}}).apply_id)
    assert managed() == before


@pytest.mark.parametrize("groups", [[], ["sample"]])
def test_a_channel_that_was_renamed_and_then_deleted_is_made_again_with_its_routes(groups: list[str]) -> None:
    document = routed_to("Ops")
    apply(document | {"channels": {"Ops": mail("ops@example.com", for_all=False, groups=groups)}})
    rename(AlarmChannel.name, "Ops", to="Night")
    before = exported()
    apply_id = apply({"jobs": routed_to()["jobs"]}, prune=["channel:Ops"]).apply_id
    undo(apply_id)
    assert (exported(), routes()) == (before, ["Night"])
    assert owned_ids()["Ops"] == only_row(AlarmChannel).id


def test_a_group_that_was_renamed_and_then_deleted_is_made_again_by_its_last_name() -> None:
    make_group(app_name="other-app")
    apply({"groups": {"sample": {"title": "Sample"}}, "jobs": {"sample/close": CLOSE}})
    rename(Group.app_name, "sample", to="samples")
    before = exported()
    undo(apply({}, prune=["sample/close", "group:sample"]).apply_id)
    assert exported() == before
    assert owned_ids()["sample"] == only_row(Group, app_name="samples").id == only_row(Job).job_group


@pytest.mark.parametrize(("name", "problem"), [("Night", "channel Night exists again"), ("Ops", "")])
def test_the_last_name_of_a_deleted_channel_may_be_taken(name: str, problem: str) -> None:
    apply({"channels": {"Ops": mail("ops@example.com")}})
    rename(AlarmChannel.name, "Ops", to="Night")
    apply_id = apply({}, prune=["channel:Ops"]).apply_id
    save(AlarmChannel(name=name, kind="mail", settings='{"addresses": "dev@example.com"}'))
    if problem:
        with pytest.raises(Conflict, match=problem):
            undo(apply_id)
    undo(apply_id, forced=bool(problem))
    assert addresses() == {name: "dev@example.com", "Night": "ops@example.com"}
    assert owned_ids() == {"Ops": only_row(AlarmChannel, name="Night").id}


def test_jobs_move_from_a_renamed_channel_that_they_alone_were_routed_to_and_back() -> None:
    ops = {"Ops": mail("ops@example.com", for_all=False)}
    document = routed_to("Ops") | {"channels": ops}
    apply(document)
    rename(AlarmChannel.name, "Ops", to="Night")
    before = (exported(), managed())
    applied = apply(document)
    assert [each[:3] for each in shown(applied.plan)] == [
        ("job", "sample/close", "update"),
        ("channel", "Ops", "create"),
    ]
    assert (routes(), [*addresses()], plan(document).is_empty) == (["Ops"], ["Night", "Ops"], True)
    undo(applied.apply_id)
    assert (exported(), managed()) == before


def test_a_channel_that_had_no_jobs_any_more_has_none_again() -> None:
    apply(routed_to())
    save(AlarmChannel(name="Night", kind="mail", settings='{"addresses": "n@example.com"}', for_all=0))
    apply_id = apply({"jobs": routed_to("Night")["jobs"]}).apply_id
    assert routes() == ["Night"]
    undo(apply_id)
    assert (routes(), only_row(AlarmChannel, name="Night").for_all) == ([], 0)
