"""Statements on `xxl_job_after`, and on the children of jobs: which jobs lead to which."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import case, exists, select, update
from sqlalchemy.orm import Session

from app.database.rows import bulk, deletion
from app.database.sql import direct
from app.database.sql.in_list import WANTED, among
from app.domain.jobs.children import valid_children
from app.models.job import Job
from app.models.round import After

#: limits of generations of jobs, and of ids of a statement; beyond them all links are read at once
GENERATIONS, GENERATION_IDS = 5, 1_000
_CHILDREN = select(Job.id, Job.child_jobid).where(Job.child_jobid != "")
_EDGES = select(After.predecessor_id, After.job_id)
_CHILDREN_OF = _CHILDREN.where(among(Job.id))
_FOLLOWERS_OF = _EDGES.where(among(After.predecessor_id))
_PREDECESSORS_OF = _EDGES.where(among(After.job_id))
_HAS_FOLLOWERS = case((exists().where(After.predecessor_id == Job.id), 1), else_=0)
_MARKED = (
    update(Job).where(among(Job.id), Job.has_followers != _HAS_FOLLOWERS).values(has_followers=_HAS_FOLLOWERS)
)


class Link(NamedTuple):
    """A job that leads to another one."""

    source: int
    target: int
    #: by `child_jobid`, not by `runs_after`
    is_child: bool = False


class JobLinks(NamedTuple):
    """Links of a job that is about to be saved."""

    #: 0: it is new
    job_id: int
    children: Collection[int]
    predecessors: Collection[int]


class Followers:
    """Followers of jobs, read as they are needed, a generation at a time; of long chains all at once.

    ``saved``: links that count in place of those that are stored of the same job.
    """

    def __init__(self, session: Session, links: JobLinks | None = None) -> None:
        self._session, self._generation, self._has_all = session, 0, False
        self._known: dict[int, set[int]] = {}
        self._saved_id = links.job_id if links is not None else None
        self._added: dict[int, Collection[int]] = {}
        if links is not None:
            self._added = dict.fromkeys(links.predecessors, (links.job_id,))
            self._added[links.job_id] = links.children

    def __call__(self, job_ids: Collection[int]) -> Mapping[int, Collection[int]]:
        """Return job id -> the jobs that follow it at once, by links of both kinds."""
        missing = [] if self._has_all else [job_id for job_id in job_ids if job_id not in self._known]
        if missing:
            self._generation += 1
            self._has_all = self._generation > GENERATIONS or len(missing) > GENERATION_IDS
            self._known |= {job_id: set() for job_id in missing}
            for link in read_links(self._session, None if self._has_all else missing):
                if self._saved_id != (link.source if link.is_child else link.target):
                    self._known.setdefault(link.source, set()).add(link.target)
        return {job_id: {*self._known.get(job_id, ()), *self._added.get(job_id, ())} for job_id in job_ids}


def read_links(session: Session, job_ids: Collection[int] | None = None) -> list[Link]:
    """Return the links that begin at these jobs (None: all), those of `runs_after` first."""
    if job_ids is None:
        edges, parents = bulk.read_rows(session, _EDGES), bulk.read_rows(session, _CHILDREN)
    else:
        parameters = {WANTED: list(job_ids)}
        edges = bulk.read_rows(session, _FOLLOWERS_OF, parameters)
        parents = bulk.read_rows(session, _CHILDREN_OF, parameters)
    links = [Link(row[0], row[1]) for row in edges]
    children = ((row[0], child) for row in parents for child in valid_children(row[1], row[0]))
    return links + [Link(job_id, child, is_child=True) for job_id, child in children]


def read_edges(session: Session, job_ids: Collection[int]) -> list[Link]:
    """Return the links of `runs_after` that begin at these jobs."""
    rows = bulk.read_rows(session, _FOLLOWERS_OF, {WANTED: list(job_ids)})
    return [Link(row[0], row[1]) for row in rows]


def read_all_edges(session: Session) -> list[Link]:
    """Return all links of `runs_after`."""
    return sorted(Link(row[0], row[1]) for row in bulk.read_rows(session, _EDGES))


def find_predecessors(session: Session, job_ids: Collection[int]) -> list[Link]:
    """Return the links of `runs_after` that end at these jobs."""
    rows = bulk.read_rows(session, _PREDECESSORS_OF, {WANTED: list(job_ids)})
    return [Link(row[0], row[1]) for row in rows]


def replace_edges(session: Session, job_ids: Collection[int], edges: Sequence[Link]) -> None:
    """Store what these jobs run after in place of what was there, and which jobs have followers.

    The caller has locked the jobs and their predecessors, former and new.
    """
    leader_ids = {link.source for link in (*find_predecessors(session, job_ids), *edges)}
    deletion.by_values(session, After, "job_id", sorted(job_ids))
    rows = [{"job_id": link.target, "predecessor_id": link.source} for link in edges]
    bulk.insert_many(session, After, sorted(rows, key=lambda row: (row["job_id"], row["predecessor_id"])))
    mark_followed(session, leader_ids)


def mark_followed(session: Session, job_ids: Collection[int]) -> None:
    """Write which of these locked jobs have followers."""
    if job_ids:
        direct.change(session, _MARKED, {WANTED: sorted(job_ids)})
