"""Load page: scheduled starts per hour, to find a quiet hour, and a calendar of the last year's runs."""

from datetime import datetime
from zoneinfo import ZoneInfo

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import Millis, now_ms
from app.console.report.planned_hours import (
    MINUTES,
    NEXT_HOURS,
    clash_rows,
    groups_of,
    minutes_chart,
    planned_hours,
)
from app.console.report.run_calendar import first_day, run_calendar
from app.console.ui.filters import reader_zone
from app.console.ui.lists.listing import whole_number
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.database.flask_db import read_scope
from app.domain.access.permissions import Actor, Right
from app.domain.schedules.planned_starts import next_days
from app.services.report import dashboard
from app.services.report.planned_load import (
    find_clashes,
    find_starters,
    find_titles,
    minute_starts,
    planned_load,
)

blueprint = Blueprint("load", __name__)
POLICY = {
    "index": Access.LOGIN,
}

#: days ahead, from the next full hour
DAYS = 7
#: jobs listed per hour
STARTERS = 8
#: minutes listed in which several jobs of a group start
CLASHES = 6


@blueprint.get("/load")
def index() -> ResponseReturnValue:
    """Show planned load and calendar."""
    actor, at_ms, zone = current_actor(), now_ms(), ZoneInfo(settings().time_zone)
    if not actor.has_anywhere(Right.VIEW):
        return render_template("report/load.html", load=None)
    first = first_day(at_ms, zone)
    first_ms = int(datetime(first.year, first.month, first.day, tzinfo=zone).timestamp()) * 1000
    with read_scope() as session:
        plan_values = _plan_values(session, actor, at_ms)
        chart = dashboard.chart(session, actor, from_ms=first_ms, to_ms=at_ms)
    calendar = run_calendar(
        chart, first, now_ms=at_ms, zone=zone, retention_days=settings().log_retention_days
    )
    return render_template(
        "report/load.html", **plan_values, calendar=calendar, all_jobs=actor.is_admin, calendar_zone=zone.key
    )


def _plan_values(session: Session, actor: Actor, at_ms: Millis) -> dict[str, object]:
    """Return what the template shows of the coming days."""
    reader, with_frequent = reader_zone().key, "all" in request.args
    window = next_days(at_ms, reader, days=DAYS)
    load = planned_load(session, actor, window, now_ms=at_ms, with_frequent=with_frequent)
    titles = find_titles(session, load)
    groups = groups_of(load, titles)
    base = url_for("load.index", all=1) + "&" if with_frequent else url_for("load.index") + "?"
    hours = planned_hours(load, groups, reader, whole_number("hour", -1), base=base)
    hour = hours.selected_hour
    place = whole_number("minute", -1)
    minute = hour.at.hours[0] * MINUTES + place if 0 <= place < MINUTES else None
    starters, starting = find_starters(session, actor, load, hour.at.hours, limit=STARTERS, minute=minute)
    return {
        "load": load,
        "with_frequent": with_frequent,
        "hours": hours,
        "minutes": minutes_chart(
            groups, hour, minute_starts(load, hour.at.hours), minute, window=window, base=base
        ),
        "minute": f"{hour.at.hour:02d}:{place:02d}" if minute is not None else "",
        "starters": starters,
        "starting": starting,
        "clashes": clash_rows(
            find_clashes(load, hours=NEXT_HOURS, limit=CLASHES), window, titles, reader_zone(), base
        ),
    }
