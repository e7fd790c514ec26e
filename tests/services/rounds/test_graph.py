"""Graph of jobs: what leads to a job and what follows it, with the jobs of other groups without names."""

import json

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor, Right, system_actor
from app.errors import NotFound
from app.models.job import Job
from app.models.round import After, Round
from app.services.rounds import graph
from app.services.rounds.graph import GraphEdge, JobGraph
from tests.support.factories import T0, make_group, make_job, make_log, save
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")


def user(*group_ids: int) -> Actor:
    rights = {group_id: frozenset({Right.VIEW}) for group_id in group_ids}
    return Actor(user_id=2, username="bob", is_admin=False, rights=rights)


def follow(group_id: int, *predecessors: int, rule: str = "all_succeeded", **values: object) -> int:
    text = json.dumps({"jobs": predecessors, "rule": rule}) if predecessors else None
    job_id = make_job(job_group=group_id, runs_after=text, **values).id
    with session_scope() as session:
        session.add_all(After(job_id=job_id, predecessor_id=each) for each in predecessors)
    return job_id


def graph_of(job_id: int, actor: Actor = ADMIN) -> JobGraph:
    with read_scope() as session:
        return graph.graph_of(session, job_id, actor=actor)


def test_it_has_what_leads_to_a_job_and_what_follows_it_by_both_kinds_of_links() -> None:
    group_id = make_group().id
    last = follow(group_id)
    first = follow(group_id)
    second = follow(group_id, first, rule="any_succeeded", child_jobid=f"{last},999", trigger_status=1)
    sibling = follow(group_id, first)
    save(Round(job_id=second, round_key="t:1", logical_ms=1, opened_ms=T0, state="started"))
    newest = save(Round(job_id=second, round_key="t:2", logical_ms=2, opened_ms=T0, state="open"))
    make_log(make_job(job_group=group_id))
    with read_scope() as session, statements() as seen:
        shown = graph.graph_of(session, second, actor=ADMIN)
    assert len(seen) <= 9
    assert {node.job_id for node in shown.nodes} == {first, second, last}, "siblings do not lead here"
    node = next(node for node in shown.nodes if node.job_id == second)
    assert (node.is_on, node.last_round_id, node.last_round_state) == (True, newest.id, "open")
    assert set(shown.edges) == {
        GraphEdge(first, second, "after", "any_succeeded"),
        GraphEdge(second, last, "child", None),
    }
    assert {node.job_id for node in graph_of(first).nodes} == {first, second, last, sibling}
    assert not shown.truncated


def test_jobs_of_other_groups_have_numbers_only() -> None:
    own, other = make_group().id, make_group(app_name="other").id
    first = follow(own)
    hidden = follow(other, first)
    hidden_too = follow(other, hidden)
    last = follow(own, hidden_too)
    shown = graph_of(last, user(own))
    foreign = [node for node in shown.nodes if node.is_foreign]
    assert [(node.job_id, node.name, node.group_id) for node in foreign] == [
        (-1, None, None),
        (-2, None, None),
    ]
    assert {(edge.source, edge.target) for edge in shown.edges} == {(first, -1), (-1, -2), (-2, last)}
    with pytest.raises(NotFound):
        graph_of(hidden, user(own))


def test_a_group_has_its_connected_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = make_group().id, make_group(app_name="other").id
    first, alone = follow(own), follow(own)
    second = follow(other, first)
    third = follow(other, second)
    with read_scope() as session:
        shown = graph.graph_of_group(session, own, actor=ADMIN)
        cut = graph.graph_of_group(session, own, actor=ADMIN, most=1)
        with pytest.raises(NotFound):
            graph.graph_of_group(session, own, actor=user(other))
    assert {node.job_id for node in shown.nodes} == {first, second}
    assert {alone, third}.isdisjoint(node.job_id for node in shown.nodes)
    assert (len(cut.nodes), cut.edges, cut.truncated) == (1, (), True)


def test_a_cycle_of_children_that_was_adopted_is_shown() -> None:
    group_id = make_group().id
    first = follow(group_id)
    second = follow(group_id, child_jobid=str(first))
    with session_scope() as session:
        session.get_one(Job, first).child_jobid = str(second)
    shown = graph_of(second)
    assert {(edge.source, edge.target) for edge in shown.edges} == {(first, second), (second, first)}


def test_a_large_graph_is_cut_near_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "NODES_MAX", 4)
    group_id = make_group().id
    ids = [follow(group_id)]
    for _ in range(7):
        ids.append(follow(group_id, ids[-1]))
    shown = graph_of(ids[6])
    assert {node.job_id for node in shown.nodes} == set(ids[3:7])
    assert shown.truncated
