"""Rows of backfills: for their list, the page of one and the page of a job."""

from collections.abc import Iterable
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from app.console.ui.backfills.words import INSTANT_STATES, Look, look_of
from app.console.ui.lists.ranges import write_local
from app.console.web.current import settings
from app.domain.backfills.kinds import ACTIVE, InstantState
from app.models.backfill import Backfill
from app.services.backfills.listing import BackfillView
from app.settings.parsers import is_zone

#: states in the order of the bar
IN_BAR = (
    InstantState.SUCCEEDED,
    InstantState.FAILED,
    InstantState.RUNNING,
    InstantState.WITHDRAWN,
    InstantState.WAITING,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of the bar of a backfill, in thousandths of it."""

    state: InstantState
    count: int
    x: float
    width: float

    @property
    def look(self) -> Look:
        """How the state is shown."""
        return INSTANT_STATES[self.state]


@dataclass(frozen=True, slots=True)
class BackfillRow:
    """A backfill as a row."""

    view: BackfillView
    look: Look
    #: range of logical times, local time in the zone of the job
    range_text: str

    @property
    def row(self) -> Backfill:
        """What is stored of it."""
        return self.view.row

    @property
    def is_active(self) -> bool:
        """Whether something of it may still run."""
        return self.row.state in ACTIVE

    @property
    def pieces(self) -> list[Piece]:
        """The bar: a piece for each state that has instants."""
        pieces, x = list[Piece](), 0.0
        for state in IN_BAR:
            if count := self.view.counts.get(state, 0):
                width = round(1000 * count / max(1, self.row.total), 2)
                pieces.append(Piece(state, count, round(x, 2), width))
                x += width
        return pieces


def zone_of(name: str | None) -> ZoneInfo:
    """Return the zone of a job: its own, or the configured one, which also stands for one that is unknown."""
    return ZoneInfo(name if name and is_zone(name) else settings().time_zone)


def row_of(view: BackfillView, zone_name: str | None) -> BackfillRow:
    """Return the row of a backfill of a job with this zone."""
    zone, row = zone_of(zone_name), view.row
    ends = [write_local(ms, zone) for ms in (row.from_ms, row.to_ms)]
    look = look_of(row.state, view.counts.get(InstantState.FAILED, 0))
    return BackfillRow(view, look, " – ".join(text.removesuffix(":00") for text in ends))


def rows_of(views: Iterable[BackfillView], zone_names: dict[int, str]) -> list[BackfillRow]:
    """Return rows; ``zone_names``: job -> its own zone."""
    return [row_of(view, zone_names.get(view.row.job_id)) for view in views]
