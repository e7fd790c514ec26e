"""Dashboard: what is wrong, figures of a week, what needs attention, what runs now and next, two charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from flask import Blueprint, jsonify, render_template, request
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.console.report.answer import answer_of, with_yesterday
from app.console.report.charts import days_chart
from app.console.report.figures import figures
from app.console.report.gantt import gantt_of, requested_hours, within_ms
from app.console.ui.calendars.blackout_words import lines_of_all
from app.console.ui.completeness import yesterday_line
from app.console.ui.filters import outcome
from app.console.ui.labels import RANGES, choices
from app.console.ui.lists.ranges import TimeRange, day_names, named_range, requested_days
from app.console.ui.remedy_links import Link, remedy_links
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.console.web.language import _
from app.database.flask_db import read_scope
from app.domain.runs.remedies import find_remedy
from app.services.completeness.summary import find_yesterday
from app.services.report import dashboard
from app.services.report.attention import SHOWN_OTHERS
from app.services.report.dashboard import Board, Chart
from app.services.report.run_timeline import run_timeline
from app.store.runs.day_counts import DayCount

blueprint = Blueprint("dashboard", __name__)
POLICY = {
    "index": Access.LOGIN,
    "chart": Access.LOGIN,
}

DEFAULT_RANGE = "week"
#: ranges of whole days
DAY_RANGES = ("today", "yesterday", "week", "month", "this_month", "last_month", "custom")


@blueprint.get("/")
def index() -> ResponseReturnValue:
    """Show the dashboard."""
    hours, zone = requested_hours(), ZoneInfo(settings().time_zone)
    with read_scope() as session:
        board = dashboard.board(session, current_actor(), settings(), now_ms=now_ms())
        numbers = figures(session, current_actor(), board, zone=zone, now_ms=now_ms())
        runs = run_timeline(
            session, current_actor(), board.open_runs, within_ms=within_ms(hours), now_ms=now_ms()
        )
        report = _report(session)
        blackouts = lines_of_all(session, actor=current_actor(), now_ms=now_ms())
        summary = find_yesterday(session, current_actor(), zone=zone, now_ms=now_ms())
    yesterday = yesterday_line(summary.first, summary.tally) if summary is not None else None
    ranges = choices({name: RANGES[name] for name in DAY_RANGES})
    period = {
        "range": _requested_range(),
        **({"from": report.first, "to": report.last} if _requested_range() == "custom" else {}),
    }
    return render_template(
        "report/dashboard.html",
        board=board,
        answer=with_yesterday(answer_of(board, is_admin=current_actor().is_admin), yesterday),
        yesterday=yesterday,
        blackouts=blackouts,
        figures=numbers,
        rows_shown=SHOWN_OTHERS,
        remedies=_remedies(board),
        ranges=ranges,
        period=period,
        gantt=gantt_of(runs, hours),
        report=report,
        days=days_chart(report.chart, zone),
    )


@blueprint.get("/report")
def chart() -> ResponseReturnValue:
    """Return the runs per day as JSON, for scripts."""
    with read_scope() as session:
        days = _report(session).chart.days
    return jsonify(
        days=[
            {"day": day.day, "success": day.success, "failed": day.failed, "running": day.running}
            for day in days
        ]
    )


def _remedies(board: Board) -> dict[int, Link]:
    """Return job id -> nearest page that repairs why its last run was not started."""
    links = {}
    for row in board.attention.failing:
        remedy = find_remedy(row.reason) if outcome(row.last) == "refused" else None
        if remedy is not None:
            links[row.job.id] = remedy_links(remedy, board.groups.get(row.job.job_group), row.job)[:1]
    return {job_id: pages[0] for job_id, pages in links.items() if pages}


@dataclass(frozen=True, slots=True)
class Report:
    """Chart of runs per day, and what it omits."""

    chart: Chart
    #: requested days, such as ``2024-05-01``
    first: str
    last: str
    #: sentence if days are missing because their runs are not yet counted by group, else empty
    cut: str


def _report(session: Session) -> Report:
    """Return the days of the range in the report's time zone; days without runs have zeros."""
    zone = ZoneInfo(settings().time_zone)
    days_range = _requested_days(zone)
    names = day_names(days_range, zone)
    counts = dashboard.chart(
        session, current_actor(), from_ms=days_range.from_ms or 0, to_ms=days_range.to_ms or now_ms()
    )
    count_by_day = {day.day: day for day in counts.days}
    counted_days = [name for name in names if name > counts.uncounted]
    days = [count_by_day.get(name, DayCount(name, 0, 0, 0)) for name in counted_days]
    return Report(Chart(days), names[0], names[-1], _cut_sentence(counted_days) if counts.uncounted else "")


def _requested_days(zone: ZoneInfo) -> TimeRange:
    if _requested_range() == "custom":
        return requested_days(
            (request.args.get("from", ""), request.args.get("to", "")), zone, now_ms=now_ms()
        )
    return named_range(_requested_range(), zone, now_ms=now_ms())


def _cut_sentence(counted_days: Sequence[str]) -> str:
    if not counted_days:
        return _("Runs of your executor groups on these days have not been counted yet.")
    return _(
        "Runs of your executor groups before %(day)s have not been counted yet.",
        day=counted_days[0],
    )


def _requested_range() -> str:
    name = request.args.get("range", DEFAULT_RANGE)
    return name if name in DAY_RANGES else DEFAULT_RANGE
