"""Sources of days for an import: a country, an iCalendar file or a CSV file; read before a transaction."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.services.calendars.countries import country_days
from app.services.calendars.days import CountryDays
from app.services.calendars.imports import days_of_csv, days_of_ics


@dataclass(frozen=True, slots=True)
class Source:
    """Where days come from: exactly one of country, ics and csv."""

    country: str = ""
    years: Sequence[int] = ()
    #: text of a file
    ics: str = ""
    csv: str = ""


def read_days(source: Source) -> CountryDays:
    """Return the days of a source, which takes up to a second; raises InvalidInput."""
    if sum(map(bool, (source.country, source.ics, source.csv))) != 1:
        problem = N_("Give one of these: a country, or the text of an ICS or of a CSV file")
        raise InvalidInput("country", problem)
    if source.country:
        return country_days(source.country, source.years)
    try:
        return days_of_ics(source.ics) if source.ics else days_of_csv(source.csv)
    except InvalidInput as exc:
        for error in exc.errors:
            error.field = "ics" if source.ics else "csv"
        raise
