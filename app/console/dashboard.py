"""The dashboard: how many, how it went, what is wrong."""

from zoneinfo import ZoneInfo

from flask import Blueprint, jsonify, render_template, request
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.current import current_actor, settings
from app.console.ranges import day_names, named_range
from app.console.words import RANGES, choices
from app.db import read_scope
from app.services import dashboard
from app.services.dashboard import Chart
from app.store.day_counts import DayCount

blueprint = Blueprint("dashboard", __name__)

DEFAULT_RANGE = "week"
#: ranges that make sense in days
DAY_RANGES = ("today", "yesterday", "week", "month", "this_month", "last_month")


@blueprint.get("/")
def index() -> ResponseReturnValue:
    """Show the dashboard."""
    with read_scope() as session:
        shown = dashboard.board(session, current_actor(), now_ms=now_ms())
    ranges = choices({name: RANGES[name] for name in DAY_RANGES})
    return render_template("dashboard/index.html", board=shown, chart=_chart(), ranges=ranges, range=_asked_range())


@blueprint.get("/report")
def chart() -> ResponseReturnValue:
    """Return the runs by day as JSON, for the charts."""
    days = _chart().days
    return jsonify(days=[{"day": day.day, "success": day.success, "failed": day.failed, "running": day.running} for day in days])


def _chart() -> Chart:
    """Return the days of the range, in the zone the days are counted in; those without a run have zeros."""
    zone = ZoneInfo(settings().time_zone)
    asked = named_range(_asked_range(), zone, now_ms=now_ms())
    with read_scope() as session:
        found = dashboard.chart(session, current_actor(), from_ms=asked.from_ms or 0, to_ms=asked.to_ms or now_ms())
    counted = {day.day: day for day in found.days}
    return Chart([counted.get(name, DayCount(name, 0, 0, 0)) for name in day_names(asked, zone)])


def _asked_range() -> str:
    name = request.args.get("range", DEFAULT_RANGE)
    return name if name in DAY_RANGES else DEFAULT_RANGE
