"""Jobs affected by one that does not run: found over followers and children, nameless if of other groups."""

import json

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor, Right, system_actor
from app.domain.rounds.effects import Effect
from app.models.job import Job
from app.models.round import After
from app.services.rounds import effects
from app.services.rounds.effects import SwitchOffEffects, find_affected
from tests.support.factories import make_group, make_job

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")


def follow(group_id: int, *predecessors: int, **values: object) -> int:
    """Add a job that runs after these."""
    runs_after = json.dumps({"jobs": predecessors}) if predecessors else None
    job_id = make_job(job_group=group_id, runs_after=runs_after, **values).id
    with session_scope() as session:
        session.add_all(After(job_id=job_id, predecessor_id=each) for each in predecessors)
    return job_id


def affected_by(job_id: int, actor: Actor = ADMIN) -> SwitchOffEffects:
    with read_scope() as session:
        return find_affected(session, job_id, actor=actor)


def test_followers_and_children_are_found_over_each_other() -> None:
    group_id, other_id = make_group().id, make_group(app_name="other").id
    child = follow(group_id)
    first = follow(group_id, child_jobid=f"{child},999")
    alone = follow(group_id, first)
    both = follow(other_id, alone, follow(group_id), job_desc="secret")
    rows = affected_by(first).jobs
    assert [(row.job and row.job.id, row.effect) for row in rows] == [
        (child, Effect.NOT_TRIGGERED),
        (alone, Effect.NOT_RUN),
        (both, Effect.DROPPED),
    ]
    assert [row.rule and row.rule.jobs[0] for row in rows] == [None, first, alone]
    reader = Actor(user_id=2, username="bob", is_admin=False, rights={group_id: frozenset({Right.VIEW})})
    assert [row.job and row.job.id for row in affected_by(first, reader).jobs] == [child, alone, None]


def test_a_cycle_of_children_ends_and_long_chains_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    group_id = make_group().id
    second = follow(group_id)
    first = follow(group_id, child_jobid=str(second))
    with session_scope() as session:
        session.get_one(Job, second).child_jobid = str(first)
    assert [row.effect for row in affected_by(first).jobs] == [Effect.NOT_TRIGGERED]
    third = follow(group_id, second)
    follow(group_id, third)
    monkeypatch.setattr(effects, "LEVELS_MAX", 2)
    assert (len(affected_by(first).jobs), affected_by(first).is_cut) == (2, True)
    assert (len(affected_by(second).jobs), affected_by(second).is_cut) == (3, True)
