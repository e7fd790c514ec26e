"""Search of archived logs: a text or regular expression, its hits by run, with links to their lines."""

import re
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.blobs.stores import store_of
from app.clock import Millis, now_ms
from app.console.runs.list_filter import RequestedLogs, requested_logs
from app.console.ui import labels
from app.console.ui.filters import reader_zone
from app.console.ui.labels import LOG_STATUSES, RANGES
from app.console.ui.lists.listing import Chip, address_with, chips
from app.console.ui.lists.ranges import range_text
from app.console.web.access import Access
from app.console.web.current import current_actor, settings, translate_error
from app.console.web.language import _, lazy_pgettext
from app.database.flask_db import read_scope
from app.domain.access.permissions import Actor
from app.errors import XxlJobError
from app.services.archive.matchers import Match
from app.services.archive.search import Hit, HitPage, LineQuery, Place, search_logs
from app.services.executors.groups import visible_groups
from app.services.jobs import choices

blueprint = Blueprint("log_search", __name__)
POLICY = {"index": Access.LOGIN}

#: lines of a page
LINES_MAX = 100
#: position of a further page: run and line
_PLACE = re.compile(r"([0-9]{1,18})-([0-9]{1,9})")
NOTHING = HitPage([], None, None)


@dataclass(frozen=True, slots=True)
class Line:
    """A line that matches, in parts."""

    number: int
    #: text and whether it matches
    parts: list[tuple[str, bool]]
    is_cut: bool


@dataclass(frozen=True, slots=True)
class RunHits:
    """Lines of one run."""

    log_id: int
    job_id: int
    job_text: str
    started_ms: Millis
    outcome: str
    lines: list[Line]


@blueprint.get("/logs/search")
def index() -> ResponseReturnValue:
    """Search the archived logs, or show the fields of a search."""
    actor, at_ms = current_actor(), now_ms()
    with read_scope() as session:
        filters = requested_logs(session, actor=actor, zone=reader_zone(), now_ms=at_ms, default_range="all")
        groups = visible_groups(session, actor)
        job_text = choices.name_jobs(session, [filters.job_id], actor=actor)[0].text if filters.job_id else ""
    page, error = _search(filters, actor)
    with read_scope() as session:
        runs = _by_run(session, page.hits, actor)
    title = next((group.title for group in groups if group.id == filters.group_id), "")
    values: dict[str, Any] = {
        "runs": runs,
        "count": len(page.hits),
        "error": error,
        "is_searched": bool(request.args.get("q")) and not error,
        "further": address_with(until=f"{page.next.log_id}-{page.next.line}") if page.next else "",
        "searched_to_ms": page.searched_to_ms,
        "is_further": "until" in request.args,
        "active": _chips(filters, title, job_text),
        "filter": filters,
        "groups": groups,
        "job_text": job_text,
        "statuses": labels.choices(LOG_STATUSES),
        "ranges": labels.choices(RANGES),
        "clear": url_for("log_search.index", q=request.args.get("q") or None),
    }
    return render_template("runs/log_search.html", **values)


def _search(filters: RequestedLogs, actor: Actor) -> tuple[HitPage, str]:
    """Return what is found, and why nothing could be."""
    text, match = request.args.get("q", ""), _PLACE.fullmatch(request.args.get("until", ""))
    if not text:
        return NOTHING, ""
    query = LineQuery(
        text,
        is_regex="regex" in request.args,
        ignores_case="case" not in request.args,
        runs=filters.filter,
    )
    place = Place(int(match[1]), int(match[2])) if match else None
    try:
        store = store_of(settings())
        return search_logs(query, actor=actor, store=store, limit=LINES_MAX, after=place), ""
    except XxlJobError as exc:
        return NOTHING, translate_error(exc)


def _by_run(session: Session, hits: list[Hit], actor: Actor) -> list[RunHits]:
    job_ids = list(dict.fromkeys(hit.job_id for hit in hits))
    job_choices = choices.name_jobs(session, job_ids, actor=actor)
    texts = {int(choice.value): choice.text for choice in job_choices}
    runs = list[RunHits]()
    for log_id, group in groupby(hits, lambda hit: hit.log_id):
        own = [*group]
        first = own[0]
        lines = [Line(hit.line, _parts(hit.match), hit.match.is_cut) for hit in own]
        job_text = texts.get(first.job_id, str(first.job_id))
        runs.append(RunHits(log_id, first.job_id, job_text, first.started_ms, first.outcome, lines))
    return runs


def _parts(match: Match) -> list[tuple[str, bool]]:
    parts, position = list[tuple[str, bool]](), 0
    for start, end in match.marks:
        parts += [(match.text[position:start], False), (match.text[start:end], True)]
        position = end
    return [part for part in (*parts, (match.text[position:], False)) if part[0]]


def _chips(filters: RequestedLogs, title: str, job_text: str) -> list[Chip]:
    flags = [
        ("regex", _("Regular expression"), _("yes") if "regex" in request.args else ""),
        ("case", _("Match case"), _("yes") if "case" in request.args else ""),
        ("jobGroup", _("Executor"), title if "jobGroup" in request.args else ""),
        ("jobId", _("Job"), job_text),
        ("logStatus", _("Status"), str(LOG_STATUSES.get(filters.status, ""))),
    ]
    if filters.range == "all":
        return chips(flags)
    href = address_with(**{"until": None, "range": None, "from": None, "to": None})
    period = range_text(filters.range, filters.from_text, filters.to_text)
    return [*chips(flags), Chip(str(lazy_pgettext("run", "Time")), period, href)]
