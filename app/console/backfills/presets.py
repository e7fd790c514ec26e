"""Ranges that the form of a backfill offers, up to the present second."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from app.clock import Millis
from app.console.ui.lists.listing import address_with
from app.console.web.language import lazy_gettext as _l

#: name -> title, days before today with which it begins and ends; None: it ends now
PRESETS: Mapping[str, tuple[str, int, int | None]] = {
    "today": (_l("Today"), 0, None),
    "yesterday": (_l("Yesterday"), 1, 0),
    "7days": (_l("Last 7 days"), 6, None),
    "30days": (_l("Last 30 days"), 29, None),
    "90days": (_l("Last 90 days"), 89, None),
}


@dataclass(frozen=True, slots=True)
class Preset:
    """A range that is offered, as the fields have it."""

    name: str
    title: str
    from_text: str
    to_text: str
    #: address of the form with it
    href: str


def preset_range(name: str, zone: ZoneInfo, *, now_ms: Millis) -> tuple[str, str]:
    """Return the texts of the two fields."""
    now = datetime.fromtimestamp(now_ms // 1000, zone).replace(tzinfo=None)
    today = now.replace(hour=0, minute=0, second=0)
    _title, first, last = PRESETS[name]
    end = now if last is None else today - timedelta(days=last)
    return (today - timedelta(days=first)).isoformat(), end.isoformat()


def presets_of(zone: ZoneInfo, *, now_ms: Millis) -> list[Preset]:
    """Return the ranges that are offered."""
    return [
        Preset(
            name,
            str(title),
            *preset_range(name, zone, now_ms=now_ms),
            href=address_with(**{"preset": name, "from": None, "to": None}),
        )
        for name, (title, _first, _last) in PRESETS.items()
    ]
