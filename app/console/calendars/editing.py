"""Forms that add, change and delete calendars, and take days into one."""

from datetime import date
from functools import partial

from flask import Blueprint, render_template, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.console.calendars.forms import COUNTRY, FILE, NONE, SourceForm
from app.console.calendars.pages import calendar_page, find, form_of, requested_year, today
from app.console.calendars.year_view import country_names
from app.console.ui.forms import stale
from app.console.ui.forms.confirm import Question, confirm_page
from app.console.ui.lists.listing import here
from app.console.ui.notices import Subject, done, way_back
from app.console.web.access import Access
from app.console.web.current import current_actor, settings
from app.console.web.language import _
from app.database.flask_db import read_scope, transact
from app.domain.calendars.drafts import CalendarDraft, check_name
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import ChangedMeanwhile, Conflict, InvalidInput
from app.services.calendars import calendars, countries, imports
from app.services.calendars.calendars import NamedCalendar
from app.services.calendars.days import CountryDays
from app.store.calendars import calendars as store

blueprint = Blueprint("calendar_forms", __name__)
POLICY = {
    "add": Access.ADMIN,
    "edit": Access.ADMIN,
    "take_days": Access.ADMIN,
    "remove": Access.ADMIN,
}
NAME_TAKEN = N_("There is a calendar of this name already")
#: most bytes of an uploaded file that are read
_BYTES_MAX = imports.BYTES_MAX + 1
#: first line of an iCalendar file
_ICS = "BEGIN:VCALENDAR"


@blueprint.route("/calendars/new", methods=["GET", "POST"])
def add() -> ResponseReturnValue:
    """Add a calendar: with the days of a country, of a file, or none yet."""
    form = SourceForm(request.form, years=str(today().year))
    if request.method == "POST" and (row := _take(form, None)) is not None:
        address = url_for("calendars.show", calendar_id=row.id, year=_shown_year(row))
        return done("added", address, of=Subject("calendar", row.id, row.name))
    return _source_page(form, None)


@blueprint.post("/calendars/<int(max=2147483647):calendar_id>")
def edit(calendar_id: int) -> ResponseReturnValue:
    """Save the days of a year and the settings of a calendar."""
    year, errors = requested_year(), InputErrors()
    with read_scope() as session:
        row = find(session, calendar_id)
    form = form_of(row, year)
    draft = form.draft(row.calendar, year, errors)
    try:
        errors.raise_all()
        put = partial(calendars.put_calendar, name=row.name, draft=draft, loaded=stale.form_fingerprint())
        transact(partial(put, actor=current_actor(), clock=now_ms))
    except InvalidInput as exc:
        form.refuse(exc)
        return calendar_page(row, form)
    except ChangedMeanwhile as exc:
        stale.refuse(form, exc, None, url_for("calendars.show", calendar_id=calendar_id, year=year))
        return calendar_page(row, form)
    address = url_for("calendars.show", calendar_id=calendar_id, year=year)
    return done("saved", address, of=Subject("calendar", calendar_id, row.name))


@blueprint.route("/calendars/<int(max=2147483647):calendar_id>/import", methods=["GET", "POST"])
def take_days(calendar_id: int) -> ResponseReturnValue:
    """Take the days of a country or a file into a calendar."""
    with read_scope() as session:
        row = find(session, calendar_id)
    until = row.calendar.valid_until
    next_year = today().year if until is None else until.year + 1
    form = SourceForm(request.form, years=str(next_year))
    if request.method == "POST" and (result := _take(form, row)) is not None:
        address = url_for("calendars.show", calendar_id=calendar_id, year=_shown_year(result))
        return done("saved", address, of=Subject("calendar", calendar_id, row.name))
    return _source_page(form, row)


