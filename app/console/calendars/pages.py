"""Pages of calendars: the list, and the year of one with its jobs and versions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session
from werkzeug.utils import redirect

from app.clock import now_ms
from app.console.calendars.forms import CalendarForm, form_values
from app.console.calendars.job_marks import marks_of
from app.console.calendars.year_view import FIRST_YEAR, LAST_YEAR, JobMark, count_days, year_view
from app.console.ui.calendars.words import rule_words
from app.console.ui.filters import reader_zone
from app.console.ui.lists.listing import whole_number
from app.console.web.access import Access
from app.console.web.current import current_actor, settings, translate
from app.console.web.language import _
from app.database.flask_db import read_scope
from app.domain.access.permissions import Actor, Right
from app.domain.calendars.calendar import Calendar
from app.domain.calendars.day_rule import parse_rule
from app.domain.calendars.drafts import count_kinds
from app.domain.text.fingerprints import fingerprint
from app.services.calendars import calendars
from app.services.calendars.calendars import NamedCalendar
from app.services.executors import groups
from app.services.jobs import jobs

blueprint = Blueprint("calendars", __name__)
POLICY = {
    "index": Access.LOGIN,
    "show": Access.VIEW,
    "of_job": Access.VIEW,
}


@dataclass(frozen=True, slots=True)
class ListedCalendar:
    """A row of the list."""

    calendar: NamedCalendar
    workdays: int
    makeup: int
    warning: str


def today() -> date:
    """Return the day that it is for the reader."""
    return datetime.fromtimestamp(now_ms() / 1000, reader_zone()).date()


def warning_of(calendar: Calendar, day: date) -> str:
    """Return that a calendar does not know this day, or from 1 November on the next year; else empty."""
    if not calendar.is_ending(day):
        return ""
    if calendar.is_known(day):
        return _("It does not know the year %(year)s yet: import its days.", year=day.year + 1)
    return _("It knows no day after %(day)s: its rule for unknown days holds.", day=calendar.valid_until)


@blueprint.get("/calendars")
def index() -> ResponseReturnValue:
    """List the calendars."""
    actor, day = current_actor(), today()
    with read_scope() as session:
        visible = calendars.list_calendars(session, actor=actor)
    rows = [
        ListedCalendar(row, *count_days(row.calendar, day.year), warning_of(row.calendar, day))
        for row in visible
    ]
    return render_template(
        "calendars/index.html",
        rows=rows,
        year=day.year,
        may_add=actor.is_admin,
        hint=translate(calendars.WITHOUT_JAVA) if settings().shared_with_java else "",
    )


@blueprint.get("/calendars/<int(max=2147483647):calendar_id>")
def show(calendar_id: int) -> ResponseReturnValue:
    """Show a year of a calendar; ``?job=`` marks the days of a job."""
    with read_scope() as session:
        row = find(session, calendar_id)
    return calendar_page(row, form_of(row, requested_year()))


@blueprint.get("/calendars/of-job/<int(max=2147483647):job_id>")
def of_job(job_id: int) -> ResponseReturnValue:
    """Lead to the calendar of a job, with the days of the job; of a job without one to its page."""
    with read_scope() as session:
        rule = parse_rule(jobs.get_job(session, job_id, actor=current_actor()).calendar)
        if rule is None:
            return redirect(url_for("jobs.show", job_id=job_id))
        row = calendars.get_calendar(session, rule.name, actor=current_actor())
    return redirect(url_for("calendars.show", calendar_id=row.id, job=job_id))


def find(session: Session, calendar_id: int) -> NamedCalendar:
    """Return a calendar by its id; raises NotFound."""
    return calendars.get_by_id(session, calendar_id, actor=current_actor())


def requested_year() -> int:
    """Return the year of the address, or the present one."""
    year = whole_number("year", 0)
    return year if FIRST_YEAR <= year <= LAST_YEAR else today().year


def form_of(row: NamedCalendar, year: int) -> CalendarForm:
    """Return the form of a calendar, with what was entered instead of its values."""
    state = fingerprint(calendars.state_of(row))
    # Boxes that an empty form does not name would be unticked.
    return CalendarForm(request.form or None, data={**form_values(row.calendar, year), "loaded": state})


def calendar_page(row: NamedCalendar, form: CalendarForm) -> ResponseReturnValue:
    """Return the page of a calendar with a form."""
    actor, year, job_id = current_actor(), requested_year(), whole_number("job", 0)
    with read_scope() as session:
        users = calendars.list_jobs(session, row.name, actor=actor)
        versions = calendars.list_versions(session, row)
        titles = {group.id: group.title for group in groups.visible_groups(session, actor)}
        marks = _marks(session, job_id, year, actor) if any(job.id == job_id for job in users) else None
    form.offer()
    page = render_template(
        "calendars/show.html",
        form=form,
        calendar=row,
        view=year_view(row.calendar, year, today=today(), marks=marks),
        first_year=FIRST_YEAR,
        last_year=LAST_YEAR,
        year_address=_addresses(row.id, job_id if marks is not None else 0),
        warning=warning_of(row.calendar, today()),
        jobs=users,
        hidden_jobs=row.jobs - len(users),
        marked_job=job_id if marks is not None else 0,
        versions=[(version, count_kinds(version.calendar)) for version in versions],
        rule_words=rule_words,
        titles=titles,
        may_change=actor.is_admin and not settings().shared_with_java,
    )
    return page, 400 if form.wrong_fields or form.form_errors else 200


def _addresses(calendar_id: int, job_id: int) -> Callable[..., str]:
    def address(year: int, *, without_job: bool = False) -> str:
        more: dict[str, Any] = {"job": job_id} if job_id and not without_job else {}
        return url_for("calendars.show", calendar_id=calendar_id, year=year, **more)

    return address


def _marks(session: Session, job_id: int, year: int, actor: Actor) -> Mapping[date, JobMark]:
    job = jobs.get_job(session, job_id, actor=actor, right=Right.VIEW)
    return marks_of(job, year)
