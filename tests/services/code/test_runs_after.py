"""What jobs run after, as code: by keys, planned once, drifted, exported, undone; circles are refused."""

import json
from typing import Any

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import ALL_RIGHTS, Actor
from app.domain.rounds.runs_after import predecessors_of
from app.errors import InvalidInput
from app.models.group import Group
from app.models.job import Job
from app.services.jobs import jobs
from app.store.rounds.edges import Link, read_all_edges
from executor_client.code.loading import load_text
from executor_client.code.writing import write_text
from tests.services.code.steps import ADMIN, CLOSE, apply, plan, shown
from tests.support.code import drift, exported, undo
from tests.support.factories import T0, all_rows, only_row
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

FOLLOWING: dict[str, Any] = {
    "groups": {"sample": {"title": "Sample"}, "other": {"title": "Other"}},
    "jobs": {
        "sample/last": {
            **CLOSE,
            "description": "last",
            "runs_after": {"jobs": ["load", "other/check"], "rule": "all_ended", "deadline_s": 60},
        },
        "sample/load": {**CLOSE, "description": "load"},
        "other/check": {**CLOSE, "description": "check"},
    },
}


def holder(app_name: str) -> Actor:
    """Return a user with all rights on one group."""
    group = only_row(Group, app_name=app_name)
    return Actor(user_id=2, username="bob", is_admin=False, rights={group.id: ALL_RIGHTS})


def job(name: str) -> Job:
    return only_row(Job, job_desc=name)


def edges() -> list[Link]:
    with read_scope() as session:
        return read_all_edges(session)


def with_last(**members: Any) -> dict[str, Any]:
    jobs = {**FOLLOWING["jobs"], "sample/last": {**FOLLOWING["jobs"]["sample/last"], **members}}
    return {**FOLLOWING, "jobs": jobs}


def field_of(refused: pytest.ExceptionInfo[InvalidInput]) -> str:
    return refused.value.errors[0].field


@every_database
def test_keys_become_ids_also_of_jobs_that_are_made_with_it() -> None:
    apply(FOLLOWING)
    last, load, check = job("last"), job("load"), job("check")
    assert json.loads(last.runs_after or "") == {
        "jobs": [load.id, check.id],
        "rule": "all_ended",
        "k": 1,
        "round": "logical_time",
        "shards": "all",
        "shards_k": 1,
        "deadline_s": 60,
        "at_deadline": "drop",
    }
    assert edges() == sorted([Link(load.id, last.id), Link(check.id, last.id)])
    assert (load.has_followers, check.has_followers, last.has_followers) == (1, 1, 0)
    assert shown(plan(FOLLOWING)) == []
    assert drift() == []
    swapped = {"jobs": ["other/check", "load"], "rule": "all_ended", "deadline_s": 60}
    assert shown(plan(with_last(runs_after=swapped))) == [], "the order has no meaning"


def test_an_export_is_applied_again_without_a_change() -> None:
    apply(FOLLOWING)
    document = exported()
    assert document["jobs"]["sample/last"]["runs_after"]["jobs"] == ["load", "other/check"]
    assert document["jobs"]["sample/load"]["runs_after"] is None
    loaded = load_text(write_text(document, {}), "file").document
    planned = shown(plan({name: loaded[name] for name in ("groups", "jobs")}))
    assert {tuple(fields) for _kind, _key, _action, fields in planned} == {()}, "ownership alone changes"


def test_a_change_names_keys_and_edges_follow() -> None:
    apply(FOLLOWING)
    changed = with_last(runs_after={"jobs": ["load"]})
    [made] = plan(changed).objects
    [field] = made.fields
    assert (field.field, field.old["jobs"], field.new["jobs"]) == (
        "runs_after",
        ["sample/load", "other/check"],
        ["sample/load"],
    )
    apply(changed)
    assert edges() == [Link(job("load").id, job("last").id)]
    apply(with_last(runs_after=None))
    assert (edges(), job("last").runs_after) == ([], None)


