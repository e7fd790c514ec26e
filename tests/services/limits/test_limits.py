"""Named limits: who sees and sets them, what is refused, and which uses of jobs are kept."""

import json
from typing import Any

import pytest
from sqlalchemy import select

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor, Right, system_actor
from app.domain.limits.waits import Wait, WaitReason
from app.domain.text.fingerprints import fingerprint
from app.errors import ChangedMeanwhile, Conflict, InvalidInput, NotFound, PermissionDenied
from app.models.audit import AuditEntry
from app.models.job import Job
from app.models.limit import Limit, LimitUse
from app.services.executors import groups
from app.services.jobs import jobs
from app.services.limits import limits, usage
from app.services.limits.limits import LimitDraft, NamedLimit
from tests.support.factories import T0, all_rows, make_fire, make_group, make_job, only_row, save
from tests.support.jobs import add, draft, update
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")


def user(group_id: int, *rights: Right) -> Actor:
    return Actor(user_id=2, username="bob", is_admin=False, rights={group_id: frozenset(rights)})


def put(name: str, slots: int, *, actor: Actor = ADMIN, **made: Any) -> NamedLimit:
    with session_scope() as session:
        return limits.set_limit(session, name, LimitDraft(slots, **made), actor=actor, now_ms=T0)


def remove(name: str, *, actor: Actor = ADMIN, loaded: str = "") -> None:
    with session_scope() as session:
        limits.remove_limit(session, name, actor=actor, now_ms=T0, loaded=loaded)


def names(actor: Actor, **wanted: Any) -> list[str]:
    with read_scope() as session:
        return [limit.name for limit in limits.list_limits(session, actor=actor, **wanted)]


def shares(*uses: tuple[str, int]) -> str:
    return json.dumps([{"limit": name, "weight": weight} for name, weight in uses])


def used() -> list[tuple[int, int, int]]:
    with read_scope() as session:
        return sorted((row.job_id, row.limit_id, row.weight) for row in session.scalars(select(LimitUse)))


@every_database
def test_a_limit_is_made_changed_listed_and_deleted() -> None:
    made = put("  reporting database ", 3)
    assert (made.name, made.slots, made.group_id, made.users, made.max_weight) == (
        "reporting database",
        3,
        None,
        0,
        0,
    )
    assert put("reporting database", 5).id == made.id
    put("Reporting database", 1)
    assert names(ADMIN) == sorted(["Reporting database", "reporting database"])
    assert names(ADMIN, after="Reporting database", limit=1) == ["reporting database"]
    put("reporting database", 5)
    remove("Reporting database")
    entries = [(row.action, row.object_type, json.loads(row.changes or "")) for row in all_rows(AuditEntry)]
    assert entries[:2] == [
        ("limit.set", "limit", {"name": "reporting database", "slots": [None, 3]}),
        ("limit.set", "limit", {"name": "reporting database", "slots": [3, 5]}),
    ]
    assert [entry[0] for entry in entries] == ["limit.set"] * 3 + ["limit.remove"], "no change, no entry"
    with pytest.raises(NotFound):
        remove("Reporting database")


@pytest.mark.parametrize("name", ["", "   ", "x" * 65, "a\nb", "a\x00b", "a/b", ".."])
def test_a_wrong_name_is_refused_with_the_slots(name: str) -> None:
    with pytest.raises(InvalidInput) as error:
        put(name, 0)
    assert [item.field for item in error.value.errors] == ["name", "slots"]


@every_database
def test_limits_of_all_groups_are_the_administrators_and_others_those_of_editors() -> None:
    own, other = make_group(), make_group()
    editor, viewer = user(own.id, Right.VIEW, Right.EDIT), user(own.id, Right.VIEW)
    put("all", 1)
    put("other", 1, group_id=other.id)
    put("own", 1, group_id=own.id, actor=editor)
    assert names(editor) == names(viewer) == ["all", "own"]
    assert names(Actor(user_id=3, username="eve", is_admin=False)) == []
    assert put("own", 2, keeps_group=True, actor=editor).group_id == own.id
    for actor, name, group_id in [(editor, "all", None), (viewer, "own", own.id), (editor, "new", None)]:
        with pytest.raises(PermissionDenied):
            put(name, 4, group_id=group_id, actor=actor)
    for name, group_id, field in [("other", other.id, "group_id"), ("other", own.id, "name")]:
        with pytest.raises(InvalidInput) as error:
            put(name, 4, group_id=group_id, actor=editor)
        assert error.value.field == field
    with pytest.raises(InvalidInput) as error:
        put("new", 4, group_id=other.id, actor=editor)
    assert error.value.field == "group_id"
    with pytest.raises(NotFound):
        remove("other", actor=editor)
    with pytest.raises(PermissionDenied):
        remove("own", actor=viewer)


def test_a_change_of_another_state_than_the_loaded_one_is_refused() -> None:
    limit = put("database", 1)
    loaded = fingerprint(limits.state_of(limit))
    put("database", 2, loaded=loaded)
    with pytest.raises(ChangedMeanwhile):
        put("database", 3, loaded=loaded)
    with pytest.raises(ChangedMeanwhile):
        remove("database", loaded=loaded)


