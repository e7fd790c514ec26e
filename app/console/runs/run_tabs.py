"""Tabs of the run list: runs of today, the built-in views with their numbers of runs, and saved views."""

from flask import url_for

from app.console.ui.saved_views import ListViews
from app.console.ui.view_tabs import Count, Tab, view_tabs
from app.console.web.language import _
from app.services.report.run_views import RunViews


def run_tabs(views: ListViews, numbers: RunViews, *, is_today: bool) -> list[Tab]:
    """Return the tabs; the number of all runs of today stands below the list."""
    return view_tabs(
        views,
        first=Tab(_("Today"), url_for("logs.index"), is_today),
        counts={
            "failed": Count(numbers.failed, is_cut=numbers.is_cut, is_bad=numbers.failed > 0),
            "not_started": Count(numbers.not_started, is_cut=numbers.is_cut, is_bad=numbers.not_started > 0),
            "running": Count(numbers.running, is_cut=numbers.is_running_cut),
        },
    )
