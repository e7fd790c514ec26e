"""Tabs of the run list: runs of today, the built-in views with their numbers of runs, and saved views."""

from flask import url_for

from app.console.ui.saved_views import ListViews
from app.console.ui.view_tabs import Count, Tab, view_tabs
from app.console.web.language import _
from app.services.report import run_views
from app.services.report.run_views import ViewCounts


def run_tabs(views: ListViews, numbers: ViewCounts, *, is_today: bool) -> list[Tab]:
    """Return the tabs; the number of all runs of today stands below the list."""
    has_all_failures = numbers.failed < run_views.COUNT_MAX
    return view_tabs(
        views,
        first=Tab(_("Today"), url_for("logs.index"), is_today),
        counts={
            "failed": _count(numbers.failed, is_bad=True),
            "not_started": Count(
                numbers.not_started, is_cut=not has_all_failures, is_bad=numbers.not_started > 0
            ),
            "running": _count(numbers.running),
        },
    )


def _count(number: int, *, is_bad: bool = False) -> Count:
    return Count(number, is_cut=number >= run_views.COUNT_MAX, is_bad=is_bad and number > 0)