@every_database
def test_uses_follow_the_jobs_and_keep_a_limit_from_deletion_and_shrinking() -> None:
    group, other = make_group(), make_group()
    database, mail = put("database", 3), put("mail", 1)
    job_id = add(group.id, limits=shares(("database", 2), ("mail", 1)))
    assert used() == [(job_id, database.id, 2), (job_id, mail.id, 1)]
    with pytest.raises(InvalidInput, match="2 slots"):
        put("database", 1)
    with pytest.raises(Conflict, match=f"report .{job_id}."):
        remove("database")
    with pytest.raises(InvalidInput) as error:
        put("database", 3, group_id=other.id)
    assert error.value.field == "group_id"
    put("database", 3, group_id=group.id)
    with pytest.raises(InvalidInput, match="another executor"), session_scope() as session:
        jobs.move_job(session, job_id, other.id, actor=ADMIN, clock=lambda: T0)
    with pytest.raises(InvalidInput, match="another executor"):
        update(job_id, other.id, limits=shares(("database", 1)))
    update(job_id, group.id, limits=shares(("database", 3)))
    assert used() == [(job_id, database.id, 3)]
    save(Limit(kind="job", name=str(job_id)))
    with session_scope() as session:
        jobs.remove_job(session, job_id, actor=ADMIN, now_ms=T0)
    assert not used()
    assert {row.name for row in all_rows(Limit)} == {"database", "mail"}
    save(Limit(kind="group", name=str(group.id), group_id=group.id))
    with session_scope() as session:
        groups.remove_group(session, group.id, actor=ADMIN, now_ms=T0)
    assert [row.name for row in all_rows(Limit)] == ["mail"]


@every_database
def test_slots_in_use_and_waiting_runs_are_counted() -> None:
    limit, other = put("database", 3), put("mail", 3)
    job, free = make_job(), make_job()
    for job_id, limit_id, weight in [(job.id, limit.id, 2), (job.id, other.id, 1)]:
        save(LimitUse(job_id=job_id, limit_id=limit_id, weight=weight))
    make_fire(job, state="ACCEPTED", admitted_ms=T0)
    make_fire(job, state="HELD", admitted_ms=T0)
    make_fire(job, state="PENDING")
    make_fire(free, state="ACCEPTED")
    wait = Wait(limit.id, WaitReason.FULL, 2, 3)
    make_fire(job, state="WAITING", waits_for=wait.text)
    make_fire(job, state="WAITING", waits_for=wait._replace(limit_id=int(f"{limit.id}0")).text)
    with read_scope() as session:
        rows = {row.name: row for row in limits.list_limits(session, actor=ADMIN)}
        sharing = limits.list_jobs(session, rows["database"], actor=ADMIN)
    assert (rows["database"].used, rows["database"].waiting) == (4, 1)
    assert (rows["mail"].used, rows["mail"].waiting) == (2, 0)
    assert [(row.id, row.weight) for row in sharing] == [(job.id, 2)]


def test_a_group_takes_its_most_runs_at_once() -> None:
    group = make_group()
    made = groups.GroupDraft(group.app_name, "Some", max_running=7)
    with session_scope() as session:
        groups.update_group(session, group.id, made, actor=ADMIN, now_ms=T0)
    assert only_row(groups.Group, id=group.id).max_running == 7
    for most, shared in [(-1, False), (10_001, False), (1, True)]:
        wrong = groups.GroupDraft(group.app_name, "Some", max_running=most, readable_by_java=shared)
        with pytest.raises(InvalidInput) as error, session_scope() as session:
            groups.update_group(session, group.id, wrong, actor=ADMIN, now_ms=T0)
        assert error.value.field == "maxRunning"


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"max_running": 1, "limit_key": "${param.customer}"}, []),
        ({"max_running": 1, "limit_key": "c-${param}"}, []),
        ({"limits": shares(("database", 1)), "limit_key": "${param.rows[0].id}"}, []),
        ({"limit_key": "${param.customer}"}, ["limitKey"]),
        ({"max_running": 1, "limit_key": "constant"}, ["limitKey"]),
        ({"max_running": 1, "limit_key": "${job.id}"}, ["limitKey"]),
        ({"max_running": 1, "limit_key": "${param.x"}, ["limitKey"]),
        ({"limits": shares(("database", 4))}, ["limits.0.weight"]),
        ({"limits": shares(("database", 1), ("database", 1))}, ["limits.1.limit"]),
        ({"limits": shares(("nothing", 1), ("foreign", 1))}, ["limits.0.limit", "limits.1.limit"]),
        ({"limits": "[{}]"}, ["limits.0.limit"]),
        ({"max_running": 1, "readable_by_java": True}, ["maxRunning"]),
        (
            {"limits": shares(("database", 1)), "limit_key": "${param}", "readable_by_java": True},
            ["limits", "limitKey"],
        ),
        ({"when_full": "skip", "priority": 9, "readable_by_java": True}, []),
    ],
)
def test_limits_of_a_job_are_checked(changes: dict[str, Any], fields: list[str]) -> None:
    group, other = make_group(), make_group()
    put("database", 3)
    put("foreign", 3, group_id=other.id)
    if not fields:
        add(group.id, **changes)
        return
    with pytest.raises(InvalidInput) as error:
        add(group.id, **changes)
    assert sorted(item.field for item in error.value.errors) == sorted(fields)
    assert not used()


def test_drafts_of_jobs_have_no_limits() -> None:
    assert draft(1).limits == "[]"


@every_database
def test_a_job_that_another_program_has_deleted_keeps_no_limit() -> None:
    put("database", 3)
    job = make_job()
    save(LimitUse(job_id=job.id, limit_id=only_row(Limit).id, weight=3))
    with session_scope() as session:
        session.delete(session.get_one(Job, job.id))
    assert (put("database", 1).users, put("database", 1).max_weight) == (0, 0)
    remove("database")
    assert not used()


def test_users_without_any_group_see_no_limits() -> None:
    put("database", 3)
    stranger = Actor(user_id=3, username="eve", is_admin=False, rights={})
    with read_scope() as session:
        assert not usage.list_usage(session, actor=stranger)
        with pytest.raises(NotFound):
            usage.get_usage(session, only_row(Limit).id, actor=stranger)
