"""Load page: scheduled starts per hour, to find a quiet hour, and a calendar of the last year's runs."""

from datetime import datetime
from zoneinfo import ZoneInfo

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from app.clock import now_ms
from app.console.report.planned_hours import planned_hours
from app.console.report.run_calendar import first_day, run_calendar
from app.console.ui.filters import reader_zone
from app.console.ui.lists.listing import whole_number
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right
from app.domain.schedules.planned_starts import next_days
from app.services.report import dashboard
from app.services.report.planned_load import find_starters, planned_load

blueprint = Blueprint("load", __name__)
POLICY = {
    "index": Access.LOGIN,
}

#: days ahead, from the next full hour
DAYS = 7
#: jobs listed per hour
STARTERS = 8


@blueprint.get("/load")
def index() -> ResponseReturnValue:
    """Show planned load and calendar."""
    actor, at_ms, zone = current_actor(), now_ms(), ZoneInfo(settings().time_zone)
    if not actor.has_anywhere(Right.VIEW):
        return render_template("report/load.html", load=None)
    first, reader = first_day(at_ms, zone), reader_zone().key
    first_ms = int(datetime(first.year, first.month, first.day, tzinfo=zone).timestamp()) * 1000
    with read_scope() as session:
        load = planned_load(session, actor, next_days(at_ms, reader, days=DAYS), now_ms=at_ms)
        hours = planned_hours(load, reader, whole_number("hour", -1))
        starters, starting = find_starters(session, actor, load, hours.selected_hour.at.hours, limit=STARTERS)
        chart = dashboard.chart(session, actor, from_ms=first_ms, to_ms=at_ms)
    calendar = run_calendar(
        chart, first, now_ms=at_ms, zone=zone, retention_days=settings().log_retention_days
    )
    return render_template(
        "report/load.html",
        load=load,
        hours=hours,
        starters=starters,
        starting=starting,
        calendar=calendar,
        all_jobs=actor.is_admin,
        calendar_zone=zone.key,
    )
