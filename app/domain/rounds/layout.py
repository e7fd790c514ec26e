"""Layout of a graph of jobs: columns from left to right, boxes that do not overlap, lines between them. Pure.

The method of Sugiyama: lines that close a cycle are turned round, the longest path gives each job its column,
points stand for lines that pass a column, barycentres order the columns, and isotonic regression aligns what
is connected. The result depends on the order of jobs and edges only. Lengths are pixels.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from app.domain.rounds.columns import (
    Edge,
    closing_edges,
    columns_by_longest_path,
    find_parts,
    first_order,
    mean_of,
    order_columns,
)

#: a box, what is between two columns and between two boxes of a column, the edge of the picture
BOX_WIDTH, BOX_HEIGHT, COLUMN_GAP, ROW_GAP, MARGIN = 224, 56, 56, 16, 16
#: between a line that passes a column and its neighbours there
LINE_GAP = 14
#: between jobs that are not connected
PART_GAP = 36
#: columns of jobs without any edge, if nothing else makes the picture wider
SINGLE_COLUMNS = 5
#: most points of lines in columns that they pass; the longest lines go without, and may pass behind boxes
POINTS_MAX = 5_000
#: passes over the columns to align them
ALIGNING_SWEEPS = 6
#: how much more a line is kept straight than a box is kept beside its neighbours
LINE_WEIGHT = 32

Point = tuple[int, int]


class Box(NamedTuple):
    """Place of a job: its upper left corner."""

    job_id: int
    column: int
    x: int
    y: int


class Line(NamedTuple):
    """Line from a job to one that follows it: a curve between each two points, straight within a column."""

    source: int
    target: int
    points: tuple[Point, ...]
    #: whether it closes a cycle and so goes from right to left
    is_back: bool = False


class Layout(NamedTuple):
    """Places of all boxes, column by column from left to right, and the lines."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int


def lay_out(job_ids: Sequence[int], edges: Sequence[Edge]) -> Layout:
    """Return the picture of jobs and the edges between them, without edges to jobs that are not there."""
    own_ids = frozenset(job_ids)
    inner = [edge for edge in dict.fromkeys(edges) if own_ids.issuperset(edge) and edge[0] != edge[1]]
    parts, singles = _parts_of(job_ids, inner)
    boxes: list[Box] = []
    lines: list[Line] = []
    top = MARGIN
    for ids, of_part in parts:
        part = _Part(ids, of_part)
        boxes += part.boxes(top)
        lines += part.lines(top)
        top += part.height + PART_GAP
    columns = max([SINGLE_COLUMNS if len(singles) > 1 else 1, *(box.column + 1 for box in boxes)])
    for place, job_id in enumerate(singles):
        row, column = divmod(place, columns)
        boxes.append(Box(job_id, column, _left(column), top + row * (BOX_HEIGHT + ROW_GAP)))
    boxes.sort(key=lambda box: (box.column, box.y))
    width = max((box.x + BOX_WIDTH for box in boxes), default=0) + MARGIN
    bottom = max((y for line in lines for _x, y in line.points), default=0)
    height = max((box.y + BOX_HEIGHT for box in boxes), default=0)
    return Layout(tuple(boxes), tuple(lines), width, max(bottom, height) + MARGIN)


def _parts_of(
    job_ids: Sequence[int], edges: Sequence[Edge]
) -> tuple[list[tuple[list[int], list[Edge]]], list[int]]:
    """Return the connected jobs with their edges, and the jobs without any."""
    sets = find_parts(job_ids, edges)
    part_of = {job_id: number for number, ids in enumerate(sets) for job_id in ids}
    of_part: list[list[Edge]] = [[] for _ in sets]
    for source, target in edges:
        of_part[part_of[source]].append((source, target))
    parts = [(ids, between) for ids, between in zip(sets, of_part, strict=True) if between]
    return parts, [ids[0] for ids, between in zip(sets, of_part, strict=True) if not between]


