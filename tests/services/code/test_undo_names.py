"""Undoing of an apply where names of groups and channels were changed or taken since."""

from typing import Any

import pytest

from app.errors import Conflict
from app.models.channel import AlarmChannel
from app.models.group import Group
from app.models.job import Job
from app.services.alarms.targets import settings_of
from tests.factories import all_rows, make_group, only_row, save
from tests.services.code.steps import CLOSE, apply
from tests.services.code.test_drift import rename
from tests.services.code.test_undo import managed, undo

pytestmark = pytest.mark.usefixtures("database")


def mail(addresses: str, **members: Any) -> dict[str, Any]:
    return {"kind": "mail", "settings": {"addresses": addresses}, **members}


def addresses() -> dict[str, str]:
    return {channel.name: settings_of(channel)["addresses"] for channel in all_rows(AlarmChannel)}


def owned_ids() -> dict[str, int]:
    return {key: object_id for _kind, key, object_id, _fields in managed()}


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
