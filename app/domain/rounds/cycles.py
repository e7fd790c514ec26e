"""Paths between jobs: how one leads to another, by `runs_after` and children. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping

#: takes job ids; returns job id -> ids of the jobs that follow it at once
FollowersOf = Callable[[Collection[int]], Mapping[int, Collection[int]]]


def find_path(start: int, goal: int, followers_of: FollowersOf) -> list[int]:
    """Return a shortest path from one job to another, both included; empty if there is none.

    Followers are looked up one generation at a time.
    """
    came_from: dict[int, int | None] = {start: None}
    generation = [start]
    while generation and goal not in came_from:
        links = followers_of(generation)
        next_generation = list[int]()
        for job_id in generation:
            for follower in sorted(links.get(job_id, ())):
                if follower not in came_from:
                    came_from[follower] = job_id
                    next_generation.append(follower)
        generation = next_generation
    path = list[int]()
    step = goal if goal in came_from else None
    while step is not None:
        path.append(step)
        step = came_from[step]
    return path[::-1]


def reachable(starts: Iterable[int], followers_of: FollowersOf, *, most: int) -> tuple[set[int], bool]:
    """Return these jobs and all that follow them, the nearest ones first, and whether there are more."""
    job_ids = set(starts)
    generation: Collection[int] = sorted(job_ids)
    while generation:
        following = {job_id for ids in followers_of(generation).values() for job_id in ids} - job_ids
        generation = sorted(following)[: max(0, most - len(job_ids))]
        job_ids.update(generation)
        if len(generation) < len(following):
            return job_ids, True
    return job_ids, False


def find_cycles(followers: Mapping[int, Collection[int]], *, most: int) -> list[list[int]]:
    """Return a cycle of each set of jobs that lead to each other, from its lowest id, at most so many."""
    circles = circle_of_each(followers)
    cycles = list[list[int]]()
    for job_id in sorted({number: min(ids) for number, ids in _by_circle(circles).items()}.values()):
        inside = {follower for follower in followers[job_id] if circles.get(follower) == circles[job_id]}
        paths = (find_path(follower, job_id, _lookup(followers)) for follower in sorted(inside))
        shortest = min(paths, key=len)
        cycles.append([job_id, *shortest[:-1]])
        if len(cycles) == most:
            break
    return cycles


def circle_of_each(followers: Mapping[int, Collection[int]]) -> dict[int, int]:
    """Return job id -> number of its circle, of the jobs that lead to themselves.

    Two jobs of one circle lead to each other. In the order in which a walk leaves the jobs, the last one that
    can still be reached backwards begins a circle (Kosaraju's algorithm).
    """
    leaders: dict[int, list[int]] = {}
    for job_id, ids in followers.items():
        for follower in ids:
            leaders.setdefault(follower, []).append(job_id)
    circles, visits = dict[int, int](), set[int]()
    for number, start in enumerate(reversed(_left_last(followers)), 1):
        if start in visits:
            continue
        members, waiting = list[int](), [start]
        visits.add(start)
        while waiting:
            members.append(waiting.pop())
            before = [job_id for job_id in leaders.get(members[-1], ()) if job_id not in visits]
            visits.update(before)
            waiting += dict.fromkeys(before)
        if len(members) > 1 or start in followers.get(start, ()):
            circles |= dict.fromkeys(members, number)
    return circles


def _left_last(followers: Mapping[int, Collection[int]]) -> list[int]:
    """Return all jobs in the order in which a walk in depth leaves them."""
    left, visits = list[int](), set[int]()
    for start in followers:
        branches = [(start, iter(followers[start]))] if start not in visits else []
        visits.add(start)
        while branches:
            job_id, rest = branches[-1]
            follower = next((job_id for job_id in rest if job_id not in visits), None)
            if follower is None:
                left.append(job_id)
                branches.pop()
            else:
                visits.add(follower)
                branches.append((follower, iter(followers.get(follower, ()))))
    return left


def _by_circle(circles: Mapping[int, int]) -> dict[int, list[int]]:
    members: dict[int, list[int]] = {}
    for job_id, number in circles.items():
        members.setdefault(number, []).append(job_id)
    return members


def _lookup(followers: Mapping[int, Collection[int]]) -> FollowersOf:
    return lambda job_ids: {job_id: followers.get(job_id, ()) for job_id in job_ids}
