"""Versions of a job: what makes one, with author and source, and what is stored of the state before."""

import json
from typing import Any

import pytest

from app.clock import Millis
from app.database.engine import session_scope
from app.models.code import JobVersion
from app.models.job import Job
from app.models.tag import JobTag
from app.services.jobs import jobs, versions
from tests.services.code import imports
from tests.support.factories import T0, all_rows, make_group, make_job, save
from tests.support.jobs import ADMIN, CI, LATER, add, draft, fields, kept, update
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")


def test_a_new_job_has_its_first_version_and_each_change_makes_one() -> None:
    group_id, other_id = make_group().id, make_group(app_name="other").id
    job_id = add(group_id, tags=("b", "a"), executor_param="x")
    update(job_id, group_id, actor=CI, tags=("b", "a"), executor_param="y")
    with session_scope() as session:
        jobs.move_job(session, job_id, other_id, actor=ADMIN, clock=lambda: LATER)
        jobs.change_tag(session, job_id, "a", has_tag=False, actor=ADMIN, clock=lambda: LATER)
    assert kept(job_id) == [
        (1, T0, "ada", ""),
        (2, LATER, "ci", "token ci"),
        (3, LATER, "ada", ""),
        (4, LATER, "ada", ""),
    ]
    first, last = fields(job_id, 1), fields(job_id, 4)
    assert (first["group_id"], first["param"], first["tags"]) == (group_id, "x", ["a", "b"])
    assert {name: last[name] for name in first if first[name] != last[name]} == {
        "group_id": other_id,
        "param": "y",
        "tags": ["b"],
    }
    assert not {"source", "enabled"} & set(first)


def test_what_changes_no_field_makes_no_version() -> None:
    group_id = make_group().id
    job_id = add(group_id, schedule_type="FIX_RATE", schedule_conf="60")
    update(job_id, group_id, schedule_type="FIX_RATE", schedule_conf="60")
    with session_scope() as session:
        jobs.start_job(session, job_id, actor=ADMIN, clock=lambda: LATER)
        jobs.trigger_job(session, job_id, executor_param=None, address_list=None, actor=ADMIN, now_ms=LATER)
        jobs.change_tag(session, job_id, "a", has_tag=False, actor=ADMIN, clock=lambda: LATER)
        jobs.move_job(session, job_id, group_id, actor=ADMIN, clock=lambda: LATER)
        jobs.stop_job(session, job_id, actor=ADMIN, clock=lambda: LATER)
    assert len(kept(job_id)) == 1


def test_an_adopted_job_gets_the_state_before_its_first_change_as_version_1() -> None:
    job = make_job(executor_param="old")
    save(JobTag(job_id=job.id, tag="night", tag_key="night"))
    update(job.id, job.job_group, executor_param="new", tags=("night",))
    assert kept(job.id) == [(1, T0, "", ""), (2, LATER, "ada", "")]
    assert (fields(job.id, 1)["param"], fields(job.id, 2)["param"]) == ("old", "new")
    assert fields(job.id, 1)["tags"] == ["night"]


def test_a_change_by_another_program_is_kept_before_the_next_one() -> None:
    group_id = make_group().id
    job_id = add(group_id)
    with session_scope() as session:
        row = session.get_one(Job, job_id)
        row.author, row.update_time = "java", T0 + 5_000
    update(job_id, group_id, author="ann", executor_param="x")
    assert kept(job_id) == [(1, T0, "ada", ""), (2, T0 + 5_000, "", "outside"), (3, LATER, "ada", "")]
    assert [fields(job_id, number)["owner"] for number in (1, 2, 3)] == ["ann", "java", "ann"]
    update(job_id, group_id)
    assert len(kept(job_id)) == 4, "our own versions are not changes of another program"


def test_a_field_that_a_version_lacks_is_no_change_by_another_program() -> None:
    group_id = make_group().id
    job_id = add(group_id)
    with session_scope() as session:
        version = session.query(JobVersion).one()
        stored = json.loads(version.fields)
        del stored["delivery"]
        version.fields = json.dumps(stored)
    update(job_id, group_id, executor_param="x")
    assert [number for number, *_rest in kept(job_id)] == [1, 2]


def test_a_named_source_wins_over_the_token_and_ends_with_its_block() -> None:
    group_id = make_group().id
    job_id = add(group_id)
    with versions.changes_from("apply infra@1a2b3c"):
        update(job_id, group_id, actor=CI, executor_param="x")
    update(job_id, group_id, actor=CI, executor_param="y")
    assert [source for *_rest, source in kept(job_id)] == ["", "apply infra@1a2b3c", "token ci"]


def test_a_change_that_is_rolled_back_keeps_nothing() -> None:
    group_id = make_group().id
    job_id = add(group_id)
    with session_scope() as session:
        jobs.update_job(
            session, job_id, draft(group_id, executor_param="x"), actor=ADMIN, clock=lambda: LATER
        )
        session.rollback()
    assert len(kept(job_id)) == 1


def test_the_newest_500_versions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "VERSIONS_MAX", 3)
    group_id = make_group().id
    job_id, other_id = add(group_id), add(group_id, job_desc="other")
    for number in range(5):
        update(job_id, group_id, executor_param=str(number))
    assert [number for number, *_rest in kept(job_id)] == [4, 5, 6]
    assert len(kept(other_id)) == 1


def test_deleting_a_job_deletes_its_versions() -> None:
    group_id = make_group().id
    job_id, other_id = add(group_id), add(group_id, job_desc="other")
    with session_scope() as session:
        jobs.remove_job(session, job_id, actor=ADMIN, now_ms=LATER)
    assert kept(job_id) == []
    assert len(kept(other_id)) == 1


def imported(count: int, now_ms: Millis, **changes: Any) -> int:
    """Import as many jobs; return how many statements on versions and fields that took."""
    members = {"owner": "ann", "handler": "demo", **changes}
    numbers = range(1, count + 1)
    jobs = {f"demo-executor/{number}": {**members, "description": f"job {number}"} for number in numbers}
    with statements() as executed:
        imports.imported({"jobs": jobs}, actor=ADMIN, now_ms=now_ms)
    return sum("xxl_job_version" in statement for statement in executed)


def test_an_import_writes_the_versions_of_all_its_jobs_by_few_statements() -> None:
    make_group()
    added = imported(300, T0)
    changed = imported(300, LATER, tags=["night"], owner="bob")
    assert (added, changed) == (1, 2)
    rows = all_rows(JobVersion)
    assert len(rows) == 600
    assert {row.source for row in rows} == {"import jobs.yaml"}


def test_an_import_keeps_the_state_before_of_adopted_jobs() -> None:
    job = make_job(job_desc="job 1", executor_handler="demo", author="ann")
    imported(1, LATER, owner="bob")
    assert kept(job.id) == [(1, T0, "", ""), (2, LATER, "ada", "import jobs.yaml")]
