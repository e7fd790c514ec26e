"""Layout of a graph of jobs: boxes apart, lines from left to right and beside the boxes, always the same."""

import random
import time
from itertools import pairwise

from app.domain.rounds.columns import Edge, find_parts
from app.domain.rounds.layout import BOX_HEIGHT, BOX_WIDTH, Layout, Line, lay_out
from tests.support.truth_table import truth_table

DIAMOND = [(1, 2), (1, 3), (2, 4), (3, 4)]
#: 7 is far to the right, so that the line from 1 passes four columns
LONG = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 7), (1, 7), (6, 7)]


def random_edges(count: int, jobs: int, *, is_cyclic: bool, seed: int = 7) -> list[Edge]:
    """Return that many different edges."""
    random_ = random.Random(seed)
    edges: set[Edge] = set()
    while len(edges) < count:
        source, target = random_.sample(range(jobs), 2)
        edges.add((source, target) if is_cyclic else (min(source, target), max(source, target)))
    return sorted(edges)


GRAPHS = [
    ([], []),
    ([7], []),
    ([3, 1, 2], []),
    ([1, 2, 3, 4], DIAMOND),
    ([1, 2, 3, 4], [*DIAMOND, (1, 4)]),
    (range(1, 8), LONG),
    ([1, 2, 3], [(1, 2), (2, 3), (3, 1)]),
    ([1, 2], [(1, 2), (2, 1)]),
    (range(60), [(0, job_id) for job_id in range(1, 60)]),
    (range(80), random_edges(140, 80, is_cyclic=False)),
    (range(80), random_edges(140, 80, is_cyclic=True)),
    (range(90), random_edges(40, 90, is_cyclic=False)),
]


@truth_table("job_ids, edges", GRAPHS)
def test_each_job_has_a_box_of_its_own_and_each_edge_a_line(job_ids: list[int], edges: list[Edge]) -> None:
    layout = lay_out(job_ids, edges)
    assert sorted(box.job_id for box in layout.boxes) == sorted(job_ids)
    assert sorted((line.source, line.target) for line in layout.lines) == sorted(edges)
    for left, right in pairwise(sorted(layout.boxes, key=lambda box: (box.x, box.y))):
        assert right.x >= left.x + BOX_WIDTH or (right.x == left.x and right.y > left.y + BOX_HEIGHT)
    for x, y in [(box.x + BOX_WIDTH, box.y + BOX_HEIGHT) for box in layout.boxes]:
        assert x < layout.width
        assert y < layout.height
    assert all(
        0 < x < layout.width and 0 < y < layout.height for line in layout.lines for x, y in line.points
    )


@truth_table("job_ids, edges", GRAPHS)
def test_lines_go_from_left_to_right_past_the_boxes(job_ids: list[int], edges: list[Edge]) -> None:
    layout = lay_out(job_ids, edges)
    place = {box.job_id: box for box in layout.boxes}
    for line in layout.lines:
        xs = [x for x, _y in line.points]
        assert xs == sorted(xs, reverse=line.is_back)
        left, right = (line.target, line.source) if line.is_back else (line.source, line.target)
        assert min(xs) == place[left].x + BOX_WIDTH
        assert max(xs) == place[right].x
        assert not passed_boxes(layout, line), line


def passed_boxes(layout: Layout, line: Line) -> list[int]:
    """Return the jobs through whose box a line goes."""
    return [
        box.job_id
        for box in layout.boxes
        for x, y in line.points[1:-1]
        if box.x <= x <= box.x + BOX_WIDTH and box.y <= y <= box.y + BOX_HEIGHT
    ]


@truth_table(
    "edges, closing",
    [
        (DIAMOND, []),
        ([(1, 2), (2, 3), (3, 1)], [(3, 1)]),
        ([(4, 1), (1, 2), (2, 1), (2, 3)], [(2, 1)]),
        # from the job that follows nothing, not from the first
        ([(1, 2), (2, 1), (3, 2)], [(1, 2)]),
    ],
)
def test_the_edge_that_closes_a_cycle_goes_back(edges: list[Edge], closing: list[Edge]) -> None:
    layout = lay_out(range(1, 5), edges)
    assert [(line.source, line.target) for line in layout.lines if line.is_back] == closing


@truth_table(
    "edges, columns",
    [
        (DIAMOND, {1: 0, 2: 1, 3: 1, 4: 2}),
        (LONG, {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 7: 5}),
        ([(1, 2), (9, 2)], {1: 0, 2: 1}),
    ],
)
def test_the_longest_path_gives_the_column(edges: list[Edge], columns: dict[int, int]) -> None:
    assert {box.job_id: box.column for box in lay_out(list(columns), edges).boxes} == columns


def test_trees_have_no_crossings_and_parents_stand_beside_the_middle_of_their_children() -> None:
    edges = [(1, 4), (1, 2), (2, 5), (4, 7), (4, 6), (2, 3)]
    y = {box.job_id: box.y for box in lay_out([1, 2, 3, 4, 5, 6, 7], edges).boxes}
    assert y[1] == (y[2] + y[4]) // 2
    assert (y[2] < y[4]) == (max(y[3], y[5]) < min(y[6], y[7]))


def test_five_hundred_jobs_are_laid_out_within_a_second_and_always_alike() -> None:
    edges = random_edges(1_000, 500, is_cyclic=True)
    started = time.perf_counter()
    layout = lay_out(range(500), edges)
    assert time.perf_counter() - started < 1
    assert layout == lay_out(range(500), edges)


def test_what_is_connected_is_found_largest_first() -> None:
    assert find_parts([1, 2, 3, 4, 5, 6], [(2, 3), (4, 3), (5, 6)]) == [[2, 3, 4], [5, 6], [1]]