def test_a_change_in_the_console_is_drift() -> None:
    apply(FOLLOWING)
    with session_scope() as session:
        session.get_one(Job, job("last").id).runs_after = json.dumps({"jobs": [job("load").id]})
    [drifted] = drift()
    [field] = drifted.fields
    assert field.old["jobs"] == ["sample/load", "other/check"]
    assert field.new["jobs"] == ["sample/load"]


@pytest.mark.parametrize(
    ("members", "field", "problem"),
    [
        ({"runs_after": {"jobs": ["none"]}}, "runs_after", "There is no job with the key sample/none"),
        ({"runs_after": {"jobs": []}}, "runs_after.jobs", "at least 1 item"),
        ({"runs_after": {"jobs": [7]}}, "runs_after.jobs.0", "valid string"),
        (
            {"runs_after": {"jobs": ["load"], "rule": "k_of_n", "k": 2}},
            "runs_after.k",
            "2 is more than",
        ),
        ({"runs_after": {"jobs": ["last"]}}, "runs_after", "sample/last → sample/last"),
        ({"children": ["load"]}, "runs_after", "sample/load → sample/last → sample/load"),
    ],
)
def test_what_is_wrong_is_named(members: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as refused:
        plan(with_last(**members))
    assert field_of(refused) == f"jobs.sample/last.{field}"


def test_a_circle_through_jobs_that_the_document_lacks_is_refused() -> None:
    apply(FOLLOWING)
    later = {"sample/later": {**CLOSE, "description": "later", "runs_after": {"jobs": ["last"]}}}
    apply({"jobs": later})
    closing = {"sample/load": {**CLOSE, "description": "load", "runs_after": {"jobs": ["later"]}}}
    with pytest.raises(InvalidInput, match="trigger each other forever") as refused:
        plan({"jobs": closing})
    assert field_of(refused) == "jobs.sample/load.runs_after"
    closing = {"sample/later": {**later["sample/later"], "children": ["load"]}}
    with pytest.raises(InvalidInput, match="trigger each other forever") as refused:
        plan({"jobs": closing})
    assert field_of(refused) == "jobs.sample/later.children"


def test_a_predecessor_that_the_actor_may_not_see_stays_but_is_not_added() -> None:
    apply(FOLLOWING)
    own = {"jobs": {"sample/last": {**FOLLOWING["jobs"]["sample/last"], "owner": "bob"}}}
    assert len(plan(own, actor=holder("sample")).objects) == 1
    load = {**CLOSE, "description": "load", "runs_after": {"jobs": ["other/check"]}}
    with pytest.raises(InvalidInput, match="There is no job with the key other/check"):
        plan({"jobs": {"sample/load": load}}, actor=holder("sample"))


@every_database
def test_an_undo_puts_everything_back() -> None:
    apply(FOLLOWING)
    before = exported()
    undo(apply(with_last(runs_after={"jobs": ["load"], "round": "day"})).apply_id)
    assert exported() == before
    deleted = apply({}, prune=["sample/load", "sample/last"])
    assert [each.job_desc for each in all_rows(Job)] == ["check"]
    undo(deleted.apply_id)
    assert exported() == before
    last = job("last")
    assert set(predecessors_of(last.runs_after)) == {job("load").id, job("check").id}
    assert edges() == sorted(Link(each, last.id) for each in predecessors_of(last.runs_after))


def test_a_predecessor_that_is_made_again_is_followed_again() -> None:
    apply(FOLLOWING)
    deleted = apply({}, prune=["other/check"])
    former = predecessors_of(job("last").runs_after)
    undo(deleted.apply_id)
    assert predecessors_of(job("last").runs_after) == (job("load").id, job("check").id)
    assert former[1] != job("check").id


def test_a_predecessor_that_is_gone_does_not_hinder_other_changes() -> None:
    apply(FOLLOWING)
    with session_scope() as session:
        jobs.remove_job(session, job("check").id, actor=ADMIN, now_ms=T0)
    document = {"jobs": {"sample/last": {"owner": "bob"}}}
    apply(document)
    assert job("last").author == "bob"
    assert len(predecessors_of(job("last").runs_after)) == 2
    assert exported()["jobs"]["sample/last"]["runs_after"]["jobs"] == ["load"]
