"""Schemas: calendars, their versions and days."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from app.api.v1.schemas.base import Instant, ListQuery, Query, Schema
from app.domain.calendars.calendar import DayKind, UnknownDays
from app.domain.calendars.day_rule import NAME_MAX
from app.domain.calendars.drafts import DAY_NAME_MAX, DAYS_MAX, FIRST_YEAR, LAST_YEAR, WEEKDAYS

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
DayWord = Literal["workday", "holiday"]
Unknown = Literal["weekday", "holiday", "workday"]
Year = Annotated[int, Field(ge=FIRST_YEAR, le=LAST_YEAR)]

WEEKEND = "Weekdays that are no workdays."
DAYS = "Days that are something else than their weekday says, or that have a name: day -> its kind."
NAMES = f"Names of some of these days, {DAY_NAME_MAX} characters at most."
VALID_UNTIL = "The last day that it knows; null: it knows all."
UNKNOWN = (
    "What later days are: `weekday`: workdays but for the weekend; `holiday`, `workday`: all of them that."
)


def _weekday(value: Any) -> Any:
    """Refuse a word with one error, where a union has one for each of its types."""
    if isinstance(value, str) and value not in WEEKDAYS:
        raise ValueError(f"must be one of {', '.join(WEEKDAYS)}, or 1 to 7")
    return value


#: a weekday as it is entered
EnteredWeekday = Annotated[Weekday | int, BeforeValidator(_weekday)]


class CalendarQuery(ListQuery):
    """Filters of calendars: there is none."""


class DaysQuery(Query):
    """Parameters of the days of a calendar."""

    year: Year = Field(description="Year.")


class CalendarOut(Schema):
    """Calendar: which days are workdays and which are holidays."""

    VOLATILE = frozenset({"jobs", "used_by"})

    name: str = Field(examples=["cn"])
    weekend: list[Weekday] = Field(description=WEEKEND)
    valid_until: str | None = Field(description=VALID_UNTIL, examples=["2026-12-31"])
    unknown: UnknownDays = Field(description=UNKNOWN)
    workdays: int = Field(description="How many days are workdays whatever their weekday is.")
    holidays: int = Field(description="How many days are holidays whatever their weekday is.")
    version: int = Field(description="Number of the latest version.")
    changed_at: Instant = Field(description="Since when that version holds.")
    changed_by: str
    jobs: int = Field(description="How many jobs go by it, also those that the token may not see.")


class CalendarVersionOut(Schema):
    """Version of a calendar."""

    number: int
    since: Instant = Field(description="From then on it held.")
    author: str
    workdays: int
    holidays: int
    valid_until: str | None


class CalendarDetail(CalendarOut):
    """Calendar with its days, its versions and the jobs that go by it."""

    days: dict[str, DayKind] = Field(description=DAYS, examples=[{"2026-10-01": "holiday"}])
    names: dict[str, str] = Field(description=NAMES, examples=[{"2026-10-01": "国庆节"}])
    versions: list[CalendarVersionOut] = Field(description="The newest first, 50 at most.")
    used_by: list[int] = Field(description="Ids of the jobs that go by it and that the token may see.")


class CalendarIn(Schema):
    """What a calendar says; what is left out has its default."""

    weekend: list[EnteredWeekday] = Field(
        ["saturday", "sunday"], max_length=7, description=f"{WEEKEND} Also 1 to 7; 1 is Monday."
    )
    days: dict[str, DayWord] = Field({}, max_length=DAYS_MAX, description=DAYS)
    names: dict[str, str] = Field({}, max_length=DAYS_MAX, description=NAMES)
    valid_until: str | None = Field(None, max_length=10, description=VALID_UNTIL, examples=["2026-12-31"])
    unknown: Unknown = Field("weekday", description=UNKNOWN)


class NewCalendar(CalendarIn):
    """A new calendar."""

    name: str = Field(max_length=NAME_MAX, examples=["cn"])


class CalendarImport(Schema):
    """Days to take into a calendar: of a country, or of a file."""

    country: str = Field("", max_length=10, description="ISO code, such as `CN` or `DE-BY`.", examples=["CN"])
    years: list[Year] = Field([], max_length=50, description="Of the country.", examples=[[2026, 2027]])
    ics: str = Field("", description="Text of an iCalendar file, 1 MB at most.")
    csv: str = Field("", description="Text of lines such as `2026-10-01,holiday,国庆节`, 1 MB at most.")
    replace: bool = Field(
        False, description="Without the days so far; otherwise those of other years than the new ones stay."
    )


class CalendarDay(Schema):
    """Day of a year."""

    date: str = Field(examples=["2026-10-01"])
    kind: DayKind
    name: str = Field(examples=["国庆节"])
    by_rule: bool = Field(description="By its weekday alone, or by the rule for unknown days.")
    is_makeup: bool = Field(description="A workday although its weekday is none.")
    is_known: bool = Field(description="Not after `valid_until`.")


class CalendarDays(Schema):
    """Days of a year."""

    items: list[CalendarDay]
