"""Pages of blackouts: list, form, end, a group off and on, and where one that is on is shown."""

import pytest

from app.clock import DAY_MS, HOUR_MS, now_ms
from app.database.engine import session_scope
from app.domain.enums import FireState
from app.models.calendar import JobBlackout, RuleChange
from app.models.fire import Fire
from app.models.job import Job
from app.store.calendars import current_book
from app.store.calendars.paused_fires import PAUSED
from tests.console.pages import submit, text_of, unnamed_path_after
from tests.support.console import Console, add_group, add_job, add_user
from tests.support.console_jobs import FORM
from tests.support.factories import all_rows, only_row, save

pytestmark = pytest.mark.databases("sqlite")

#: of a form as it is opened
ONCE = {"kind": "once", "scope": "all", "afterwards": "skip"}
CRON = {"kind": "cron", "cron": "0 0 2 ? * SUN", "duration": "2", "unit": "h", "time_zone": "UTC"}


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


def add_blackout(reason: str = "freeze", **columns: object) -> int:
    """Store a blackout that has begun an hour ago and has no end, or as given."""
    row = JobBlackout(
        **{"from_ms": now_ms() - HOUR_MS, "until_ms": None, "created_ms": now_ms(), "reason": reason}
        | columns
    )
    with session_scope() as session:
        session.add(row)
        session.add(RuleChange(number=now_ms() * 1_000 + len(reason)))
        session.flush()
        blackout_id = row.id
        current_book.forget_at_commit(session)
    return blackout_id


def test_an_empty_page_says_what_blackouts_are_for(admin: Console) -> None:
    page = text_of(admin.get("/blackouts"))
    assert "No blackout yet" in page
    assert "It wins over all schedules; runs in progress are left alone." in page


def test_one_is_added_listed_and_ended(admin: Console) -> None:
    answer = submit(admin, "/blackouts/new", reason=" year-end  freeze ", **ONCE)
    assert unnamed_path_after(answer) == "/blackouts?done=added"
    row = only_row(JobBlackout)
    assert (row.reason, row.until_ms, row.group_id, row.afterwards) == ("year-end freeze", None, None, "skip")
    page = text_of(admin.get("/blackouts"))
    assert "On now 1" in page
    assert "year-end freeze all jobs from" in page
    question = text_of(admin.get(f"/blackouts/{row.id}/end"))
    assert "What was due meanwhile stays skipped." in question
    assert unnamed_path_after(submit(admin, f"/blackouts/{row.id}/end")) == "/blackouts?done=blackout_over"
    assert only_row(JobBlackout).ended_ms is not None
    page = text_of(admin.get("/blackouts"))
    assert "On now" not in page
    assert "Over" in page
    assert submit(admin, f"/blackouts/{row.id}/end").status_code == 409
    history = text_of(admin.get("/user/audit"))
    assert "made blackout " in history
    assert "ended blackout" in history


def test_a_recurring_one_says_when_it_comes(admin: Console) -> None:
    group_id = add_group(title="Orders")
    fields = CRON | {"scope": "group", "group": str(group_id), "afterwards": "run_once"}
    submit(admin, "/blackouts/new", reason="maintenance", **fields)
    row = only_row(JobBlackout)
    assert (row.cron, row.duration_s, row.zone, row.group_id) == ("0 0 2 ? * SUN", 7_200, "UTC", group_id)
    page = text_of(admin.get("/blackouts"))
    assert "executor Orders Sundays at 02:00, for 2 hours (UTC)" in page
    assert "one run" in page


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (ONCE | {"reason": " "}, "reason"),
        (ONCE | {"to": "2001-01-01T00:00:00"}, "to"),
        (ONCE | {"to": "soon"}, "to"),
        (ONCE | {"scope": "group", "group": ""}, "group"),
        (ONCE | {"scope": "job", "job": "x"}, "job"),
        (ONCE | {"scope": "job", "job": "4711"}, "job"),
        (ONCE | {"scope": "tag", "tag": ""}, "tag"),
        (CRON | {"scope": "all", "cron": "every sunday"}, "cron"),
        (CRON | {"scope": "all", "cron": ""}, "cron"),
        (CRON | {"scope": "all", "duration": "long"}, "duration"),
        (CRON | {"scope": "all", "time_zone": "Mars"}, "time_zone"),
    ],
)
def test_errors_are_at_their_fields(admin: Console, fields: dict[str, str], field: str) -> None:
    page = submit(admin, "/blackouts/new", **{"reason": "freeze", "afterwards": "skip"} | fields)
    assert page.status_code == 400
    assert f'id="{field}-error"' in page.text
    assert all_rows(JobBlackout) == []


