"""Tabs of the job list: all jobs, the built-in views with their numbers of jobs, and saved views."""

from dataclasses import dataclass

from flask import url_for

from app.console.ui.saved_views import ListViews
from app.console.web.language import _
from app.services.report.job_views import Views


@dataclass(frozen=True, slots=True)
class Tab:
    """View of the list as a tab."""

    title: str
    href: str
    current: bool
    #: its number of jobs; None: not counted
    count: int | None = None
    #: there may be more
    is_cut: bool = False
    is_bad: bool = False


def view_tabs(views: ListViews, numbers: Views) -> list[Tab]:
    """Return the tabs; the one for drift only if code manages jobs."""
    counts = numbers.counts
    count_by_key = {
        "failing": numbers.failing,
        "running_jobs": counts.running,
        "mine": counts.mine,
        "favourites": counts.favourites,
        "drifted": counts.drifted,
    }
    is_current = not views.save_href and not any(link.current for link in views.links)
    tabs = [Tab(_("All"), url_for("jobs.index"), is_current, counts.all)]
    for link in views.links:
        if link.key != "drifted" or numbers.has_code:
            count, is_cut = count_by_key.get(link.key), link.key == "drifted" and numbers.is_drift_cut
            is_bad = link.key == "failing" and numbers.failing > 0
            tabs.append(Tab(link.title, link.href, link.current, count, is_cut, is_bad))
    return tabs
