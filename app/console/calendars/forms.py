"""Forms of calendars: settings and days of a year, a new one, and days from elsewhere."""

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType

from wtforms import BooleanField, HiddenField, SelectField, SelectMultipleField, StringField, TextAreaField
from wtforms.widgets import CheckboxInput, ListWidget

from app.console.calendars.year_view import days_text
from app.console.ui.calendars.words import UNKNOWNS, weekday_names
from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.labels import choices
from app.console.web.language import lazy_gettext as _l
from app.domain.calendars.calendar import Calendar, DayKind
from app.domain.calendars.drafts import CalendarDraft, draft_of
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.calendars import imports

#: values of the select of a source
COUNTRY, FILE, NONE = "country", "file", "none"


class CalendarForm(ConsoleForm):
    """Change the days of a year of a calendar, and its settings."""

    ORDER = ("days", "weekend", "valid_until", "unknown")
    #: errors of single days are shown at the text
    ALIASES: Mapping[str, str] = MappingProxyType({"file": "days"})

    loaded = HiddenField()
    days = TextAreaField(_l("Days"))
    weekend = SelectMultipleField(
        _l("Weekend"), widget=ListWidget(), option_widget=CheckboxInput(), validate_choice=False
    )
    valid_until = StringField(_l("Known until"))
    unknown = SelectField(_l("Days after that"), validate_choice=False)

    def offer(self) -> None:
        """Fill the choices."""
        self.weekend.choices = [
            (str(number), name) for number, (_short, name) in enumerate(weekday_names(), 1)
        ]
        self.unknown.choices = choices(UNKNOWNS)

    def draft(self, calendar: Calendar, year: int, errors: InputErrors) -> CalendarDraft:
        """Return the calendar with the days of a year as entered; errors of lines are collected."""
        present = draft_of(calendar)
        days = {day: kind for day, kind in present.days.items() if not day.startswith(f"{year}-")}
        names = {day: name for day, name in present.names.items() if day in days}
        with errors:
            kinds, day_names = read_days(self.days.data or "", year)
            days |= {day.isoformat(): kind.value for day, kind in kinds.items()}
            names |= {day.isoformat(): name for day, name in day_names.items()}
        return CalendarDraft(
            self.weekend.data or (),
            days,
            names,
            (self.valid_until.data or "").strip(),
            self.unknown.data or present.unknown,
        )


def form_values(calendar: Calendar, year: int) -> dict[str, object]:
    """Return the values of the inputs for a stored calendar."""
    return {
        "days": days_text(calendar, year),
        "weekend": [str(number) for number in sorted(calendar.weekend)],
        "valid_until": "" if calendar.valid_until is None else calendar.valid_until.isoformat(),
        "unknown": calendar.unknown.value,
    }


def read_days(text: str, year: int) -> tuple[dict[date, DayKind], dict[date, str]]:
    """Return the days of a year, and their names, of lines; raises InvalidInput."""
    if not text.strip():
        return {}, {}
    read = imports.days_of_csv(text.replace("\r\n", "\n"))
    foreign = next((day for day in read.days if day.year != year), None)
    if foreign is not None:
        problem = N_("%(day)s is not a day of %(year)s; choose its year above", day=foreign, year=year)
        raise InvalidInput("days", problem)
    return read.days, read.names


class SourceForm(ConsoleForm):
    """Take days from a country or a file, into a new calendar or one that exists."""

    ORDER = ("name", "source", "country", "years", "text", "replace")
    ALIASES: Mapping[str, str] = MappingProxyType({"file": "text"})

    name = StringField(_l("Name"))
    source = SelectField(_l("Days"), validate_choice=False, default=COUNTRY)
    country = StringField(_l("Country"))
    years = StringField(_l("Years"))
    text = TextAreaField(_l("File or text"))
    replace = BooleanField(_l("Remove the days of all other years"))

    def read_years(self) -> list[int]:
        """Return the years in ``2026, 2027`` or ``2026-2027``; raises InvalidInput."""
        text = (self.years.data or "").replace("，", ",").replace("–", "-").strip()
        years = list[int]()
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            first, dash, last = part.partition("-")
            bounds = [piece.strip() for piece in ((first, last) if dash else (first,))]
            if not all(len(piece) == 4 and piece.isascii() and piece.isdecimal() for piece in bounds):
                raise InvalidInput("years", N_("Enter years such as 2026, 2027"))
            years += range(int(bounds[0]), int(bounds[-1]) + 1)
        if not years:
            raise InvalidInput("years", N_("Enter years such as 2026, 2027"))
        return sorted(set(years))
