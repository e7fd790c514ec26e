"""Kept versions: what they list, who may see them, and restoring."""

from typing import Any

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor, Right
from app.errors import InvalidInput, NotFound, PermissionDenied
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import Job
from app.services.jobs import version_history, versions
from app.services.jobs.version_history import KeptVersion
from tests.support.factories import all_rows, make_fire, make_group, only_row
from tests.support.jobs import ADMIN, CI, LATER, add, fields, kept, update
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")


def user(**rights: Any) -> Actor:
    given = {int(name[1:]): frozenset(of_group) for name, of_group in rights.items()}
    return Actor(user_id=7, username="ann", is_admin=False, rights=given)


def listed(
    job_id: int, *, actor: Actor = ADMIN, limit: int = 10, before: int | None = None
) -> tuple[list[KeptVersion], bool]:
    with read_scope() as session:
        return version_history.list_versions(session, job_id, actor=actor, limit=limit, before=before)


def restore(job_id: int, number: int, *, actor: Actor = ADMIN, **rules: Any) -> None:
    with session_scope() as session:
        version_history.restore_version(
            session, job_id, number, actor=actor, clock=lambda: LATER + 1, **rules
        )


def test_versions_are_listed_newest_first_with_what_each_changed() -> None:
    group_id = make_group().id
    job_id = add(group_id)
    update(job_id, group_id, executor_param="x", author="bob")
    update(job_id, group_id, executor_param="y", author="bob")
    found, has_older = listed(job_id, limit=2)
    assert [(each.number, each.changes) for each in found] == [
        (3, {"param": ("x", "y")}),
        (2, {"owner": ("ann", "bob"), "param": ("", "x")}),
    ]
    assert has_older
    older, has_older = listed(job_id, before=2)
    assert [(each.number, each.changes) for each in older] == [(1, None)]
    assert not has_older


@every_database
def test_versions_of_a_group_that_the_actor_cannot_see_are_left_out() -> None:
    secret_id, open_id = make_group().id, make_group(app_name="open").id
    job_id = add(secret_id)
    update(job_id, secret_id, executor_param=f'"group_id": {open_id},')
    update(job_id, open_id, executor_param="x")
    update(job_id, open_id, executor_param="y")
    reader = user(**{f"g{open_id}": {Right.VIEW, Right.EDIT}})
    found, has_older = listed(job_id, actor=reader, limit=1)
    assert ([each.number for each in found], has_older) == ([4], True)
    found, has_older = listed(job_id, actor=reader)
    assert [(each.number, each.changes) for each in found] == [(4, {"param": ("x", "y")}), (3, None)]
    assert not has_older
    with pytest.raises(NotFound):
        restore(job_id, 2, actor=reader)
    with pytest.raises(NotFound):
        listed(job_id, actor=user())


def test_restoring_changes_the_job_and_makes_a_new_version() -> None:
    group_id = make_group().id
    job_id = add(group_id, tags=("a",), executor_param="old")
    update(job_id, group_id, tags=("b",), executor_param="new")
    restore(job_id, 1)
    assert kept(job_id)[2] == (3, LATER + 1, "ada", "restore 1")
    assert fields(job_id, 3) == fields(job_id, 1)
    entry = all_rows(AuditEntry, action="job.update")[-1]
    assert '"executor_param": ["new", "old"]' in (entry.changes or "")
    restore(job_id, 2, actor=CI)
    assert kept(job_id)[3][2:] == ("ci", "restore 2, token ci")
    assert versions.change_source.get() == ""


def test_restoring_a_schedule_plans_the_job_anew() -> None:
    group_id = make_group().id
    job_id = add(group_id, schedule_type="FIX_RATE", schedule_conf="600")
    update(job_id, group_id, schedule_type="FIX_RATE", schedule_conf="60")
    with session_scope() as session:
        job = session.get_one(Job, job_id)
        job.trigger_status, job.trigger_next_time = 1, LATER + 30_000
    make_fire(only_row(Job, id=job_id), due_time=LATER + 30_000)
    restore(job_id, 1)
    assert all_rows(Fire) == []
    assert only_row(Job, id=job_id).trigger_next_time > LATER + 60_000


def test_restoring_checks_rules_and_rights_of_today() -> None:
    group_id = make_group().id
    child_id = add(group_id, job_desc="child")
    job_id = add(group_id, child_jobid=str(child_id), schedule_type="FIX_DELAY", schedule_conf="60")
    update(job_id, group_id)
    with pytest.raises(InvalidInput, match="Java admin"):
        restore(job_id, 1, readable_by_java=True)
    with session_scope() as session:
        session.delete(session.get_one(Job, child_id))
    with pytest.raises(InvalidInput, match=str(child_id)):
        restore(job_id, 1)
    with pytest.raises(PermissionDenied):
        restore(job_id, 1, actor=user(**{f"g{group_id}": {Right.VIEW}}))
    with pytest.raises(NotFound):
        restore(job_id, 9)
    assert len(kept(job_id)) == 2
