"""Links between the jobs of a plan: those that are stored, and circles that the plan would close."""

from collections.abc import Callable, Collection, Iterable, Mapping

from sqlalchemy.orm import Session

from app.domain.code.document import JOBS, Members, place
from app.domain.jobs.members import CHILDREN
from app.domain.rounds.cycles import circle_of_each, find_path, reachable
from app.domain.rounds.runs_after import RUNS_AFTER
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.store.jobs import listing as job_lists
from app.store.rounds import edges
from app.store.rounds.edges import Link

#: job id -> group id and ids of child jobs
Links = Mapping[int, tuple[int, Collection[int]]]
#: job id -> ids of the jobs that run after it
Followers = Mapping[int, Collection[int]]


def find_links(session: Session, job_ids: Collection[int]) -> tuple[Links, Followers]:
    """Return the links of these jobs, of all that follow them, and of their predecessors.

    Of those that exist. Where jobs run after others, all links are read at once.
    """
    rows = edges.read_all_edges(session)
    if not rows:
        return job_lists.find_descendants(session, job_ids), {}
    links, followers = job_lists.find_links(session), dict[int, list[int]]()
    for link in rows:
        followers.setdefault(link.source, []).append(link.target)

    def next_jobs(ids: Collection[int]) -> dict[int, set[int]]:
        children = {job_id: links[job_id][1] if job_id in links else () for job_id in ids}
        return {job_id: {*children[job_id], *followers.get(job_id, ())} & links.keys() for job_id in ids}

    own_ids = links.keys() & set(job_ids)
    near, _ = reachable(own_ids, next_jobs, most=len(links))
    before = {link.source for link in rows if link.target in near}
    return (
        {job_id: links[job_id] for job_id in sorted((near | before) & links.keys())},
        {job_id: followers[job_id] for job_id in sorted((near | before) & followers.keys())},
    )


def check_circles(
    wishes: Mapping[int, Members], links: Links, followers: Followers, name_of: Callable[[int], str]
) -> None:
    """Raise InvalidInput if jobs would trigger each other forever because of a plan.

    ``wishes``: members of the planned jobs, by id.
    """
    old = {Link(job_id, child, True) for job_id, (_, children) in links.items() for child in children}
    old |= {Link(job_id, follower) for job_id, ids in followers.items() for follower in ids}
    new_links = {link for link in old if not _is_replaced(link, wishes)} | set(_links_of(wishes))
    leads_to: dict[int, set[int]] = {}
    for link in new_links:
        leads_to.setdefault(link.source, set()).add(link.target)
    circles = circle_of_each(leads_to)
    for link in sorted(new_links - old):
        if link.source not in circles or circles[link.source] != circles.get(link.target):
            continue
        path = find_path(
            link.target, link.source, lambda ids: {job_id: leads_to.get(job_id, ()) for job_id in ids}
        )
        names = [name_of(job_id) for job_id in (link.source, *path)]
        problem = N_("These jobs would trigger each other forever: %(jobs)s", jobs=" → ".join(names))
        where = (CHILDREN, link.source) if link.is_child else (RUNS_AFTER, link.target)
        raise InvalidInput(place(JOBS, name_of(where[1]), where[0]), problem)


def _is_replaced(link: Link, wishes: Mapping[int, Members]) -> bool:
    """Whether a plan names the member that a stored link comes from."""
    if link.is_child:
        return CHILDREN in wishes.get(link.source, ())
    return RUNS_AFTER in wishes.get(link.target, ())


def _links_of(wishes: Mapping[int, Members]) -> Iterable[Link]:
    for job_id, members in wishes.items():
        yield from (Link(job_id, child, True) for child in members.get(CHILDREN, ()))
        yield from (
            Link(predecessor_id, job_id) for predecessor_id in (members.get(RUNS_AFTER) or {}).get("jobs", ())
        )
