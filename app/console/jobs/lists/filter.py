"""Job list filters from the query string."""

from flask import request

from app.console.ui.lists.listing import address_with, whole_number
from app.console.ui.lists.sorting import JOBS, requested_order
from app.console.web.current import current_actor
from app.domain.lists.filters import ListName, kept_filters
from app.services.jobs.jobs import JobFilter


def filter_parameters() -> dict[str, str]:
    """Return the query parameters of the active filters, for other URLs of the same jobs."""
    return kept_filters(ListName.JOBS, request.args)


def tag_url_prefix() -> str:
    """Return the URL of the list with all other filters, ending in ``tag=``."""
    address = address_with(tag=None, page=None)
    return address + ("&" if "?" in address else "?") + "tag="


def requested_filter() -> JobFilter:
    """Return the filter in the query string."""
    return JobFilter(
        group_id=max(0, whole_number("jobGroup", 0)),
        status=whole_number("triggerStatus", -1),
        description=request.args.get("jobDesc", "").strip(),
        handler=request.args.get("executorHandler", "").strip(),
        author=request.args.get("author", "").strip(),
        tag=request.args.get("tag", "").strip(),
        starred_by=current_actor().user_id if request.args.get("favourites") == "1" else 0,
        order=requested_order(JOBS),
    )
