"""Jobs of a group that was renamed in the console: files, prune, undo and export follow them."""

from typing import Any

import pytest

from app.domain.access.permissions import Actor, Right
from app.errors import InvalidInput
from app.models.group import Group
from app.models.job import Job
from tests.services.code.steps import CLOSE, apply, plan, shown
from tests.support.code import drift, exported, files, managed, move, owned_ids, rename, renamed, undo
from tests.support.factories import all_rows, make_group, only_row, remove

pytestmark = pytest.mark.usefixtures("database")

SEND = {**CLOSE, "description": "Send"}


def test_files_that_follow_the_new_name_take_its_jobs_over() -> None:
    renamed("close", "send")
    followed = files("samples", "close", "send", timeout_s=9)
    applied = apply(followed)
    assert shown(applied.plan) == [
        ("group", "samples", "adopt", []),
        ("job", "samples/close", "adopt", ["timeout_s"]),
        ("job", "samples/send", "adopt", ["timeout_s"]),
    ]
    assert owned_ids() == {"samples": 1, "samples/close": 1, "samples/send": 2}
    assert (len(all_rows(Job)), plan(followed).is_empty, drift()) == (2, True, [])


def test_other_jobs_of_the_group_are_unlisted_and_can_be_deleted() -> None:
    renamed("close", "send")
    followed = files("samples", "close")
    assert plan(followed).unlisted_keys == ("sample/send",)
    apply(followed)
    assert plan(followed).unlisted_keys == ("sample/send",)
    apply(followed, prune=["sample/send"])
    assert (only_row(Job).job_desc, plan(followed).unlisted_keys) == ("close", ())


def test_a_former_key_that_is_pruned_keeps_its_job() -> None:
    renamed("close")
    before = (exported(), managed())
    applied = apply(files("samples", "close"), prune=["sample/close", "group:sample"])
    assert [each.notes for each in applied.plan.objects if each.action == "delete"] == [
        ("it stays: the files have it as samples/close",),
        ("it stays: the files have it as samples",),
    ]
    assert owned_ids() == {"samples": 1, "samples/close": 1}
    undo(applied.apply_id)
    assert (exported(), managed()) == before


def test_a_following_that_is_undone_leaves_the_jobs_to_their_former_keys() -> None:
    renamed("close")
    before = (exported(), managed())
    undo(apply(files("samples", "close", timeout_s=9)).apply_id)
    assert (exported(), managed()) == before


@pytest.mark.parametrize("prune", [[], ["sample/close"]])
def test_an_editor_may_follow_and_undo_it(prune: list[str]) -> None:
    renamed("close")
    before = managed()
    rights = frozenset({Right.VIEW, Right.EDIT, Right.OPERATE})
    editor = Actor(7, "ann", is_admin=False, rights={only_row(Group).id: rights})
    followed = {"jobs": files("samples", "close")["jobs"]}
    undo(apply(followed, actor=editor, prune=prune).apply_id, actor=editor)
    assert managed() == before


def test_a_job_whose_former_key_is_in_the_files_too_is_not_taken_over() -> None:
    renamed("close")
    both = {"jobs": {**files("sample", "close")["jobs"], **files("samples", "close")["jobs"]}}
    make_group(app_name="sample")
    assert [each[1:3] for each in shown(plan(both))] == [
        ("sample/close", "update"),
        ("samples/close", "create"),
    ]


def test_a_key_that_jobs_of_two_groups_had_takes_over_the_one_that_is_alike() -> None:
    apply(files("sample", "close"))
    apply(files("other", "close", timeout_s=9))
    alike, other = all_rows(Job)
    move(other.id, to=only_row(Group, id=alike.job_group))
    rename(Group.app_name, "sample", to="samples")
    assert plan(files("samples", "close")).objects[-1].object_id == alike.id
    with pytest.raises(InvalidInput, match=f"{alike.id}, {other.id}. Rename all but one"):
        plan(files("samples", "close", timeout_s=8))


