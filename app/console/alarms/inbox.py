"""Inbox: what was sent, failed or was held back, of the groups that the user may see."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import Millis, now_ms
from app.console.alarms.list_search import read_alarm_search, result_titles
from app.console.alarms.sections import read_sections
from app.console.ui import labels
from app.console.ui.filters import absolute, reader_zone
from app.console.ui.labels import ALARM_RESULTS, RANGES
from app.console.ui.lists.listing import address_with, chips, here, whole_number
from app.console.ui.lists.ranges import RequestedRange, range_text, requested_range
from app.console.web.access import Access
from app.console.web.current import current_actor
from app.console.web.language import _
from app.database.flask_db import read_scope
from app.domain.access.permissions import Actor, Right
from app.domain.alarms.alarm_results import AlarmResult
from app.models.channel import AlarmChannel
from app.services.jobs import choices
from app.services.report import alarm_inbox as inbox
from app.services.report.alarm_inbox import Inbox, InboxFilter, InboxRow
from app.store.alarms.listing import AlarmFilter

blueprint = Blueprint("alarm_inbox", __name__)
POLICY = {
    "index": Access.LOGIN,
}

#: range shown if the URL has none
DEFAULT_RANGE = "week"


@dataclass(frozen=True, slots=True)
class Result:
    """A choice of the filter by result: the page with it, and how many alarms it has."""

    title: str
    count: int
    href: str
    is_current: bool


@blueprint.get("/alarms")
def index() -> ResponseReturnValue:
    """List the alarms that match the filters; a search text becomes parameters."""
    actor, at_ms = current_actor(), now_ms()
    if not actor.has_anywhere(Right.VIEW):
        return render_template("alarms/inbox.html", page=None)
    span = requested_range(DEFAULT_RANGE, reader_zone(), now_ms=at_ms)
    with read_scope() as session:
        sections = read_sections(session, actor, now_ms=at_ms)
        channels = [entry.channel for entry in sections.health]
        search = read_alarm_search(session, request.args.get("q", ""), channels, actor=actor)
        if search.parameters and not search.hints:
            return redirect(address_with(before=None, q=None, **search.parameters))
        channel = _requested_channel(channels)
        job_id, job_text = _requested_job(session, actor)
        criteria = AlarmFilter(job_id=job_id or None, from_ms=span.bounds.from_ms, to_ms=_end(span, at_ms))
        query = InboxFilter(criteria, _requested_result(), channel)
        before_id = whole_number("before", 0)
        page = inbox.list_inbox(session, query, actor=actor, before_id=max(0, before_id) or None)
    return render_template(
        "alarms/inbox.html",
        page=page,
        days=_by_day(page.rows, at_ms),
        sections=sections,
        results=_results(page, query.result),
        filter=query,
        span=span,
        job_text=job_text,
        ranges=labels.choices(RANGES),
        titles=result_titles(),
        search=search,
        active=chips(_filter_labels(job_text, channel, span)),
        older=address_with(before=page.before_id) if page.before_id else "",
        newest=address_with(before=None) if before_id else "",
        here=here(),
        clear=url_for("alarm_inbox.index"),
    )


def _end(span: RequestedRange, at_ms: Millis) -> Millis | None:
    """Return the end of the range; None: it has none, or it is still to come."""
    end_ms = span.bounds.to_ms
    return end_ms if end_ms is not None and end_ms < at_ms else None


def _requested_result() -> AlarmResult | None:
    text = request.args.get("result", "")
    return AlarmResult(text) if text in list(AlarmResult) else None


def _requested_channel(channels: Sequence[AlarmChannel]) -> AlarmChannel | None:
    """Return the requested channel, if the user may see it."""
    channel_id = whole_number("channel", 0)
    return next((channel for channel in channels if channel.id == channel_id), None)


def _requested_job(session: Session, actor: Actor) -> tuple[int, str]:
    job_id = max(0, whole_number("jobId", 0))
    return job_id, choices.name_jobs(session, [job_id], actor=actor)[0].text if job_id else ""


def _results(page: Inbox, current: AlarmResult | None) -> list[Result]:
    """Return the choices of the filter: all, and the results that alarms have."""
    counts: list[tuple[AlarmResult | None, int]] = [(None, page.total), *page.counts.items()]
    return [
        Result(
            str(ALARM_RESULTS[result]),
            count,
            address_with(result=result.value if result else None, before=None),
            result is current,
        )
        for result, count in counts
        if result in (None, AlarmResult.SENT, AlarmResult.FAILED, AlarmResult.HELD, current) or count
    ]


def _by_day(rows: Sequence[InboxRow], at_ms: Millis) -> list[tuple[str, list[InboxRow]]]:
    """Return the rows by day of the reader's zone: ``Today``, ``Yesterday``, ``2024-05-01``."""
    today = datetime.fromtimestamp(at_ms / 1000, reader_zone()).date()
    names = {today.isoformat(): _("Today"), (today - timedelta(days=1)).isoformat(): _("Yesterday")}
    days: dict[str, list[InboxRow]] = {}
    for row in rows:
        days.setdefault(absolute(row.alarm.created_ms)[:10], []).append(row)
    return [(f"{names[day]} · {day}" if day in names else day, of_day) for day, of_day in days.items()]


def _filter_labels(
    job_text: str, channel: AlarmChannel | None, span: RequestedRange
) -> list[tuple[str, str, str]]:
    is_default = span.name == DEFAULT_RANGE
    period = "" if is_default else range_text(span.name, span.from_text, span.to_text)
    return [
        ("jobId", _("Job"), job_text),
        ("channel", _("Channel"), channel.name if channel else ""),
        ("range", _("Time"), period),
    ]
