"""Runs by day: a bar for each day, the runs of each result stacked, and the failure rate as a line."""

from datetime import date
from zoneinfo import ZoneInfo

from app.console.report.run_calendar import day_address
from app.console.ui.bar_chart import COUNTS, BarChart, Meaning, Slot, bar_chart, short_number
from app.console.ui.filters import number
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.services.report.dashboard import Chart
from app.store.runs.day_counts import DayCount

#: results from the bottom of a bar to its top: the kind of its part, and its label
RESULTS = {
    "success": ("success", _l("Succeeded")),
    "failed": ("danger", _l("Failed")),
    "running": ("info", _l("Running")),
}
#: most days that are named below, and most bars that carry their number of runs
NAMES_MAX, COUNTS_MAX = 8, 31
#: most bars whose number is not shortened
FULL_NUMBERS_MAX = 8


def days_chart(chart: Chart, zone: ZoneInfo) -> BarChart:
    """Return the drawn days; without runs its bars are empty."""
    every = -(-len(chart.days) // NAMES_MAX)
    slots = [
        _slot(day, zone, is_named=(len(chart.days) - 1 - place) % every == 0, days=len(chart.days))
        for place, day in enumerate(chart.days)
    ]
    legend = [
        Meaning(kind, str(label), number(getattr(chart, result))) for result, (kind, label) in RESULTS.items()
    ]
    rate = failure_rate(chart.success, chart.failed)
    if rate:
        legend.append(Meaning("rate", _("Failure rate"), _percent(rate)))
    return bar_chart(
        slots, legend, COUNTS, rates=[failure_rate(day.success, day.failed) for day in chart.days]
    )


def _slot(day: DayCount, zone: ZoneInfo, *, is_named: bool, days: int) -> Slot:
    counts = {kind: getattr(day, result) for result, (kind, _label) in RESULTS.items()}
    total = sum(counts.values())
    count_text = number(total) if days <= FULL_NUMBERS_MAX else short_number(total)
    return Slot(
        {kind: count for kind, count in counts.items() if count},
        _label(day),
        day_address(date.fromisoformat(day.day), zone) if total else "",
        above=count_text if total and days <= COUNTS_MAX else "",
        tick=day.day[5:] if is_named else "",
    )


def _label(day: DayCount) -> str:
    counts = [
        (_("%(n)s succeeded"), day.success),
        (_("%(n)s failed"), day.failed),
        (_("%(n)s running"), day.running),
    ]
    parts = [text % {"n": number(count)} for text, count in counts if count]
    rate = failure_rate(day.success, day.failed)
    parts += [_("%(rate)s failure rate", rate=_percent(rate))] if rate else []
    return " · ".join([day.day, *parts])


def failure_rate(success: int, failed: int) -> float | None:
    """Return the percentage of finished runs that failed, not 0 if any did; None without one."""
    total = success + failed
    if not total:
        return None
    return max(0.1, 100 * failed / total) if failed else 0.0


def _percent(rate: float) -> str:
    return f"{rate:.1f}%"
