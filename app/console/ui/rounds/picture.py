"""Picture of what jobs run after: a box for each job, arrows between them, and the same as rows of a table.

The template is macros/graph.html. Links are in the order of the columns, so the keyboard goes left to right.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from flask import url_for

from app.console.web.language import lazy_gettext as _l
from app.domain.enums import ScheduleType
from app.domain.rounds.columns import Edge, find_parts
from app.domain.rounds.kinds import RoundRule, RoundState
from app.domain.rounds.layout import BOX_HEIGHT, BOX_WIDTH, Box, Layout, Line, lay_out
from app.domain.runs.outcome import STATES
from app.services.rounds.graph import CHILD, GraphEdge, GraphNode, JobGraph

#: rules that are named in the box of a job: in short, and in a sentence
RULES = {
    RoundRule.ALL_ENDED: (_l("all ended"), _l("Runs once all before it have ended")),
    RoundRule.ANY_SUCCEEDED: (_l("any one"), _l("Runs once one before it has succeeded")),
    RoundRule.K_OF_N: (_l("some of them"), _l("Runs once some before it have succeeded")),
}
#: states of runs that are shown even if a round is open
_UNDER_WAY = frozenset({"running", "waiting"})
#: state of a run -> outcome, as pages call it
_OUTCOMES = {state: outcome for outcome, state in STATES.items()} | {"waiting": "sending"}
#: colour of a box by its state
_TONES = {
    **dict.fromkeys(("failed", "timeout", "killed", "refused"), "danger"),
    **dict.fromkeys(("unresolved", "sending", RoundState.OPEN, RoundState.NOT_RUN), "warning"),
    "success": "success",
    "running": "info",
}


@dataclass(frozen=True, slots=True)
class Card:
    """Box of a job, or of connected jobs that are not drawn one by one."""

    job_id: int
    x: int
    y: int
    #: None: of a group that the reader may not view
    name: str | None
    href: str
    #: None: it has no schedule to be switched
    is_on: bool | None = None
    #: outcome of its last run, or state of its last round if that was not run or is open
    state: str = ""
    rule: RoundRule | None = None
    is_current: bool = False
    #: number of jobs it stands for
    count: int = 1

    @property
    def tone(self) -> str:
        """Colour of its state."""
        return _TONES.get(self.state, "none")

    @property
    def rule_words(self) -> tuple[str, str] | None:
        """Rule by which it runs, in short and as a sentence; None: the usual one."""
        return RULES.get(self.rule) if self.rule is not None else None


@dataclass(frozen=True, slots=True)
class Arrow:
    """Arrow to a job that follows: classes and path."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The other end of an arrow, for the table."""

    card: Card
    is_child: bool


