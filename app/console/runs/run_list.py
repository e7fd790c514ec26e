"""Run list: values of its page."""

from dataclasses import replace
from functools import partial
from typing import Any

from flask import request
from sqlalchemy.orm import Session

from app.clock import LATEST_MS, SECOND_MS, Millis, now_ms
from app.console.runs.list_filter import DEFAULT_RANGE, RequestedLogs, filter_parameters, requested_logs
from app.console.runs.run_tabs import run_tabs
from app.console.ui import labels
from app.console.ui.filters import reader_zone
from app.console.ui.labels import LOG_STATUSES, RANGES
from app.console.ui.limits.waiting_rows import WaitingRows, waiting_rows
from app.console.ui.lists.days import day_heads
from app.console.ui.lists.listing import Chip, address_with, chips, fetch_requested, here
from app.console.ui.lists.ranges import named_range, range_text
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
from app.services.report.run_views import count_run_views
from app.services.runs import logs, rows
from app.services.runs.waiting import WaitFilter
from app.store.pickers.overview import GroupIds
from app.store.runs.listing import OLDEST_FIRST, LogStatus

#: kinds of failures; an empty list of them is good news
FAILURES = frozenset(
    {
        LogStatus.FAILED,
        LogStatus.ONLY_FAILED,
        LogStatus.TIMED_OUT,
        LogStatus.KILLED,
        LogStatus.NOT_STARTED,
        LogStatus.UNRESOLVED,
    }
)
#: runs that wait for a limit, above the others and where only waiting runs are listed
LIMITED_SHOWN, LIMITED_ALONE = 5, 50
#: where counting of new runs stops
NEWER_MAX = 1_000


def list_values() -> dict[str, Any]:
    """Return the values of the page's template for the requested filters."""
    actor, zone, at_ms = current_actor(), reader_zone(), now_ms()
    with read_scope() as session:
        filters = requested_logs(session, actor=actor, zone=zone, now_ms=at_ms)
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
            "waiting": _waiting_fires(session, filters, actor, at_ms) if is_first else [],
            "limited": _limit_rows(session, filters, actor) if is_first else None,
            "newer": _count_newer(session, filters, actor),
        }
        views = views_of(session, ListName.LOGS)
        today = named_range("today", zone, now_ms=at_ms)
        counts = count_run_views(session, actor=actor, from_ms=today.from_ms or 0, to_ms=today.to_ms or at_ms)
    parameters = filter_parameters()
    is_today = parameters in ({}, {"range": DEFAULT_RANGE})
    return {
        **values,
        "groups": visible,
        "job_text": job_text,
        "filter": filters,
        "statuses": labels.choices(LOG_STATUSES),
        "ranges": labels.choices(RANGES),
        "active": _chips(filters, title, job_text),
        "is_filtered": not is_today,
        "tabs": run_tabs(views, counts, is_today=is_today),
        "save_href": views.save_href,
        "calm": _calm_text(filters),
        "day_heads": day_heads([(log.id, log.trigger_time) for log in page.rows], zone, now_ms=at_ms),
        "paging": replace(paging, until_s=_until_s(filters, page.rows, is_first=is_first)),
        "newer_href": address_with(page=None, until=None),
        "sorting": Sorting(LOGS, filters.filter.order),
        "may_select": filters.status in FAILURES and actor.has_anywhere(Right.OPERATE),
        "may_clean": actor.has_anywhere(Right.OPERATE),
        "here": here(),
        "export_query": parameters,
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


def _limit_rows(session: Session, filters: RequestedLogs, actor: Actor) -> WaitingRows | None:
    """Return the first runs that wait for a limit and match the filters; they stand above the others."""
    if filters.status not in (LogStatus.ALL, LogStatus.WAITING):
        return None
    criteria = WaitFilter(
        filters.job_id, logical=(filters.filter.logical_from_ms, filters.filter.logical_to_ms)
    )
    limit = LIMITED_SHOWN if filters.status == LogStatus.ALL else LIMITED_ALONE
    return waiting_rows(session, actor=actor, group_id=filters.group_id, criteria=criteria, limit=limit)


def _count_newer(session: Session, filters: RequestedLogs, actor: Actor) -> int:
    """Return how many runs the bound of a further page leaves out, at most NEWER_MAX."""
    after_ms = filters.until_s * SECOND_MS
    if not after_ms or (filters.filter.to_ms or 0) < after_ms:
        return 0
    return logs.count_later(session, filters.filter, actor=actor, after_ms=after_ms, limit=NEWER_MAX)


def _calm_text(filters: RequestedLogs) -> str:
    """Return what an empty list of failures says; empty for other lists."""
    if filters.status not in FAILURES:
        return ""
    if filters.status != LogStatus.FAILED:
        return _("No such failure in this time.")
    return _("Nothing failed today.") if filters.range == "today" else _("Nothing failed in this time.")


def _until_s(filters: RequestedLogs, page: list[JobLog], *, is_first: bool) -> int:
    """Return the bound for further pages: the newest run of the first one."""
    if filters.until_s or not page or not is_first or filters.filter.order == OLDEST_FIRST:
        return filters.until_s
    return (page[0].trigger_time or 0) // SECOND_MS


def _chips(filters: RequestedLogs, title: str, job_text: str) -> list[Chip]:
    """Return the chips of the active filters; that of the period is always there, unless it has no bounds."""
    of_object = [
        ("jobGroup", _("Executor"), title if "jobGroup" in request.args else ""),
        ("jobId", _("Job"), job_text),
        ("logStatus", _("Status"), str(LOG_STATUSES.get(filters.status, ""))),
    ]
    logical_from, logical_to = (text.replace("T", " ") for text in filters.logical_texts)
    of_time = [
        ("logical_from", _("Logical time from"), logical_from),
        ("logical_to", _("Logical time to"), logical_to),
    ]
    return [*chips(of_object), *_period_chip(filters), *chips(of_time)]


def _period_chip(filters: RequestedLogs) -> list[Chip]:
    """Return the chip of the period; without it the list has runs of any time."""
    if filters.range == "all":
        return []
    href = address_with(**{"page": None, "until": None, "range": "all", "from": None, "to": None})
    period = range_text(filters.range, filters.from_text, filters.to_text)
    return [Chip(str(lazy_pgettext("run", "Time")), period, href)]