def test_an_entry_whose_job_is_gone_does_not_hold_a_key() -> None:
    make_group(app_name="other")
    apply(files("samples", "close"))
    remove(only_row(Job))
    remove(only_row(Group, app_name="samples"))
    renamed("close")
    before = (exported(), managed())
    assert [*exported()["jobs"]] == ["samples/close"]
    applied = apply(files("samples", "close"))
    job = only_row(Job)
    assert [(each.kind, each.action, each.object_id) for each in applied.plan.objects] == [
        ("group", "adopt", job.job_group),
        ("job", "adopt", job.id),
    ]
    undo(applied.apply_id)
    assert (exported(), managed()) == before


def chain(first: str, second: str, **members: Any) -> dict[str, Any]:
    """Return the files of a job of ann in the first group, and of one of bob in the second."""
    jobs = files(first, "close", owner="ann", **members)["jobs"]
    jobs |= files(second, "close", owner="bob", **members)["jobs"]
    return {"groups": {app_name: {"title": "Sample"} for app_name in (first, second)}, "jobs": jobs}


@pytest.fixture
def renamed_chain(database: str) -> None:
    """Two groups, of which one was renamed, and then the other to the name that this one had."""
    apply(chain("first", "second"))
    rename(Group.app_name, "second", to="third")
    rename(Group.app_name, "first", to="second")


@pytest.mark.usefixtures("renamed_chain")
@pytest.mark.parametrize("prune", [[], ["first/close"]])
def test_a_key_that_another_renamed_job_had_is_taken_over(prune: list[str]) -> None:
    before, owners = (exported(), managed()), {job.id: job.author for job in all_rows(Job)}
    followed = chain("second", "third", timeout_s=9)
    applied = apply(followed, prune=prune)
    assert [each[1:] for each in shown(applied.plan) if each[0] == "job" and each[2] != "delete"] == [
        ("second/close", "adopt", ["timeout_s"]),
        ("third/close", "adopt", ["timeout_s"]),
    ]
    assert owners == {job.id: job.author for job in all_rows(Job)}
    assert (plan(followed).is_empty, plan(followed).unlisted_keys, drift()) == (True, (), [])
    undo(applied.apply_id)
    assert (exported(), managed()) == before


@pytest.mark.usefixtures("renamed_chain")
@pytest.mark.parametrize(("owner", "fields"), [("ann", []), ("bob", ["group"])])
def test_a_key_of_two_renamed_jobs_means_the_one_that_is_alike(owner: str, fields: list[str]) -> None:
    jobs = all_rows(Job)
    (found,) = plan(files("second", "close", owner=owner)).objects[1:]
    assert found.object_id == only_row(Job, author=owner).id
    assert [each.field for each in found.fields] == fields
    with pytest.raises(InvalidInput, match=f"{jobs[0].id}, {jobs[1].id}"):
        plan(files("second", "close", owner=owner, timeout_s=9))


@pytest.mark.usefixtures("renamed_chain")
def test_an_export_of_a_chain_of_renamed_groups_changes_nothing() -> None:
    document = exported()
    assert [*document["jobs"]] == ["second/close", "third/close"]
    assert all(not fields for *_named, fields in shown(apply(document).plan))
    assert (len(all_rows(Job)), plan(document).is_empty) == (2, True)


def test_a_job_whose_group_was_not_renamed_keeps_its_key() -> None:
    apply(files("sample", "close", owner="ann"))
    apply(files("other", "close", owner="bob"))
    move(only_row(Job, author="bob").id, to=only_row(Group, app_name="sample"))
    (found,) = [each for each in plan(files("sample", "close", owner="bob")).objects if each.kind == "job"]
    assert (found.action, found.object_id) == ("update", only_row(Job, author="ann").id)


def test_an_export_has_the_new_name_and_changes_nothing() -> None:
    renamed("close", "send")
    document = exported()
    assert [*document["jobs"]] == ["samples/close", "samples/send"]
    applied = apply(document)
    assert {(action, *fields) for _kind, _key, action, fields in shown(applied.plan)} == {("adopt",)}
    assert len(all_rows(Job)) == 2


def test_an_export_has_each_key_once() -> None:
    apply(files("sample", "close"))
    apply(files("other", "close"))
    apply(files("third", "close"))
    first = all_rows(Job)[0]
    for job in all_rows(Job)[1:]:
        move(job.id, to=only_row(Group, id=first.job_group))
    assert len(exported()["jobs"]) == 3
    rename(Group.app_name, "sample", to="samples")
    assert len(exported()["jobs"]) == 3