@blueprint.route("/calendars/<int(max=2147483647):calendar_id>/delete", methods=["GET", "POST"])
def remove(calendar_id: int) -> ResponseReturnValue:
    """Delete a calendar that no job goes by."""
    with read_scope() as session:
        row = find(session, calendar_id)
    if request.method == "POST":
        transact(partial(calendars.remove_calendar, name=row.name, actor=current_actor(), clock=now_ms))
        return done("removed", url_for("calendars.index"), of=Subject("calendar", row.id, row.name))
    consequences, first = [_("No job goes by it.")], None
    if row.jobs:
        consequences = [_("Jobs that go by it: %(n)s. Choose another calendar for them first.", n=row.jobs)]
        first = _("Show the jobs"), url_for("calendars.show", calendar_id=row.id)
    question = Question(
        _("Delete the calendar?"), row.name, consequences, _("Delete"), "danger", "trash", first
    )
    return confirm_page(question, back=way_back("calendars.index"))


def _take(form: SourceForm, row: NamedCalendar | None) -> NamedCalendar | None:
    """Store the days that were asked for; None with the errors in the form."""
    errors = InputErrors()
    name, days = row.name if row is not None else form.name.data or "", None
    try:
        if row is None:
            with errors:
                name = check_name(name)
        with errors:
            days = _read(form)
        errors.raise_all()
        return transact(partial(_store, name=name, days=days, form=form, is_new=row is None))
    except InvalidInput as exc:
        form.refuse(exc)
    except Conflict as exc:
        form.refuse(InvalidInput("", exc.args[0]))
    return None


def _read(form: SourceForm) -> CountryDays | None:
    """Return the days that were asked for; None for a new calendar without any; raises InvalidInput."""
    if form.source.data == NONE:
        return None
    if form.source.data == FILE:
        text = _sent_text(form)
        read = imports.days_of_ics if text.lstrip("\ufeff \r\n").startswith(_ICS) else imports.days_of_csv
        return read(text)
    country = (form.country.data or "").partition(" ")[0]
    if not country:
        raise InvalidInput("country", N_("Choose a country"))
    return countries.country_days(country, form.read_years())


def _sent_text(form: SourceForm) -> str:
    """Return the file that was sent, or the text; raises InvalidInput."""
    upload = request.files.get("upload")
    if upload is not None and upload.filename:
        try:
            return upload.stream.read(_BYTES_MAX).decode("utf-8-sig")
        except UnicodeDecodeError as exc:
            raise InvalidInput("file", N_("The file is not text in UTF-8")) from exc
    text = form.text.data or ""
    if not text.strip():
        raise InvalidInput("file", N_("Choose a file, or enter its lines"))
    return text


def _store(
    session: Session, *, name: str, days: CountryDays | None, form: SourceForm, is_new: bool
) -> NamedCalendar:
    actor, with_java = current_actor(), settings().shared_with_java
    if is_new and store.find_calendar(session, name) is not None:
        raise InvalidInput("name", NAME_TAKEN)
    if days is None:
        draft = CalendarDraft(readable_by_java=with_java)
        return calendars.put_calendar(session, name, draft, actor=actor, clock=now_ms)
    return calendars.import_days(
        session,
        name,
        days,
        actor=actor,
        clock=now_ms,
        replace=bool(form.replace.data),
        readable_by_java=with_java,
    )


def _shown_year(row: NamedCalendar) -> int:
    """Return the year to show after days were taken: the last that has days, or this one."""
    days: list[date] = sorted(row.calendar.days)
    return days[-1].year if days and days[-1] > today() else today().year


def _source_page(form: SourceForm, row: NamedCalendar | None) -> ResponseReturnValue:
    form.source.choices = [
        (COUNTRY, _("The holidays of a country")),
        (FILE, _("A file: iCalendar (.ics) or CSV")),
        *([(NONE, _("None yet: I mark them by hand"))] if row is None else []),
    ]
    cancel = url_for("calendars.show", calendar_id=row.id) if row else way_back("calendars.index")
    page = render_template(
        "calendars/source.html",
        form=form,
        calendar=row,
        countries=country_names(countries.known_countries()),
        action=here(),
        cancel=cancel,
    )
    return page, 400 if form.wrong_fields or form.form_errors else 200
