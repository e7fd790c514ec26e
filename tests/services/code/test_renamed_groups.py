"""Jobs of a group that was renamed in the console: files, prune, undo and export follow them."""

from typing import Any

import pytest

from app.domain.permissions import Actor, Right
from app.errors import InvalidInput
from app.models.group import Group
from app.models.job import Job
from tests.factories import all_rows, make_group, only_row
from tests.services.code.steps import CLOSE, NIGHTLY, apply, plan, shown
from tests.services.code.test_drift import drift, rename
from tests.services.code.test_undo import exported, managed, undo
from tests.services.code.test_undo_names import owned_ids

pytestmark = pytest.mark.usefixtures("database")

JOB = {**CLOSE, **NIGHTLY, "enabled": True}
SEND = {**CLOSE, "description": "Send"}


def files(app_name: str, *names: str, **members: Any) -> dict[str, Any]:
    jobs = {f"{app_name}/{name}": {**JOB, "description": name, **members} for name in names}
    return {"groups": {app_name: {"title": "Sample"}}, "jobs": jobs}


def move(job_id: int, *, to: Group) -> None:
    rename(Job.job_group, only_row(Job, id=job_id).job_group, to=to.id)


def renamed(*names: str) -> None:
    """Apply jobs of the group sample, which is then renamed to samples."""
    apply(files("sample", *names))
    rename(Group.app_name, "sample", to="samples")


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
    assert plan(followed).unlisted == ("sample/send",)
    apply(followed)
    assert plan(followed).unlisted == ("sample/send",)
    apply(followed, prune=["sample/send"])
    assert (only_row(Job).job_desc, plan(followed).unlisted) == ("close", ())


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
