"""Entered calendars: what is refused at the door, at which place, and what is compared and stored."""

from datetime import date, timedelta
from typing import Any

import pytest

from app.domain.calendars.calendar import SATURDAY_AND_SUNDAY, DayKind, UnknownDays
from app.domain.calendars.drafts import CalendarDraft, days_text, draft_of, is_same, read_draft, summary
from app.errors import InvalidInput
from app.store.calendars.rules import calendar_of
from tests.support.truth_table import truth_table

NATIONAL_DAY = date(2026, 10, 1)
CN = CalendarDraft(
    days={"2026-10-10": "workday", "2026-10-01": "holiday"},
    names={"2026-10-01": " 国庆节 "},
    valid_until="2026-12-31",
    unknown="holiday",
)


def test_a_calendar_is_read_and_stored() -> None:
    calendar = read_draft(" cn ", CN)
    assert (calendar.name, calendar.weekend) == ("cn", SATURDAY_AND_SUNDAY)
    assert calendar.days == {NATIONAL_DAY: DayKind.HOLIDAY, date(2026, 10, 10): DayKind.WORKDAY}
    assert calendar.names == {NATIONAL_DAY: "国庆节"}
    assert (calendar.valid_until, calendar.unknown) == (date(2026, 12, 31), UnknownDays.HOLIDAY)
    text = days_text(calendar)
    assert text == '{"2026-10-01":["holiday","国庆节"],"2026-10-10":"workday"}'
    stored = calendar_of("cn", "6,7", text, "2026-12-31", "holiday")
    assert is_same(stored, calendar)
    assert not is_same(stored, read_draft("cn", CalendarDraft()))
    assert read_draft("cn", draft_of(calendar)).days == calendar.days
    assert summary(calendar) == {
        "weekend": ["saturday", "sunday"],
        "workdays": 1,
        "holidays": 1,
        "valid_until": "2026-12-31",
        "unknown": "holiday",
    }


def test_a_weekend_is_named_or_numbered() -> None:
    draft = CalendarDraft(weekend=["Friday", 6, "6"])
    assert read_draft("ae", draft).weekend == {5, 6}
    assert read_draft("none", CalendarDraft(weekend=[])).weekend == frozenset()


MANY = {(date(2001, 1, 1) + timedelta(number)).isoformat(): "holiday" for number in range(4_001)}


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"weekend": ["saturday", "caturday"]}, ["weekend.1"]),
        ({"weekend": [0]}, ["weekend.0"]),
        ({"days": {"2026-02-29": "holiday"}}, ["days.2026-02-29"]),
        ({"days": {"20261001": "holiday"}}, ["days.20261001"]),
        ({"days": {"2026-W40-4": "holiday"}}, ["days.2026-W40-4"]),
        ({"days": {"1969-12-31": "holiday"}}, ["days.1969-12-31"]),
        ({"days": {"2101-01-01": "holiday"}}, ["days.2101-01-01"]),
        ({"days": {"2026-10-01": "feast"}}, ["days.2026-10-01"]),
        ({"days": MANY}, ["days"]),
        ({"names": {"2026-10-02": "国庆节"}}, ["names.2026-10-02"]),
        ({"days": {"2026-10-01": "holiday"}, "names": {"2026-10-01": "x" * 65}}, ["names.2026-10-01"]),
        ({"days": {"2026-10-01": "holiday"}, "names": {"2026-10-01": "a\nb"}}, ["names.2026-10-01"]),
        ({"valid_until": "next year", "unknown": "unknown"}, ["valid_until", "unknown"]),
    ],
)
def test_a_wrong_value_is_refused_at_its_place(changes: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        read_draft("cn", CalendarDraft(**changes))
    assert [item.field for item in error.value.errors] == fields


@pytest.mark.parametrize("name", ["", "   ", "x" * 65, "a\nb", "a\x00b", "a/b", ".."])
def test_a_wrong_name_is_refused_with_the_rest(name: str) -> None:
    with pytest.raises(InvalidInput) as error:
        read_draft(name, CalendarDraft(unknown=""))
    assert [item.field for item in error.value.errors] == ["name", "unknown"]


@truth_table(
    "valid_until, today, ending",
    [
        ("", "2026-12-31", False),
        ("2026-12-31", "2026-10-31", False),
        ("2026-12-31", "2026-11-01", True),
        ("2027-01-01", "2026-12-31", False),
        ("2026-06-30", "2026-06-30", False),
        ("2026-06-30", "2026-07-01", True),
    ],
)
def test_when_a_calendar_ends(valid_until: str, today: str, ending: bool) -> None:
    calendar = read_draft("cn", CalendarDraft(valid_until=valid_until))
    assert calendar.is_ending(date.fromisoformat(today)) is ending
