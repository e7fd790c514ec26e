"""Tabs of the job list: all jobs, the built-in views with their numbers of jobs, and saved views."""

from flask import url_for

from app.console.ui.saved_views import ListViews
from app.console.ui.view_tabs import Count, Tab, is_unfiltered, view_tabs
from app.console.web.language import _
from app.services.report.job_views import Views


def job_tabs(views: ListViews, numbers: Views) -> list[Tab]:
    """Return the tabs; the one for drift only if code manages jobs."""
    counts = numbers.counts
    return view_tabs(
        views,
        first=Tab(_("All"), url_for("jobs.index"), is_unfiltered(views), Count(counts.all)),
        counts={
            "failing": Count(numbers.failing, is_bad=numbers.failing > 0),
            "running_jobs": Count(counts.running),
            "mine": Count(counts.mine),
            "favourites": Count(counts.favourites),
            "drifted": Count(counts.drifted, is_cut=numbers.is_drift_cut),
        },
        absent=() if numbers.has_code else ("drifted",),
    )
