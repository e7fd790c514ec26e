"""Clock notes: sentences on runs that a change of the clocks leaves out or moves, and on ended schedules."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from flask_babel import format_date

from app.clock import LATEST_MS, Millis
from app.console.web.language import _
from app.domain.schedules.clock_changes import ClockChange, Silence


@dataclass(frozen=True, slots=True)
class ClockNote:
    """What a change of the clocks does to a schedule."""

    at_ms: Millis
    text: str
    #: whether a run is left out
    is_lost: bool = False
    #: what would run on each day; empty if nothing is left out
    hint: str = ""


def clock_note(change: ClockChange, zone_name: str) -> ClockNote:
    """Return the note about a change: "28 March 2027: 02:30 does not exist in Europe/Berlin, no run"."""
    clocks = [f"{local:%H:%M:%S}".removesuffix(":00") for local in change.local_times]
    day = format_date(change.local_times[0].date(), "long")
    values = {
        "day": day,
        "times": ", ".join(clocks) + (" …" if change.has_more else ""),
        "zone": zone_name,
    }
    if not change.is_gap:
        twice = len(change.runs_ms) > 1
        text = _("%(day)s: %(times)s occurs twice in %(zone)s, runs twice", **values)
        once = _("%(day)s: %(times)s occurs twice in %(zone)s, runs once", **values)
        return ClockNote(change.at_ms, text if twice else once)
    if change.runs_ms:
        first = datetime.fromtimestamp(min(change.runs_ms[0], LATEST_MS) / 1000, ZoneInfo(zone_name))
        text = _(
            "%(day)s: %(times)s does not exist in %(zone)s, runs at %(at)s", at=f"{first:%H:%M}", **values
        )
        return ClockNote(change.at_ms, text)
    text = _("%(day)s: %(times)s does not exist in %(zone)s, no run", **values)
    later = change.local_times[0] + max(change.shift, timedelta(hours=1))
    hint = _("%(time)s exists on every day.", time=f"{later:%H:%M}")
    return ClockNote(change.at_ms, text, is_lost=True, hint=hint)


def silence_text(silence: Silence | None, zone_name: str) -> str:
    """Return why a schedule never fires again."""
    match silence:
        case Silence.WINDOW:
            return _("It never fires again: its window ends before the next time.")
        case Silence.CLOCKS:
            return _(
                "It never fires again: all its times are in an hour that does not exist in %(zone)s.",
                zone=zone_name,
            )
        case _:
            return _("It never fires again: no such time is still to come.")
