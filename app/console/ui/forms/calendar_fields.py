"""Inputs of the day rule of a job: its calendar, on which days it runs, and what becomes of the others.

The stored value is a JSON text; without a calendar the other inputs say nothing.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from wtforms import SelectField
from wtforms.fields.core import Field

from app.console.ui.calendars.words import ONS, OTHERWISES
from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.labels import choices
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.calendars.day_rule import CALENDAR, NTH_MAX, On, Otherwise, parse_rule

#: in the order of the page
CALENDAR_INPUTS: Final = ("calendar_name", "calendar_on", "calendar_nth", "calendar_otherwise")
#: member of the value -> its input
_INPUT_OF: Final = {member: f"calendar_{member}" for member in ("name", "on", "otherwise", "nth")}
_OPTIONS: Mapping[str, Mapping[Any, str]] = {"calendar_on": ONS, "calendar_otherwise": OTHERWISES}
LAST: Final = -1


class CalendarFields(ConsoleForm):
    """Form with the inputs of a day rule."""

    calendar_name = SelectField(_l("Calendar"), validate_choice=False)
    calendar_on = SelectField(_l("Runs on"), validate_choice=False, default=On.WORKDAYS.value)
    calendar_nth = SelectField(_l("Which of them"), validate_choice=False)
    calendar_otherwise = SelectField(
        _l("When it is due on another day"), validate_choice=False, default=Otherwise.SKIP.value
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, titles in _OPTIONS.items():
            self._select(name).choices = choices(titles)
        numbers = [(str(nth), _("only number %(n)s of the month", n=nth)) for nth in range(1, NTH_MAX + 1)]
        last = (str(LAST), _("only the last of the month"))
        self._select("calendar_nth").choices = [("", _("all of them")), last, *numbers]
        self.offer_calendars(())

    def offer_calendars(self, names: Iterable[str]) -> None:
        """Fill the select with the calendars; one that does not exist stays."""
        own = self.calendar_name.data or ""
        visible = list(names)
        offers = [*visible, *([own] if own and own not in visible else [])]
        self._select("calendar_name").choices = [
            ("", _("none: it runs on all days")),
            *((name, name) for name in offers),
        ]

    def field_at(self, name: str) -> Field | None:
        """Return the field of a name; an error of the value such as ``calendar.nth`` has its own."""
        place, _dot, member = name.partition(".")
        if place != CALENDAR:
            return super().field_at(name)
        return self[_INPUT_OF.get(member.partition(".")[0], "calendar_name")]

    def _select(self, name: str) -> SelectField:
        select = self[name]
        assert isinstance(select, SelectField)
        return select


def calendar_values(text: str | None) -> dict[str, str]:
    """Return the values of the inputs for a stored value."""
    rule = parse_rule(text)
    if rule is None:
        return {}
    return {
        "calendar_name": rule.name,
        "calendar_on": rule.on.value,
        "calendar_otherwise": rule.otherwise.value,
        "calendar_nth": "" if rule.nth is None else str(rule.nth),
    }


def calendar_json(form: CalendarFields) -> str:
    """Return the value in a form as JSON text, ``null`` without a calendar; the service checks it."""
    name = form.calendar_name.data or ""
    if not name:
        return "null"
    nth = form.calendar_nth.data or ""
    value = {
        "name": name,
        "on": form.calendar_on.data or On.WORKDAYS.value,
        "otherwise": form.calendar_otherwise.data or Otherwise.SKIP.value,
        "nth": int(nth) if nth.removeprefix("-").isdecimal() and len(nth) <= 3 else None,
    }
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
