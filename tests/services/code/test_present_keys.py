"""Jobs whose group was renamed: files, channels and prune may name them by their present keys."""

import pytest

from app.errors import InvalidInput
from app.models.channel import ChannelScope
from app.models.group import Group
from app.models.job import Job
from tests.services.code.steps import apply, plan
from tests.support.code import files, move, owned_ids, rename, renamed
from tests.support.factories import all_rows, make_group, only_row, remove

pytestmark = pytest.mark.usefixtures("database")


def test_a_job_may_be_named_by_its_present_key() -> None:
    renamed("close", "send")
    send = only_row(Job, job_desc="send")
    followed = files("samples", "close", children=["samples/send"])
    hook = {"kind": "webhook", "settings": {"url": "http://127.0.0.1:9/"}, "for_all": False}
    followed["channels"] = {"ops": {**hook, "jobs": ["samples/send"]}}
    applied = apply(followed)
    assert only_row(Job, job_desc="close").child_ids == [send.id]
    assert only_row(ChannelScope).job_id == send.id
    assert applied.plan.unlisted_keys == ("sample/send",)


@pytest.mark.parametrize("key", ["samples/close", "sample/close"])
def test_files_that_do_not_follow_may_name_a_job_by_its_present_key(key: str) -> None:
    renamed("close", "send")
    named = {"jobs": files("sample", "close", "send")["jobs"]}
    named["jobs"]["sample/send"]["children"] = [key]
    make_group(app_name="sample")
    apply(named)
    assert only_row(Job, job_desc="send").child_ids == [only_row(Job, job_desc="close").id]


def test_a_job_is_pruned_by_its_present_key() -> None:
    renamed("close", "send")
    applied = apply(files("samples", "close"), prune=["samples/send"])
    assert [each.key for each in applied.plan.objects if each.action == "delete"] == ["sample/send"]
    assert (only_row(Job).job_desc, applied.plan.unlisted_keys) == ("close", ())


def test_what_the_files_name_is_not_pruned_by_its_present_key() -> None:
    renamed("close", "send")
    followed = files("samples", "close", children=["samples/send"])
    with pytest.raises(InvalidInput, match="sample/send, now samples/send, is to be deleted"):
        plan(followed, prune=["samples/send"])
    with pytest.raises(InvalidInput, match="samples/close is in the files"):
        plan(followed, prune=["samples/close"])


def test_an_entry_that_is_pruned_is_not_the_job_that_has_its_key_now() -> None:
    make_group(app_name="other")
    apply(files("samples", "send"))
    remove(only_row(Job))
    remove(only_row(Group, app_name="samples"))
    renamed("close", "send")
    apply(files("samples", "close"), prune=["samples/send"])
    assert (len(all_rows(Job)), "samples/send" in owned_ids()) == (2, False)


def test_a_present_key_of_two_jobs_names_neither() -> None:
    apply(files("sample", "send"))
    apply(files("other", "send"))
    group = only_row(Group, app_name="sample")
    for job in all_rows(Job):
        move(job.id, to=group)
    rename(Group.app_name, "sample", to="samples")
    with pytest.raises(InvalidInput, match="samples/send is not managed as code"):
        plan({}, prune=["samples/send"])