@dataclass(frozen=True, slots=True)
class Row:
    """Row of the table: a job, what it runs after, and what follows it."""

    card: Card
    before: list[Neighbour]
    after: list[Neighbour]


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes, arrows, and the rows of the table."""

    cards: list[Card]
    arrows: list[Arrow]
    rows: list[Row]
    width: int
    height: int
    #: kinds of arrows that there are, for the legend
    kinds: Collection[str]
    #: whether each box stands for connected jobs
    is_summary: bool = False
    box_width: int = BOX_WIDTH
    box_height: int = BOX_HEIGHT


def picture_of(graph: JobGraph, current_id: int | None = None) -> Picture:
    """Return the picture of a graph; the job ``current_id`` is marked in it."""
    rules = {edge.target: RoundRule(edge.rule) for edge in graph.edges if edge.rule}
    layout = _layout(
        tuple(node.job_id for node in graph.nodes), tuple((edge.source, edge.target) for edge in graph.edges)
    )
    nodes = {node.job_id: node for node in graph.nodes}
    cards = [_card(nodes[box.job_id], box, rules.get(box.job_id), current_id) for box in layout.boxes]
    kinds = _kinds(graph.edges)
    arrows = [_arrow(line, kinds[line.source, line.target], current_id) for line in layout.lines]
    arrows.sort(key=lambda arrow: "own" in arrow.kind)  # above the others
    present = {word for arrow in arrows for word in arrow.kind.split()}
    return Picture(
        cards, arrows, list(_rows(cards, graph.edges)), layout.width, layout.height, frozenset(present)
    )


def summary_of(graph: JobGraph) -> Picture:
    """Return a box for each set of connected jobs of a graph with too many jobs, the largest first."""
    nodes = {node.job_id: node for node in graph.nodes}
    follows = {edge.target for edge in graph.edges}
    sets = find_parts(list(nodes), [(edge.source, edge.target) for edge in graph.edges])
    firsts = {_first(ids, nodes, follows): len(ids) for ids in sets}
    layout = _layout(tuple(firsts), ())
    place = {box.job_id: box for box in layout.boxes}
    cards = [_set_card(nodes[job_id], place[job_id], count) for job_id, count in firsts.items()]
    return Picture(cards, [], [], layout.width, layout.height, frozenset(), is_summary=True)


def _first(ids: Sequence[int], nodes: dict[int, GraphNode], follows: Collection[int]) -> int:
    """Return the job after which they are called: one that the reader may view, and that is first."""
    return min(ids, key=lambda job_id: (nodes[job_id].is_foreign, job_id in follows, abs(job_id)))


@lru_cache(8)
def _layout(job_ids: tuple[int, ...], edges: tuple[Edge, ...]) -> Layout:
    """Return the layout; a page that is refreshed has the same one each time."""
    return lay_out(job_ids, edges)


def _card(node: GraphNode, box: Box, rule: RoundRule | None, current_id: int | None) -> Card:
    if node.is_foreign:
        return Card(node.job_id, box.x, box.y, None, "")
    return Card(
        node.job_id,
        box.x,
        box.y,
        node.name or "",
        url_for("jobs.show", job_id=node.job_id),
        is_on=None if node.schedule_type == ScheduleType.NONE else node.is_on,
        state=_state(node),
        rule=rule,
        is_current=node.job_id == current_id,
    )


def _set_card(node: GraphNode, box: Box, count: int) -> Card:
    href = "" if node.is_foreign else url_for("job_graph.show", job_id=node.job_id)
    return Card(node.job_id, box.x, box.y, node.name, href, count=count)


def _state(node: GraphNode) -> str:
    """Return what a box shows: a run under way, a round that was not run or is open, or else the last run."""
    if node.last_run_state in _UNDER_WAY or node.last_round_state in (None, RoundState.STARTED):
        return _OUTCOMES.get(node.last_run_state or "", "")
    return node.last_round_state or ""


def _kinds(edges: Iterable[GraphEdge]) -> dict[Edge, str]:
    """Return the kind of each arrow; a job may be both child and follower of another one."""
    kinds: dict[Edge, str] = {}
    for edge in edges:
        if kinds.get((edge.source, edge.target)) != "after":
            kinds[edge.source, edge.target] = CHILD if edge.kind == CHILD else "after"
    return kinds


def _arrow(line: Line, kind: str, current_id: int | None) -> Arrow:
    words = [kind]
    words += ["back"] if line.is_back else []
    words += ["own"] if current_id in (line.source, line.target) else []
    return Arrow(" ".join(words), _path(line))


def _path(line: Line) -> str:
    """Return the path of a line: a curve between two columns, straight past the boxes of a column."""
    (x, y), *others = line.points
    path = [f"M{x} {y}"]
    for place, (to_x, to_y) in enumerate(others):
        if place % 2:
            path.append(f"H{to_x}")
        else:
            middle = (x + to_x) // 2
            path.append(f"C{middle} {y} {middle} {to_y} {to_x} {to_y}")
        x, y = to_x, to_y
    return "".join(path)


def _rows(cards: Sequence[Card], edges: Iterable[GraphEdge]) -> Iterable[Row]:
    card_of = {card.job_id: card for card in cards}
    before: dict[int, list[Neighbour]] = defaultdict(list)
    after: dict[int, list[Neighbour]] = defaultdict(list)
    for edge in edges:
        is_child = edge.kind == CHILD
        after[edge.source].append(Neighbour(card_of[edge.target], is_child))
        before[edge.target].append(Neighbour(card_of[edge.source], is_child))
    for card in cards:
        yield Row(card, before[card.job_id], after[card.job_id])
