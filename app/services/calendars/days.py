"""Days that a calendar takes from elsewhere: from a country's holidays or from a file."""

from dataclasses import dataclass
from datetime import date

from app.domain.calendars.calendar import SATURDAY_AND_SUNDAY, DayKind


@dataclass(frozen=True, slots=True)
class CountryDays:
    """Days with a kind of their own; days of a name are among them."""

    days: dict[date, DayKind]
    #: in the country's language, or as the file has it
    names: dict[date, str]
    #: as ``date.isoweekday`` numbers days: 1 is Monday
    weekend: frozenset[int] = SATURDAY_AND_SUNDAY
    #: last day whose kind is known
    valid_until: date | None = None
