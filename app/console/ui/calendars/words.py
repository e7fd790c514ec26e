"""Calendars in words: the day rule of a job in a sentence, and the options of its inputs."""

import json
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Any

from flask import Flask
from flask_babel import format_date

from app.console.ui.filters import comma_list
from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.calendars.calendar import UnknownDays
from app.domain.calendars.day_rule import EnteredRule, On, Otherwise, parse_rule
from app.domain.calendars.drafts import WEEKDAYS

#: a Monday, from which the names of weekdays are counted
_MONDAY = date(2024, 1, 1)
#: options of the selects, in their order
ONS: Mapping[On, str] = {
    On.WORKDAYS: _l("Workdays"),
    On.HOLIDAYS: _l("Holidays and weekends"),
}
OTHERWISES: Mapping[Otherwise, str] = {
    Otherwise.SKIP: _l("It does not run"),
    Otherwise.NEXT: _l("It runs on the next such day"),
    Otherwise.PREVIOUS: _l("It runs on the previous such day"),
}
UNKNOWNS: Mapping[UnknownDays, str] = {
    UnknownDays.WEEKDAY: _l("By their weekday, as if there were no holidays"),
    UnknownDays.HOLIDAY: _l("Holidays: nothing for workdays runs"),
    UnknownDays.WORKDAY: _l("Workdays, weekends too"),
}
_DAYS: Mapping[On, Callable[[str], str]] = {
    On.WORKDAYS: lambda name: _("on workdays of %(calendar)s", calendar=name),
    On.HOLIDAYS: lambda name: _("on holidays and weekends of %(calendar)s", calendar=name),
}
_LAST: Mapping[On, Callable[[str], str]] = {
    On.WORKDAYS: lambda name: _("on the last workday of the month of %(calendar)s", calendar=name),
    On.HOLIDAYS: lambda name: _("on the last holiday of the month of %(calendar)s", calendar=name),
}
_NTH: Mapping[On, Callable[[str, int], str]] = {
    On.WORKDAYS: lambda name, nth: _("on workday %(n)s of the month of %(calendar)s", n=nth, calendar=name),
    On.HOLIDAYS: lambda name, nth: _("on holiday %(n)s of the month of %(calendar)s", n=nth, calendar=name),
}
_ELSE: Mapping[tuple[On, Otherwise], Callable[[str], str]] = {
    (On.WORKDAYS, Otherwise.NEXT): lambda days: _("%(days)s; otherwise the next workday", days=days),
    (On.WORKDAYS, Otherwise.PREVIOUS): lambda days: _("%(days)s; otherwise the workday before", days=days),
    (On.HOLIDAYS, Otherwise.NEXT): lambda days: _("%(days)s; otherwise the next holiday", days=days),
    (On.HOLIDAYS, Otherwise.PREVIOUS): lambda days: _("%(days)s; otherwise the holiday before", days=days),
}


def rule_text(text: str | None) -> str:
    """Return a stored day rule in words: "on workdays of cn; otherwise the next workday"; empty for none."""
    rule = parse_rule(text)
    return rule_words(rule) if rule is not None else ""


def rule_words(rule: EnteredRule) -> str:
    """Return a day rule in words."""
    if rule.nth is not None and rule.nth < 0:
        return _LAST[rule.on](rule.name)
    if rule.nth is not None:
        return _NTH[rule.on](rule.name, rule.nth)
    days = _DAYS[rule.on](rule.name)
    otherwise = _ELSE.get((rule.on, rule.otherwise))
    return otherwise(days) if otherwise is not None else days


def weekday_names() -> list[tuple[str, str]]:
    """Return the short and the long names of the weekdays, Monday first."""
    days = [_MONDAY + timedelta(days=number) for number in range(7)]
    return [(format_date(day, "EEEEEE"), format_date(day, "EEE")) for day in days]


def weekend_value(value: Any) -> str:
    """Return the days of a weekend of the change history in words; a dash for none."""
    names = dict(zip(WEEKDAYS, weekday_names(), strict=True))
    return comma_list(names[name][1] for name in value if name in names) or "–"


def rule_value(value: Any) -> str:
    """Return a day rule of the change history, as JSON text or value, in words; a dash for none."""
    return rule_text(value if isinstance(value, str) else json.dumps(value)) or "–"


def init_app(app: Flask) -> None:
    """Add the template filter ``job.calendar|rule_text``."""
    app.add_template_filter(rule_text, "day_rule_text")
