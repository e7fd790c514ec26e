"""Columns of a graph of jobs: what is connected, which column each job gets, and their order in it. Pure.

Vertices are numbers from 0. Longest paths, and barycentres against crossings.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence

#: passes over the columns to order them
ORDERING_SWEEPS = 6

Edge = tuple[int, int]


def find_parts(job_ids: Sequence[int], edges: Iterable[Edge]) -> list[list[int]]:
    """Return the jobs that are connected with each other, the largest sets first."""
    neighbours: dict[int, list[int]] = {job_id: [] for job_id in job_ids}
    for source, target in edges:
        neighbours[source].append(target)
        neighbours[target].append(source)
    numbers: dict[int, int] = {}
    count = 0
    for first in job_ids:
        if first in numbers:
            continue
        numbers[first], waiting = count, [first]
        while waiting:
            fresh = [job_id for job_id in dict.fromkeys(neighbours[waiting.pop()]) if job_id not in numbers]
            numbers |= dict.fromkeys(fresh, count)
            waiting += fresh
        count += 1
    sets: list[list[int]] = [[] for _ in range(count)]
    for job_id in dict.fromkeys(job_ids):
        sets[numbers[job_id]].append(job_id)
    return sorted(sets, key=len, reverse=True)


def closing_edges(count: int, edges: Sequence[Edge]) -> frozenset[Edge]:
    """Return the edges that close a cycle, found from the jobs that follow nothing."""
    after: list[list[int]] = [[] for _ in range(count)]
    follows = [False] * count
    for source, target in edges:
        after[source].append(target)
        follows[target] = True
    closing: set[Edge] = set()
    state = [0] * count  # 1: on the way, 2: left
    for root in sorted(range(count), key=lambda vertex: (follows[vertex], vertex)):
        if state[root]:
            continue
        state[root], way = 1, [(root, iter(after[root]))]
        while way:
            vertex, others = way[-1]
            for other in others:
                if state[other] == 1:
                    closing.add((vertex, other))
                elif not state[other]:
                    state[other] = 1
                    way.append((other, iter(after[other])))
                    break
            else:
                state[vertex] = 2
                way.pop()
    return frozenset(closing)


def columns_by_longest_path(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return the column of each job; one that follows nothing stands just before its first follower."""
    after: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for source, target in edges:
        after[source].append(target)
        missing[target] += 1
    columns = [0] * count
    roots = [vertex for vertex in range(count) if not missing[vertex]]
    ready = list(roots)
    while ready:
        vertex = ready.pop()
        for other in after[vertex]:
            columns[other] = max(columns[other], columns[vertex] + 1)
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    for vertex in roots:
        columns[vertex] = min((columns[other] for other in after[vertex]), default=1) - 1
    return columns


def first_order(
    column_of: Sequence[int], before: Sequence[list[int]], after: Sequence[list[int]]
) -> list[list[int]]:
    """Return the vertices by column in the order of a walk, which leaves trees without crossings."""
    columns: list[list[int]] = [[] for _ in range(max(column_of) + 1)]
    marks = [False] * len(column_of)
    for first in sorted(range(len(column_of)), key=lambda vertex: (column_of[vertex], vertex)):
        waiting = [first]
        while waiting:
            vertex = waiting.pop()
            if not marks[vertex]:
                marks[vertex] = True
                columns[column_of[vertex]].append(vertex)
                waiting += [*before[vertex], *reversed(after[vertex])]
    return columns


def order_columns(
    columns: list[list[int]], before: Sequence[list[int]], after: Sequence[list[int]]
) -> list[list[int]]:
    """Return the order of the columns with the fewest crossings that barycentres find."""
    best, fewest = columns, _crossings(columns, after)
    for sweep in range(ORDERING_SWEEPS):
        if not fewest:
            break
        columns = [list(column) for column in columns]
        is_forward = sweep % 2 == 0
        neighbours = before if is_forward else after
        place = {vertex: float(at) for column in columns for at, vertex in enumerate(column)}
        for column in columns[:: 1 if is_forward else -1]:
            means = {
                vertex: mean_of([place[v] for v in neighbours[vertex]], place[vertex]) for vertex in column
            }
            column.sort(key=means.__getitem__)
            place.update((vertex, float(at)) for at, vertex in enumerate(column))
        crossings = _crossings(columns, after)
        if crossings < fewest:
            best, fewest = columns, crossings
    return best


def _crossings(columns: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> int:
    place = {vertex: at for column in columns for at, vertex in enumerate(column)}
    count = 0
    for column in columns:
        ends: list[int] = []
        for vertex in column:
            targets = sorted(place[other] for other in after[vertex])
            count += sum(len(ends) - bisect_right(ends, target) for target in targets)
            for target in targets:
                insort(ends, target)
    return count


def mean_of(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
