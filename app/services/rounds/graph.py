"""Graph of jobs: what leads to a job and what follows it, by `runs_after` and by children."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.domain.access.permissions import Actor, Right, require_right
from app.domain.enums import TriggerStatus
from app.domain.rounds.cycles import FollowersOf, reachable
from app.domain.rounds.runs_after import parse_runs_after
from app.domain.text.texts import N_
from app.errors import NotFound
from app.services.executors.groups import get_group
from app.store.jobs.listing import find_job
from app.store.rounds import edges, states
from app.store.rounds.edges import Link
from app.store.rounds.states import GraphJob

MISSING = N_("Job id is invalid")
#: most jobs of a graph
NODES_MAX = 500
AFTER, CHILD = "after", "child"


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A job of a graph; one that the actor may not view has a negative number and no properties."""

    job_id: int
    #: None: foreign
    name: str | None
    group_id: int | None
    is_on: bool
    schedule_type: str
    last_round_id: int | None = None
    #: RoundState
    last_round_state: str | None = None
    last_run_state: str | None = None
    is_foreign: bool = False


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A job that leads to another one, by their ids in the graph."""

    source: int
    target: int
    #: ``after`` or ``child``
    kind: str
    #: RoundRule of the job that follows; None: a child
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class JobGraph:
    """Jobs and what leads from one to another."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    #: there are more jobs than the graph may have
    truncated: bool = False


def graph_of(session: Session, job_id: int, *, actor: Actor) -> JobGraph:
    """Return a job with all that leads to it and all that follows it; raises NotFound."""
    job = find_job(session, job_id)
    if job is None:
        raise NotFound(MISSING)
    require_right(actor, job.job_group, Right.VIEW, missing=MISSING)
    links = edges.read_links(session)
    before, is_cut = reachable(
        [job_id], _lookup((link.target, link.source) for link in links), most=NODES_MAX
    )
    after, is_cut_too = reachable(
        [job_id], _lookup((link.source, link.target) for link in links), most=NODES_MAX - len(before) + 1
    )
    return _graph(session, before | after, links, is_cut or is_cut_too, actor)


def graph_of_group(session: Session, group_id: int, *, actor: Actor, most: int = NODES_MAX) -> JobGraph:
    """Return the jobs of a group that lead to others or follow others, with those; raises NotFound."""
    get_group(session, group_id, actor=actor)
    own_ids = set(states.find_ids_of_group(session, group_id))
    links = edges.read_links(session)
    touching = [link for link in links if link.source in own_ids or link.target in own_ids]
    job_ids = sorted({job_id for link in touching for job_id in (link.source, link.target)})
    return _graph(session, set(job_ids[:most]), links, len(job_ids) > most, actor)


def _lookup(pairs: Iterable[tuple[int, int]]) -> FollowersOf:
    links: dict[int, list[int]] = {}
    for source, target in pairs:
        links.setdefault(source, []).append(target)
    return lambda job_ids: {job_id: links.get(job_id, ()) for job_id in job_ids}


def _graph(
    session: Session, job_ids: Collection[int], links: Iterable[Link], is_cut: bool, actor: Actor
) -> JobGraph:
    jobs = states.find_graph_jobs(session, job_ids)
    visible = {job_id for job_id, job in jobs.items() if actor.may(job.job_group, Right.VIEW)}
    foreign = sorted(jobs.keys() - visible)
    number_of = {job_id: job_id for job_id in visible}
    number_of |= {job_id: -number for number, job_id in enumerate(foreign, 1)}
    rounds = states.find_last_rounds(session, visible)
    runs = states.find_last_run_states(session, visible)
    nodes = [_node(jobs[job_id], rounds.get(job_id, (None, None)), runs.get(job_id)) for job_id in visible]
    nodes += [GraphNode(number_of[job_id], None, None, False, "", is_foreign=True) for job_id in foreign]
    return JobGraph(
        tuple(sorted(nodes, key=lambda node: (node.is_foreign, abs(node.job_id)))),
        tuple(_edges(links, jobs, number_of)),
        is_cut,
    )


def _node(job: GraphJob, last_round: tuple[int | None, str | None], last_run: str | None) -> GraphNode:
    is_on = job.trigger_status == TriggerStatus.RUNNING
    return GraphNode(job.id, job.job_desc, job.job_group, is_on, job.schedule_type, *last_round, last_run)


def _edges(
    links: Iterable[Link], jobs: Mapping[int, GraphJob], number_of: Mapping[int, int]
) -> Iterable[GraphEdge]:
    for link in links:
        if link.source in number_of and link.target in number_of:
            runs_after = None if link.is_child else parse_runs_after(jobs[link.target].runs_after)
            yield GraphEdge(
                number_of[link.source],
                number_of[link.target],
                CHILD if link.is_child else AFTER,
                runs_after.rule.value if runs_after is not None else None,
            )
