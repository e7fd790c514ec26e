"""Run timeline: choice of its jobs, and the number of runs shown of each."""

from collections.abc import Iterable
from typing import NamedTuple


class Activity(NamedTuple):
    """Activity of a job within the time shown. A tuple, because a page needs thousands."""

    job_id: int
    runs: int
    #: failed and unresolved runs, and missed instants
    troubles: int


def rank_jobs(activities: Iterable[Activity], *, limit: int) -> list[int]:
    """Return the ids of the jobs to show: most trouble first, then most runs."""
    jobs_in_order = sorted(
        activities, key=lambda activity: (-activity.troubles, -activity.runs, activity.job_id)
    )
    return [activity.job_id for activity in jobs_in_order[:limit]]


def fair_share(counts: Iterable[int], *, total: int) -> int:
    """Return how many runs each job may show, so that all together show at most ``total``.

    Jobs with few runs leave their unused share to the others.
    """
    ascending = sorted(counts)
    remaining = total
    for number, count in enumerate(ascending):
        share = remaining // (len(ascending) - number)
        if count > share:
            return share
        remaining -= count
    return ascending[-1] if ascending else 0
