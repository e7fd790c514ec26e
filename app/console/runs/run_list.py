"""Run list: values of its page."""

from dataclasses import replace
from functools import partial
from typing import Any

from flask import request
from sqlalchemy.orm import Session

from app.clock import LATEST_MS, SECOND_MS, Millis, now_ms
from app.console.runs.list_filter import RequestedLogs, filter_parameters, requested_logs
from app.console.ui import labels
from app.console.ui.filters import reader_zone
from app.console.ui.labels import LOG_STATUSES, RANGES
from app.console.ui.lists.listing import address_with, chips, fetch_requested, here
from app.console.ui.lists.ranges import range_text
from app.console.ui.lists.sorting import LOGS, Sorting
from app.console.ui.saved_views import views_of
from app.console.ui.waiting import Waiting, waiting_fires
from app.console.web.current import current_actor
from app.console.web.language import _, lazy_pgettext
from app.database.flask_db import read_scope
from app.domain.access.permissions import Actor, Right
from app.domain.lists.filters import ListName
from app.models.log import JobLog
from app.services.executors import groups
from app.services.jobs import choices
from app.services.runs import logs, rows
from app.store.pickers.overview import GroupIds
from app.store.runs.listing import OLDEST_FIRST, LogStatus

#: where counting of new runs stops
NEWER_MAX = 1_000


def list_values() -> dict[str, Any]:
    """Return the values of the page's template for the requested filters."""
    actor, at_ms = current_actor(), now_ms()
    with read_scope() as session:
        filters = requested_logs(session, actor=actor, zone=reader_zone(), now_ms=at_ms)
        page, paging = fetch_requested(partial(logs.list_page, session, filters.filter, actor=actor))
        is_first = paging.page == 1
        visible = groups.visible_groups(session, actor)
        title = next((group.title for group in visible if group.id == filters.group_id), "")
        job_text = choices.name_jobs(session, [filters.job_id], actor=actor)[0].text if filters.job_id else ""
        values = {
            "rows": rows.log_rows(session, page.rows, actor=actor),
            "jobs": choices.jobs_to_select(session, filters.group_id, actor=actor)
            if filters.group_id
            else None,
            "views": views_of(session, ListName.LOGS),
            "waiting": _waiting_fires(session, filters, actor, at_ms) if is_first else [],
            "newer": _count_newer(session, filters, actor),
        }
    return {
        **values,
        "groups": visible,
        "job_text": job_text,
        "filter": filters,
        "statuses": labels.choices(LOG_STATUSES),
        "ranges": labels.choices(RANGES),
        "active": chips(_filter_labels(filters, title, job_text)),
        "paging": replace(paging, until_s=_until_s(filters, page.rows, is_first=is_first)),
        "newer_href": address_with(page=None, until=None),
        "sorting": Sorting(LOGS, filters.filter.order),
        "may_clean": actor.has_anywhere(Right.OPERATE),
        "here": here(),
        "export_query": filter_parameters(),
    }


def _waiting_fires(session: Session, filters: RequestedLogs, actor: Actor, at_ms: Millis) -> list[Waiting]:
    """Return the oldest waiting fires that match the filters; they stand above the runs of the first page."""
    if filters.status not in (LogStatus.ALL, LogStatus.WAITING) or any(filters.logical_texts):
        return []
    if filters.group_id and actor.may(filters.group_id, Right.VIEW):
        group_ids: GroupIds = frozenset({filters.group_id})
    else:
        group_ids = actor.group_ids(Right.VIEW)
    fires = waiting_fires(session, group_ids, now_ms=at_ms, job_id=filters.job_id or None)
    from_ms, to_ms = filters.filter.from_ms or 0, filters.filter.to_ms or LATEST_MS
    return [late for late in fires if from_ms <= late.fire.due_time <= to_ms]


def _count_newer(session: Session, filters: RequestedLogs, actor: Actor) -> int:
    """Return how many runs the bound of a further page leaves out, at most NEWER_MAX."""
    after_ms = filters.until_s * SECOND_MS
    if not after_ms or (filters.filter.to_ms or 0) < after_ms:
        return 0
    return logs.count_later(session, filters.filter, actor=actor, after_ms=after_ms, limit=NEWER_MAX)


def _until_s(filters: RequestedLogs, page: list[JobLog], *, is_first: bool) -> int:
    """Return the bound for further pages: the newest run of the first one."""
    if filters.until_s or not page or not is_first or filters.filter.order == OLDEST_FIRST:
        return filters.until_s
    return (page[0].trigger_time or 0) // SECOND_MS


def _filter_labels(filters: RequestedLogs, title: str, job_text: str) -> list[tuple[str, str, str]]:
    span = range_text(filters.range, filters.from_text, filters.to_text)
    return [
        ("jobGroup", _("Executor"), title if "jobGroup" in request.args else ""),
        ("jobId", _("Job"), job_text),
        ("logStatus", _("Status"), str(LOG_STATUSES.get(filters.status, ""))),
        (
            "range",
            str(lazy_pgettext("run", "Time")),
            span if {"range", "from", "to"} & request.args.keys() else "",
        ),
        ("logical_from", _("Logical time from"), filters.logical_texts[0].replace("T", " ")),
        ("logical_to", _("Logical time to"), filters.logical_texts[1].replace("T", " ")),
    ]
