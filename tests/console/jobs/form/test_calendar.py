"""Calendar of a job: its fields in the form, the preview that marks each instant, and its sentence."""

import json
from datetime import date, timedelta

import pytest

from app.clock import DAY_MS, now_ms
from app.console.ui.calendars.words import rule_text
from app.console.ui.filters import iso
from app.database.engine import session_scope
from app.domain.calendars.calendar import DayKind
from app.domain.calendars.drafts import CalendarDraft
from app.models.job import Job
from app.services.calendars import calendars
from tests.console.blackouts.test_pages import add_blackout
from tests.console.pages import markup_of, submit, text_of
from tests.security.endpoints import JOB_FORM
from tests.support.console import ACTOR, Console, add_group
from tests.support.factories import only_row

pytestmark = pytest.mark.databases("sqlite")


def make_calendar(days: dict[date, str], name: str = "cn") -> None:
    draft = CalendarDraft(
        weekend=(),
        days={day.isoformat(): DayKind.HOLIDAY.value for day in days},
        names={day.isoformat(): text for day, text in days.items()},
    )
    with session_scope() as session:
        calendars.put_calendar(session, name, draft, actor=ACTOR, clock=now_ms)


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


def stored() -> object:
    return json.loads(only_row(Job).calendar or "null")


def test_the_rule_is_entered_shown_and_taken_away(admin: Console) -> None:
    make_calendar({})
    fields = JOB_FORM | {"schedule_type": "CRON", "cron": "0 0 6 * * ?", "job_group": str(add_group())}
    fields |= {"calendar_name": "cn", "calendar_on": "workdays", "calendar_otherwise": "previous"}
    assert submit(admin, "/jobinfo/new", **fields).status_code == 303
    assert stored() == {"name": "cn", "on": "workdays", "otherwise": "previous", "nth": None}
    job_id = only_row(Job).id
    form = admin.get(f"/jobinfo/{job_id}/edit")
    assert "on workdays of cn; otherwise the workday before" in text_of(form)
    assert '<option selected value="previous">' in markup_of(form)
    for path in ("/jobinfo", f"/jobinfo/{job_id}"):
        assert "on workdays of cn; otherwise the workday before" in text_of(admin.get(path)), path
    counted = fields | {"calendar_otherwise": "skip", "calendar_nth": "-1"}
    submit(admin, f"/jobinfo/{job_id}/edit", **counted)
    assert stored() == {"name": "cn", "on": "workdays", "otherwise": "skip", "nth": -1}
    for path in (f"/jobinfo/{job_id}", f"/jobinfo/{job_id}?tab=history", f"/jobinfo/{job_id}?tab=versions"):
        assert "on the last workday of the month of cn" in text_of(admin.get(path)), path
    submit(admin, f"/jobinfo/{job_id}/edit", **fields | {"calendar_name": ""})
    assert stored() is None


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"calendar_name": "de"}, "calendar_name"),
        ({"calendar_otherwise": "next", "cron": "0 * * * * ?"}, "calendar_otherwise"),
        ({"calendar_otherwise": "next", "calendar_nth": "3"}, "calendar_otherwise"),
        ({"schedule_type": "FIX_RATE", "rate_s": "60", "calendar_nth": "3"}, "calendar_nth"),
        ({"schedule_type": "NONE"}, "calendar_name"),
    ],
)
def test_errors_are_at_their_fields(admin: Console, rule: dict[str, str], field: str) -> None:
    make_calendar({})
    fields = JOB_FORM | {"schedule_type": "CRON", "cron": "0 0 6 * * ?", "job_group": str(add_group())}
    page = submit(admin, "/jobinfo/new", **fields | {"calendar_name": "cn"} | rule)
    assert page.status_code == 400
    assert f'id="{field}-error"' in page.text
    assert 'id="section-calendar" open' in page.text


def test_the_preview_marks_each_instant(admin: Console) -> None:
    day = date.fromisoformat(iso(now_ms() + 3 * DAY_MS)[:10])
    make_calendar({day: "new year"})
    rule = {"calendar_name": "cn", "calendar_on": "workdays", "time_zone": "UTC", "schedule_type": "CRON"}

    def preview(otherwise: str, cron: str = "0 0 6 * * ?", **more: str) -> str:
        fields = rule | {"calendar_otherwise": otherwise, "cron": cron, **more}
        return text_of(admin.get("/jobinfo/preview", query_string=fields))

    once = f"0 0 6 {day.day} {day.month} ?"
    assert f"{day} 06:00:00" in preview("skip")
    assert "skipped: new year" in preview("skip")
    assert "only the first 6 are shown" in preview("skip", calendar_nth="3")
    assert "only the first" not in preview("skip", once)
    assert "merged into" in preview("next")
    assert f"{day + timedelta(days=1)} 06:00:00" in preview("next", once)
    assert ": new year" in preview("next", once)
    assert "moved from" in preview("next", once)
    add_blackout("freeze")
    assert "blackout: freeze" in preview("skip")
    assert "No run at any of these times" in preview("skip")
    assert "There is no calendar de" in text_of(
        admin.get("/jobinfo/preview", query_string=rule | {"cron": "0 0 6 * * ?", "calendar_name": "de"})
    )


def test_rules_in_words() -> None:
    rule = {"name": "cn", "on": "holidays", "otherwise": "next"}
    assert rule_text(json.dumps(rule)) == "on holidays and weekends of cn; otherwise the next holiday"
    assert rule_text(json.dumps(rule | {"otherwise": "skip", "nth": 2})) == "on holiday 2 of the month of cn"
    assert rule_text("null") == rule_text("{}") == rule_text(None) == ""