class _Part:
    """Connected jobs: vertices are the jobs, by place in the list, and after them the points of lines."""

    def __init__(self, job_ids: Sequence[int], edges: Sequence[Edge]) -> None:
        self._ids = job_ids
        place = {job_id: vertex for vertex, job_id in enumerate(job_ids)}
        self._edges = [(place[source], place[target]) for source, target in edges]
        self._back = closing_edges(len(job_ids), self._edges)
        ahead = [edge[::-1] if edge in self._back else edge for edge in self._edges]
        self._column_of = columns_by_longest_path(len(job_ids), ahead)
        #: edge -> its vertices from left to right
        self._paths = self._with_points()
        links = {link for path in self._paths.values() for link in pairwise(path) if self._is_link(*link)}
        before: list[list[int]] = [[] for _ in self._column_of]
        after: list[list[int]] = [[] for _ in self._column_of]
        for left, right in sorted(links):
            before[right].append(left)
            after[left].append(right)
        columns = order_columns(first_order(self._column_of, before, after), before, after)
        self._middles = self._align(columns, before, after)
        tops = [self._middles[vertex] - BOX_HEIGHT // 2 for vertex in range(len(job_ids))]
        self._top = min([*tops, *self._middles])
        self.height = max([*(top + BOX_HEIGHT for top in tops), *self._middles]) - self._top

    def boxes(self, top: int) -> list[Box]:
        """Return the boxes, the highest of them at ``top``."""
        return [
            Box(
                job_id,
                column := self._column_of[vertex],
                _left(column),
                self._middles[vertex] - BOX_HEIGHT // 2 - self._top + top,
            )
            for vertex, job_id in enumerate(self._ids)
        ]

    def lines(self, top: int) -> list[Line]:
        """Return the lines between the boxes."""
        lines = []
        for edge in self._edges:
            is_back = edge in self._back
            points: list[Point] = []
            for vertex in self._paths[edge]:
                left, y = _left(self._column_of[vertex]), self._middles[vertex] - self._top + top
                points += [(left, y), (left + BOX_WIDTH, y)]
            points = points[1:-1]
            source, target = (self._ids[vertex] for vertex in edge)
            lines.append(Line(source, target, tuple(points[::-1] if is_back else points), is_back))
        return lines

    def _with_points(self) -> dict[Edge, list[int]]:
        """Return the vertices of each edge from left to right.

        Edges of one job share their points in the columns that they pass, those that close a cycle apart.
        """
        points: dict[tuple[int, bool, int], int] = {}
        paths: dict[Edge, list[int]] = {}
        for edge in sorted(self._edges, key=self._length):
            is_back = edge in self._back
            left, right = edge[::-1] if is_back else edge
            between = range(self._column_of[left] + 1, self._column_of[right])
            if len(points) + len(between) > POINTS_MAX:
                between = range(0)
            keys = [(left, is_back, column) for column in between]
            for key in keys:
                if key not in points:
                    points[key] = len(self._column_of)
                    self._column_of.append(key[-1])
            paths[edge] = [left, *(points[key] for key in keys), right]
        return paths

    def _length(self, edge: Edge) -> int:
        """Return over how many columns an edge goes."""
        return abs(self._column_of[edge[1]] - self._column_of[edge[0]])

    def _is_link(self, left: int, right: int) -> bool:
        """Whether two vertices are in neighbouring columns; only those order and align them."""
        return self._column_of[right] - self._column_of[left] == 1

    def _align(
        self, columns: Sequence[list[int]], before: Sequence[list[int]], after: Sequence[list[int]]
    ) -> list[int]:
        """Return how far down the middle of each vertex is."""
        middles = [0.0] * len(self._column_of)
        offsets = [self._offsets(column) for column in columns]
        for column, at in zip(columns, offsets, strict=True):
            for vertex, offset in zip(column, at, strict=True):
                middles[vertex] = offset - at[-1] / 2
        for sweep in range(ALIGNING_SWEEPS + 1):
            is_forward = sweep % 2 == 0
            neighbours = before if is_forward else after
            for number in range(len(columns))[:: 1 if is_forward else -1]:
                column = columns[number]
                wishes = [
                    mean_of([middles[v] for v in neighbours[vertex]], middles[vertex]) for vertex in column
                ]
                weights = [self._weight(vertex, neighbours[vertex]) for vertex in column]
                for vertex, y in zip(column, _isotonic(wishes, weights, offsets[number]), strict=True):
                    middles[vertex] = y
        return [int(middle) for middle in middles]

    def _offsets(self, column: Sequence[int]) -> list[int]:
        """Return how far below the first vertex of a column the others are at least."""
        offsets = [0]
        for upper, lower in pairwise(column):
            boxes = sum(vertex < len(self._ids) for vertex in (upper, lower))
            gap = ROW_GAP if boxes == 2 else LINE_GAP
            offsets.append(offsets[-1] + boxes * BOX_HEIGHT // 2 + gap)
        return offsets

    def _weight(self, vertex: int, neighbours: Sequence[int]) -> int:
        """Return how important it is that a vertex is where its neighbours are."""
        if vertex < len(self._ids):
            return 1
        return LINE_WEIGHT if any(other >= len(self._ids) for other in neighbours) else 2


def _isotonic(wishes: Sequence[float], weights: Sequence[int], offsets: Sequence[int]) -> list[int]:
    """Return whole numbers near the wishes that are at least as far apart as the offsets."""
    blocks: list[tuple[float, int, int]] = []  # mean, weight, count
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        mean, count = wish - offset, 1
        while blocks and blocks[-1][0] > mean:
            upper, upper_weight, upper_count = blocks.pop()
            mean = (mean * weight + upper * upper_weight) / (weight + upper_weight)
            weight, count = weight + upper_weight, count + upper_count
        blocks.append((mean, weight, count))
    means = [round(mean) for mean, _weight, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _left(column: int) -> int:
    return MARGIN + column * (BOX_WIDTH + COLUMN_GAP)
