"""Completeness page: a month, the equation of a period, the jobs that were not on time, a job by the hour."""

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_babel import format_date
from sqlalchemy.orm import Session

from app.clock import Millis, now_ms
from app.console.report.completeness.equation import JOBS, equation_of, hour_rows, job_rows
from app.console.report.completeness.month import month_of, month_title
from app.console.report.completeness.period import Query, period_parameters, read_query
from app.console.report.completeness.search import page_parameters, read_search
from app.console.report.completeness.terms import TERMS, Place, reason_text
from app.console.ui.lists.listing import Chip
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.console.web.language import _
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right
from app.domain.completeness.spans import Span
from app.services.completeness.job_day import JobDay, find_job_day, find_missed, find_off, find_spans
from app.services.completeness.overview import Overview, find_overview
from app.services.completeness.report import Scope, scope_of
from app.services.executors.groups import visible_groups
from app.services.jobs.choices import name_jobs

blueprint = Blueprint("completeness", __name__)
POLICY = {
    "index": Access.LOGIN,
}


@blueprint.get("/completeness")
def index() -> ResponseReturnValue:
    """Show what became of the instants that were due."""
    actor, at_ms, zone = current_actor(), now_ms(), ZoneInfo(settings().time_zone)
    if not actor.has_anywhere(Right.VIEW):
        return render_template("report/completeness/index.html", month=None)
    query = read_query(zone, now_ms=at_ms)
    scope = scope_of(actor, group_id=query.group_id, job_id=query.job_id)
    with read_scope() as session:
        groups = visible_groups(session, actor)
        search = read_search(session, groups, actor=actor)
        if search.parameters and not search.hints:
            return redirect(query.address(**page_parameters(search.parameters)))
        overview = find_overview(session, scope, query.calendar_days, query.period, zone=zone, now_ms=at_ms)
        titles = {group.id: group.title for group in groups}
        ids = [job.job_id for job in overview.jobs]
        names = name_jobs(session, [*ids, query.job_id], actor=actor)
        of_job = _of_job(session, scope, query, zone, at_ms)
    job_texts = {int(choice.value): choice.text for choice in names}
    place = Place(query.period.interval(zone), query.group_id, query.job_id)
    return render_template(
        "report/completeness/index.html",
        query=query,
        overview=overview,
        month=month_of(query, overview, zone),
        period_title=_period_title(query),
        equation=equation_of(overview.total, place, _elsewhere(query)),
        jobs=job_rows(overview.jobs, query, place, titles, job_texts),
        titles=titles,
        job_text=job_texts[query.job_id] if query.job_id else "",
        active=_chips(query, titles, job_texts),
        search=search,
        is_searched=bool(request.args.get("q")),
        csv_href=url_for("completeness_export.as_csv", **query.parameters()),
        json_href=url_for("completeness_export.as_json", **query.parameters()),
        zone=zone,
        terms=TERMS,
        reason_text=reason_text,
        is_before=_is_before(query, overview, zone),
        **of_job,
    )


def _of_job(session: Session, scope: Scope, query: Query, zone: ZoneInfo, at_ms: Millis) -> dict[str, Any]:
    """Return what is shown of one job: when its schedule was off, and on one day its hours."""
    if not query.job_id:
        return {"off": [], "job_day": None, "missed": 0}
    interval = query.period.interval(zone)
    spans = find_spans(session, scope, interval)
    job_day: JobDay | None = None
    if query.one_day is not None:
        job_day = find_job_day(session, spans, query.one_day, zone=zone, now_ms=at_ms)
    off = find_off(spans, interval, at_ms)
    may_run = _may_run(spans) and not any(period.is_deleted for period in off)
    instants = find_missed(session, spans, interval, zone=zone, now_ms=at_ms) if may_run else []
    parameters: dict[str, Any] = {"job": query.job_id, "missed": 1, **period_parameters(query.period)}
    return {
        "missed": len(instants),
        "missed_href": url_for("backfill_forms.new", **parameters),
        "off": off,
        "job_day": job_day,
        "hours": hour_rows(job_day, query, zone) if job_day is not None else [],
        "runs_href": Place(interval, job_id=query.job_id).runs(),
    }


def _may_run(spans: Sequence[Span]) -> bool:
    """Whether the actor may run the job with this history."""
    return bool(spans) and current_actor().may(spans[-1].group_id, Right.OPERATE)


def _period_title(query: Query) -> str:
    if query.is_month:
        return month_title(query.month)
    if query.one_day is not None:
        return str(format_date(query.one_day, "full"))
    first, last = (format_date(day, "long") for day in query.period)
    return f"{first} – {last}"


def _elsewhere(query: Query) -> str:
    """Return the part of the page that has the instants without a run."""
    if not query.job_id:
        return JOBS
    return "#irregular" if query.one_day is not None else "#month"


def _is_before(query: Query, overview: Overview, zone: ZoneInfo) -> bool:
    """Whether the period ends before anything is known."""
    return overview.first_ms is not None and query.period.interval(zone).until_ms <= overview.first_ms


def _chips(query: Query, titles: dict[int, str], job_texts: dict[int, str]) -> list[Chip]:
    chips = []
    if query.group_id:
        title = titles.get(query.group_id, str(query.group_id))
        chips.append(Chip(_("Executor"), title, query.address(group_id=0)))
    if query.job_id:
        chips.append(Chip(_("Job"), job_texts[query.job_id], query.address(job_id=0)))
    if not query.is_month:
        month = {"from": None, "to": None, "month": f"{query.month:%Y-%m}"}
        chips.append(Chip(_("Days"), _days_text(query), query.address(**month)))
    return chips


def _days_text(query: Query) -> str:
    first, last = (day.isoformat() for day in query.period)
    return first if first == last else f"{first} – {last}"