def test_who_operates_a_group_makes_those_of_it_alone(console: Console) -> None:
    group_id, other_id = add_group(title="Orders"), add_group("other-app", "Others")
    foreign_id = add_blackout("of others", group_id=other_id)
    add_user("lina", [group_id])
    lina = console.log_in("lina")
    page = lina.get("/blackouts/new").text
    assert 'value="group"' in page
    assert 'value="all"' not in page
    assert submit(lina, "/blackouts/new", reason="mine", **ONCE).status_code == 403
    fields = ONCE | {"scope": "group", "group": str(group_id)}
    assert submit(lina, "/blackouts/new", reason="mine", **fields).status_code == 303
    own_id = only_row(JobBlackout, reason="mine").id
    page = text_of(lina.get("/blackouts"))
    assert "mine executor Orders" in page
    assert "of others" not in page
    assert lina.get(f"/blackouts/{foreign_id}/end").status_code == 404
    everything_id = add_blackout("freeze")
    assert "freeze all jobs" in text_of(lina.get("/blackouts"))
    assert lina.get(f"/blackouts/{everything_id}/end").status_code == 403
    assert submit(lina, f"/blackouts/{own_id}/end").status_code == 303


def test_one_that_is_on_is_shown_where_it_counts(admin: Console) -> None:
    group_id, other_id = add_group(title="Orders"), add_group("other-app", "Others")
    job_id, other_job_id = add_job(group_id), add_job(other_id)
    for number in range(5):
        add_blackout(f"freeze {number}", group_id=group_id)
    page = text_of(admin.get("/"))
    assert "A blackout is on, without an end, for executor Orders: freeze" in page
    assert "and 2 more" in page
    assert "A blackout is on, without an end: freeze" in text_of(admin.get(f"/jobinfo/{job_id}"))
    assert "A blackout is on, without an end: freeze" in text_of(admin.get(f"/jobgroup/{group_id}"))
    assert "A blackout is on" not in text_of(admin.get(f"/jobinfo/{other_job_id}"))
    assert "A blackout is on" not in text_of(admin.get(f"/jobgroup/{other_id}"))


def test_the_menus_of_job_and_group_lead_to_the_form(admin: Console) -> None:
    group_id = add_group(title="Orders")
    job_id = add_job(group_id, job_desc="close orders")
    assert f'href="/xxl-job-admin/blackouts/new?job={job_id}"' in admin.get(f"/jobinfo/{job_id}").text
    assert f'href="/xxl-job-admin/blackouts/new?group={group_id}"' in admin.get(f"/jobgroup/{group_id}").text
    form = admin.get(f"/blackouts/new?job={job_id}").text
    assert '<option selected value="job">' in form
    assert f'value="{job_id} close orders"' in form
    assert '<option selected value="group">' in admin.get(f"/blackouts/new?group={group_id}").text


def test_one_that_is_to_come_is_not_shown_as_on(admin: Console) -> None:
    add_job(add_group())
    add_blackout("later", from_ms=now_ms() + DAY_MS, until_ms=now_ms() + 2 * DAY_MS)
    assert "A blackout is on" not in text_of(admin.get("/"))
    assert "To come 1" in text_of(admin.get("/blackouts"))


