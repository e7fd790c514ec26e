"""Pages of calendars: list, year of one, its text, days from elsewhere, and what jobs forbid."""

import json
import re
from datetime import date

import pytest

from app.console.calendars.pages import warning_of
from app.database.engine import read_scope
from app.domain.calendars.calendar import Calendar, DayKind
from app.models.calendar import CalendarVersion, JobCalendar
from app.store.calendars import calendars as store
from tests.console.pages import markup_of, path_after, submit, text_of, unnamed_path_after
from tests.support.console import Console, add_group, add_job, add_user
from tests.support.factories import all_rows, only_row

pytestmark = pytest.mark.databases("sqlite")

#: of a form of a calendar as it is opened
SETTINGS = {"weekend": ["6", "7"], "valid_until": "", "unknown": "weekday"}
LINES = "2026-10-01,holiday,国庆节\n2026-10-10,班,国庆节\n"


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


def add_calendar(admin: Console, name: str = "cn") -> str:
    """Add a calendar without days; return its address."""
    submit(admin, "/calendars/new", name=name, source="none")
    return f"/calendars/{only_row(JobCalendar, name=name).id}"


def stored(name: str = "cn") -> Calendar:
    with read_scope() as session:
        found = store.find_calendar(session, name)
    assert found is not None
    return found.calendar


def test_an_empty_page_says_what_calendars_are_for(admin: Console) -> None:
    page = text_of(admin.get("/calendars"))
    assert "No calendar yet" in page
    assert "on the next workday instead" in page


def test_the_days_of_a_year_are_saved_as_text_and_others_stay(admin: Console) -> None:
    path = add_calendar(admin)
    answer = submit(admin, f"{path}?year=2026", days=LINES, **SETTINGS)
    assert unnamed_path_after(answer) == f"{path}?year=2026&done=saved"
    submit(admin, f"{path}?year=2027", days="2027-01-01,holiday", **SETTINGS | {"valid_until": "2027-12-31"})
    days = stored().days
    assert days == {
        date(2026, 10, 1): DayKind.HOLIDAY,
        date(2026, 10, 10): DayKind.WORKDAY,
        date(2027, 1, 1): DayKind.HOLIDAY,
    }
    assert stored().names == {date(2026, 10, 1): "国庆节", date(2026, 10, 10): "国庆节"}
    page = admin.get(f"{path}?year=2026")
    assert "2026-10-01 Thu 国庆节" in text_of(page)
    assert 'data-day="2026-10-10" data-kind="workday" data-name="国庆节"' in markup_of(page)
    assert "2026-10-10,workday,国庆节" in page.text
    assert "known until 2027-12-31" in text_of(page)
    assert [row.number for row in all_rows(CalendarVersion)] == [1, 2, 3]


def test_wrong_lines_name_their_line_and_stay_as_entered(admin: Console) -> None:
    path = add_calendar(admin)
    for lines, problem in (
        ("2026-10-01,holiday\n2026-13-01,holiday", "is not a date"),
        ("2027-10-01,holiday", "2027-10-01 is not a day of 2026"),
        ("2026-10-01,perhaps", "is not a kind of day"),
    ):
        page = submit(admin, f"{path}?year=2026", days=lines, **SETTINGS)
        assert page.status_code == 400, lines
        assert problem in text_of(page), lines
        assert 'id="days-error"' in page.text, lines
        assert lines.splitlines()[-1] in page.text
    page = submit(admin, f"{path}?year=2026", days="", **SETTINGS | {"valid_until": "soon"})
    assert 'id="valid_until-error"' in page.text
    assert stored().days == {}


def test_a_stale_form_says_so(admin: Console) -> None:
    path = add_calendar(admin)
    loaded = re.search(r'name="loaded" value="(\w+)"', admin.get(f"{path}?year=2026").text)
    assert loaded is not None
    submit(admin, f"{path}?year=2026", days="2026-05-01,holiday", **SETTINGS)
    page = submit(admin, f"{path}?year=2026", days=LINES, loaded=loaded.group(1), **SETTINGS)
    assert page.status_code == 400
    assert "This was changed after you had opened it." in text_of(page)


def test_a_calendar_is_made_of_a_country_and_takes_a_file(admin: Console) -> None:
    answer = submit(admin, "/calendars/new", name=" cn ", source="country", country="cn", years="2025-2026")
    path = f"/calendars/{only_row(JobCalendar).id}"
    assert path_after(answer).startswith(path)
    assert stored().valid_until == date(2026, 12, 31)
    ics = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20270101\nSUMMARY:元旦\nEND:VEVENT\nEND:VCALENDAR\n"
    answer = submit(admin, f"{path}/import", source="file", text=ics)
    assert "done=saved" in path_after(answer)
    assert stored().names[date(2027, 1, 1)] == "元旦"
    assert stored().names[date(2026, 10, 1)] == "国庆节"
    for fields, field in (
        ({"source": "country", "country": "XX", "years": "2026"}, "country"),
        ({"source": "country", "country": "CN", "years": "next"}, "years"),
        ({"source": "country", "country": "CN", "years": "2034"}, "years"),
        ({"source": "file", "text": "nonsense"}, "text"),
        ({"source": "file"}, "text"),
    ):
        page = submit(admin, f"{path}/import", **fields)
        assert page.status_code == 400, fields
        assert f'id="{field}-error"' in page.text, fields
    page = submit(admin, "/calendars/new", name="cn", source="none")
    assert "There is a calendar of this name already" in text_of(page)


def test_a_calendar_in_use_is_not_deleted(admin: Console) -> None:
    path = add_calendar(admin)
    rule = json.dumps({"name": "cn", "on": "workdays", "otherwise": "next", "nth": None})
    job_id = add_job(add_group(), calendar=rule, job_desc="pays salaries")
    page = text_of(admin.get(path))
    assert f"{job_id} pays salaries on workdays of cn; otherwise the next workday" in page
    assert "Jobs that go by it: 1." in text_of(admin.get(f"{path}/delete"))
    assert submit(admin, f"{path}/delete").status_code == 409
    submit(admin, f"/jobinfo/{job_id}/delete")
    assert unnamed_path_after(submit(admin, f"{path}/delete")) == "/calendars?done=removed"


def test_readers_see_the_year_but_no_form(console: Console) -> None:
    path = add_calendar(console.log_in())
    group_id = add_group()
    add_user("reader", [group_id])
    reader = console.log_in("reader")
    page = reader.get(path)
    assert "January" in text_of(page)
    assert "data-day-name" not in page.text
    assert submit(reader, f"{path}?year=2026", days="").status_code == 403
    for form in ("/calendars/new", f"{path}/import", f"{path}/delete"):
        assert reader.get(form).status_code == 403, form


@pytest.mark.parametrize(
    ("until", "day", "text"),
    [
        (None, date(2026, 12, 1), ""),
        (date(2026, 12, 31), date(2026, 10, 31), ""),
        (date(2026, 12, 31), date(2026, 11, 1), "It does not know the year 2027 yet: import its days."),
        (date(2027, 12, 31), date(2026, 11, 1), ""),
        (date(2025, 12, 31), date(2026, 2, 1), "It knows no day after 2025-12-31"),
    ],
)
def test_a_calendar_that_ends_is_marked_from_november(until: date | None, day: date, text: str) -> None:
    warning = warning_of(Calendar("cn", valid_until=until), day)
    assert (text in warning) if text else not warning
