"""Job list filters from the query string."""

from collections.abc import Sequence

from flask import request
from sqlalchemy.orm import Session

from app.console.jobs.lists.search import code_values, last_values, status_values
from app.console.ui.lists.listing import address_with, whole_number
from app.console.ui.lists.sorting import JOBS, requested_order
from app.console.ui.preferences import is_grouped
from app.console.web.current import current_actor
from app.console.web.language import _
from app.domain.lists.filters import ListName, kept_filters
from app.domain.lists.job_search import CodeState, LastRun
from app.domain.lists.search_text import searched_words
from app.models.group import Group
from app.services.jobs.jobs import JobFilter
from app.services.report.job_views import with_states


def filter_parameters() -> dict[str, str]:
    """Return the query parameters of the active filters, for other URLs of the same jobs."""
    return kept_filters(ListName.JOBS, request.args)


def tag_url_prefix() -> str:
    """Return the URL of the list with all other filters, ending in ``tag=``."""
    address = address_with(tag=None, page=None)
    return address + ("&" if "?" in address else "?") + "tag="


def requested_filter(session: Session, *, is_exact: bool = True) -> JobFilter:
    """Return the filter in the query string; ``is_exact`` as for ``with_states``."""
    actor = current_actor()
    job_filter = JobFilter(
        group_id=max(0, whole_number("jobGroup", 0)),
        status=whole_number("triggerStatus", -1),
        description=request.args.get("jobDesc", "").strip(),
        handler=request.args.get("executorHandler", "").strip(),
        author=request.args.get("author", "").strip(),
        tag=request.args.get("tag", "").strip(),
        starred_by=actor.user_id if request.args.get("favourites") == "1" else 0,
        words=searched_words(request.args.get("q", "")),
        last=_choice("last", LastRun),
        code=_choice("code", CodeState),
        by_group=is_grouped(),
        order=requested_order(JOBS),
    )
    return with_states(session, job_filter, actor=actor, is_exact=is_exact)


def filter_labels(job_filter: JobFilter, groups: Sequence[Group]) -> list[tuple[str, str, str]]:
    """Return parameter, label and shown value of each filter; empty values are not set."""
    title = next(
        (group.title for group in groups if group.id == job_filter.group_id), str(job_filter.group_id or "")
    )
    return [
        ("jobGroup", _("Executor"), title),
        ("triggerStatus", _("Schedule"), status_values().get(str(job_filter.status), "")),
        ("last", _("Last run"), last_values().get(job_filter.last, "")),
        ("code", _("Code"), code_values().get(job_filter.code, "")),
        ("jobDesc", _("Job description"), job_filter.description),
        ("executorHandler", "JobHandler", job_filter.handler),
        ("author", _("Owner"), job_filter.author),
        ("tag", _("Tag"), job_filter.tag),
        ("favourites", _("Favourites"), _("only these") if job_filter.starred_by else ""),
    ]


def _choice(name: str, values: type[LastRun] | type[CodeState]) -> str:
    """Return a query parameter with few values; empty for any other."""
    value = request.args.get(name, "").strip()
    return value if value in list(values) else ""