def test_a_run_by_hand_is_refused_unless_it_is_forced(admin: Console) -> None:
    job_id = add_job(add_group())
    page = admin.get(f"/jobinfo/{job_id}/run").text
    assert "Run it all the same" not in page
    add_blackout("freeze")
    page = text_of(admin.get(f"/jobinfo/{job_id}/run"))
    assert "A blackout is on, without an end: freeze Run it all the same" in page
    refused = submit(admin, f"/jobinfo/{job_id}/run", when="now")
    assert refused.status_code == 400
    assert 'id="force-error"' in refused.text
    assert all_rows(Fire) == []
    assert submit(admin, f"/jobinfo/{job_id}/run", when="now", force="y").status_code == 303
    assert only_row(Fire).admitted_ms


def test_a_group_is_switched_off_and_on(admin: Console) -> None:
    group_id = add_group(title="Orders")
    assert "Switch off" in text_of(admin.get(f"/jobgroup/{group_id}"))
    refused = submit(admin, f"/jobgroup/{group_id}/off", reason="", afterwards="skip")
    assert 'id="reason-error"' in refused.text
    answer = submit(admin, f"/jobgroup/{group_id}/off", reason="host is moved", afterwards="run_once")
    assert unnamed_path_after(answer) == f"/jobgroup/{group_id}?done=group_off"
    page = text_of(admin.get(f"/jobgroup/{group_id}"))
    assert "A blackout is on, without an end: host is moved" in page
    assert "Switch on again" in page
    again = submit(admin, f"/jobgroup/{group_id}/off", reason="again", afterwards="skip")
    assert "switched off already" in text_of(again)
    question = text_of(admin.get(f"/jobgroup/{group_id}/on"))
    assert "Of each schedule that was due, the latest instant runs now." in question
    answer = submit(admin, f"/jobgroup/{group_id}/on")
    assert unnamed_path_after(answer) == f"/jobgroup/{group_id}?done=group_on"
    assert "A blackout is on" not in text_of(admin.get(f"/jobgroup/{group_id}"))
    assert admin.get(f"/jobgroup/{group_id}/on").status_code == 409


def test_a_run_that_waits_for_the_end_says_so_and_starts_all_the_same(admin: Console) -> None:
    job_id = add_job(add_group())
    until_ms = now_ms() + DAY_MS
    add_blackout("freeze", until_ms=until_ms)
    fire = save(
        Fire(
            job_id=job_id,
            fire_key=f"retry:{job_id}:1",
            due_time=now_ms(),
            trigger_type="RETRY",
            state=FireState.GATED.value,
            waits_for=PAUSED,
            lease_until=until_ms,
        )
    )
    why = "a blackout is on until"
    for path in (f"/jobinfo/{job_id}", "/joblog?range=all"):
        assert why in text_of(admin.get(path)), path
    question = text_of(admin.get(f"/joblog/waiting/w{fire.id}/start"))
    assert "It starts all the same, whatever the limits are." in question
    assert submit(admin, f"/joblog/waiting/w{fire.id}/start").status_code == 303
    assert only_row(Fire).admitted_ms


def test_a_job_is_not_saved_to_run_during_a_blackout(admin: Console) -> None:
    group_id = add_group()
    add_blackout("freeze")
    page = submit(admin, "/jobinfo/new", **FORM, job_group=group_id, then="run")
    assert page.status_code == 400
    assert "a blackout is on, without an end: freeze" in text_of(page)
    assert all_rows(Job) == []


def test_the_list_of_executors_marks_one_that_is_switched_off(admin: Console) -> None:
    group_id = add_group(app_name="reports")
    add_group(app_name="orders")
    assert "switched off" not in text_of(admin.get("/jobgroup"))
    add_blackout("move", group_id=group_id)
    add_blackout("short", group_id=group_id, until_ms=now_ms() + HOUR_MS)
    assert text_of(admin.get("/jobgroup")).count("switched off") == 1
