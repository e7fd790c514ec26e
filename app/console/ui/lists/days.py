"""Days of a list: its rows stand below the date of their day."""

from collections.abc import Iterable
from zoneinfo import ZoneInfo

from app.clock import DAY_MS, Millis
from app.console.ui.filters import absolute_in
from app.console.web.language import _


def day_heads(
    instants: Iterable[tuple[int, Millis | None]],
    zone: ZoneInfo,
    *,
    now_ms: Millis,
    today_alone: bool = False,
) -> dict[int, tuple[str, str]]:
    """Return row -> day and its title, for the first row of each day.

    If all rows are of today there is none, unless ``today_alone``.
    """
    titles = {_day(now_ms, zone): _("Today"), _day(now_ms - DAY_MS, zone): _("Yesterday")}
    day_by_row = {row_id: _day(at_ms, zone) for row_id, at_ms in instants if at_ms}
    if not today_alone and set(day_by_row.values()) <= {_day(now_ms, zone)}:
        return {}
    first_row_by_day: dict[str, int] = {}
    for row_id, day in day_by_row.items():
        first_row_by_day.setdefault(day, row_id)
    return {row_id: (day, titles.get(day, "")) for day, row_id in first_row_by_day.items()}


def _day(ms: Millis, zone: ZoneInfo) -> str:
    return absolute_in(ms, zone)[:10]
