"""The job form: all errors at once, folded sections, what its buttons do, and what it suggests."""

import re
from collections.abc import Callable
from urllib.parse import urlencode

import pytest

from app.clock import now_ms
from app.console.jobs.form.forms import INPUTS, MAIN, SECTIONS
from app.database.engine import read_scope
from app.domain.access.permissions import Right
from app.domain.jobs.fields import PLAIN_FIELDS
from app.domain.runs.trigger_keys import trigger_of
from app.models.fire import Fire
from app.models.job import Job
from app.models.registry import Registration
from tests.console.pages import path_after, submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.console_jobs import FORM, error_at, job_of, only_job
from tests.support.factories import save

WRONG = {
    "cron": "0 61 3 * * ?",
    "executor_handler": "",
    "executor_timeout": "abc",
    "child_jobid": "77,99999",
    "alarm_email": "ops@example.com, not an address",
    "not_after": "never",
}


def count_jobs() -> int:
    with read_scope() as session:
        return session.query(Job).count()


def test_every_plain_field_has_its_place() -> None:
    placed = {*MAIN, *(name for names in SECTIONS.values() for name in names)}
    inputs = {name for each in PLAIN_FIELDS for name in INPUTS.get(each.attribute, (each.attribute,))}
    assert inputs - placed == set()


def test_all_errors_are_shown_at_once(admin: Console) -> None:
    page = submit(admin, "/jobinfo/new", **{**FORM, **WRONG, "job_group": add_group()})
    assert page.status_code == 400
    assert "6 fields are wrong" in text_of(page)
    assert page.text.count('aria-invalid="true"') == len(WRONG)
    for field in WRONG:
        assert f'<li><a href="#{field}">' in page.text
    assert "minute &#39;61&#39;: use 0-59" in error_at(page.text, "cron")
    for child in ("77", "99999"):
        assert f"Child job id ({child}) was not found" in error_at(page.text, "child_jobid")
    assert "&#34;not an address&#34;: not a mail address" in error_at(page.text, "alarm_email")
    assert count_jobs() == 0


def test_the_first_wrong_field_of_the_page_has_the_focus(admin: Console) -> None:
    page = submit(admin, "/jobinfo/new", **{**FORM, **WRONG, "job_group": add_group()}).text
    assert page.count(" autofocus ") == 1
    assert 'autofocus class="form-control is-invalid"' in page.split(' id="executor_handler"')[0][-200:]


def test_a_section_is_open_if_it_contains_an_error(admin: Console) -> None:
    fields = {**FORM, "job_group": add_group()}
    page = submit(admin, "/jobinfo/new", **{**fields, "executor_timeout": "abc"}).text
    assert 'id="section-retries" open>' in page
    assert 'id="section-alarms">' in page


def test_the_summary_of_a_section_says_what_differs_from_the_default(admin: Console) -> None:
    assert "·" not in admin.get("/jobinfo/summary/routing?executor_route_strategy=FIRST").text
    query = "executor_fail_retry_count=2&executor_timeout=30&retry_backoff_percent=100&delivery=auto"
    assert admin.get(f"/jobinfo/summary/retries?{query}").text.strip() == "2 retries · timeout 30 s"
    assert admin.get("/jobinfo/summary/retries?retry_backoff_percent=200").text.strip() == "backoff 200%"
    query = "executor_route_strategy=ROUND&executor_block_strategy=SERIAL_EXECUTION&child_jobid=7"
    assert admin.get(f"/jobinfo/summary/routing?{query}").text.strip() == "Round robin · then 7"
    assert admin.get("/jobinfo/summary/nothing").status_code == 404


def test_mail_addresses_without_a_mail_server_are_noted(admin: Console) -> None:
    note = "2 mail addresses, but XXL_JOB_MAIL_HOST is not set"
    page = admin.get("/jobinfo/summary/alarms?alarm_email=a@example.com,b@example.com")
    assert page.text.count(note) == 2  # in the summary and beside the field
    job_id = add_job(add_group(), alarm_email="a@example.com, b@example.com")
    assert note in text_of(admin.get(f"/jobinfo/{job_id}/edit"))


def test_an_invalid_mail_address_of_an_adopted_job_is_kept(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    with read_scope() as session:
        session.get_one(Job, job_id).alarm_email = "the team;ops@example.com"
        session.commit()
    kept = {**FORM, "job_group": group_id, "job_desc": "renamed", "alarm_email": "the team;ops@example.com"}
    path_after(submit(admin, f"/jobinfo/{job_id}/edit", **kept))
    assert job_of(job_id).job_desc == "renamed"
    changed = {**kept, "alarm_email": "the team;ops@example.com, the others"}
    page = submit(admin, f"/jobinfo/{job_id}/edit", **changed)
    assert error_at(page.text, "alarm_email").count("&#34;") == 2
    assert submit(admin, f"/jobinfo/{job_id}/copy", **kept).status_code == 400


def test_save_and_start_switches_the_schedule_on(admin: Console) -> None:
    page = submit(admin, "/jobinfo/new", **FORM, job_group=add_group(), then="start")
    path = path_after(page)
    job = only_job()
    assert job.trigger_status == 1
    assert f"Job {job.id} {job.job_desc} added, and its schedule is on" in text_of(admin.get(path))


def test_save_and_start_stores_nothing_if_the_schedule_cannot_start(admin: Console) -> None:
    fields = {**FORM, "job_group": add_group(), "schedule_type": "AT", "at": "2020-01-01 00:00:00"}
    page = submit(admin, "/jobinfo/new", **fields, then="start")
    assert page.status_code == 400
    assert "never" in error_at(page.text, "at").lower()
    assert count_jobs() == 0


@pytest.mark.parametrize("is_new", [True, False])
def test_save_and_run_leads_to_the_queued_run(admin: Console, is_new: bool) -> None:
    group_id = add_group()
    path = "/jobinfo/new" if is_new else f"/jobinfo/{add_job(group_id)}/edit"
    after = path_after(submit(admin, path, **FORM, job_group=group_id, then="run"))
    with read_scope() as session:
        fire = session.query(Fire).one()
    trigger = trigger_of(fire.job_id, fire.fire_key)
    assert trigger is not None
    assert after.startswith(f"/jobinfo/{fire.job_id}/run/{trigger.id}?")
    assert (fire.job_id, fire.executor_param) == (only_job().id, None)


def test_an_editor_who_may_not_operate_is_refused_at_the_executor(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    editor = normal_user(group_id, rights={group_id: frozenset({Right.VIEW, Right.EDIT})})
    assert "Save and run" not in editor.get("/jobinfo/new").text
    page = submit(editor, "/jobinfo/new", **{**FORM, "job_group": group_id, "then": "run", "author": ""})
    assert "choose Save alone" in error_at(page.text, "job_group")
    assert "Enter an owner" in error_at(page.text, "author")
    assert count_jobs() == 0


def test_no_executor_is_chosen_among_several(admin: Console) -> None:
    group_id = add_group()
    assert f'<option selected value="{group_id}">' in admin.get("/jobinfo/new").text
    other_id = add_group("other-app", "Other")
    assert '<option selected value="">Choose an executor</option>' in admin.get("/jobinfo/new").text
    assert f'<option selected value="{other_id}">' in admin.get(f"/jobinfo/new?jobGroup={other_id}").text
    page = submit(admin, "/jobinfo/new", **FORM, job_group="")
    assert "Choose an executor group" in error_at(page.text, "job_group")


def test_handlers_of_the_group_are_suggested(admin: Console, normal_user: Callable[..., Console]) -> None:
    group_id, foreign_id = add_group(), add_group("other-app", "Other")
    for handler in ("seldom", "often", "often"):
        add_job(group_id, executor_handler=handler)
    add_job(foreign_id, executor_handler="foreign")
    announce("in%E4%BB%A3%E7%A0%81,often")
    announce("foreign", app_name="other-app")
    norman = normal_user(group_id)
    options = re.findall('<option value="([^"]*)"', norman.get(f"/pick/handlers?job_group={group_id}").text)
    assert options == ["often", "seldom", "in代码"]
    assert "<option" not in norman.get(f"/pick/handlers?job_group={foreign_id}").text
    page = norman.get("/jobinfo/new").text
    assert '<option value="often">' in page  # of the only group they may edit
    assert 'value="often"' not in input_of(page, "executor_handler")


def announce(handlers: str, *, app_name: str = "sample-app", host: str = "10.0.0.1") -> None:
    key = {"registry_group": "EXECUTOR", "registry_key": app_name, "registry_value": f"http://{host}/"}
    save(Registration(**key, update_time=now_ms(), handlers=handlers))


def input_of(page: str, field: str) -> str:
    """Return the tag of an input."""
    tags = re.findall(r"<input[^>]*>", page)
    return next(tag for tag in tags if f' id="{field}"' in tag)


def test_the_only_handler_of_an_executor_is_filled_in(admin: Console) -> None:
    group_id = add_group()
    announce("nightly")
    assert 'value="nightly"' in input_of(admin.get("/jobinfo").text, "quick-handler")
    page = admin.get("/jobinfo/new").text
    assert 'value="nightly"' in input_of(page, "executor_handler")
    assert "data-filled-in" in input_of(page, "executor_handler")
    assert '<option value="nightly" data-only>' in page
    assert 'value="mine"' in input_of(admin.get("/jobinfo/new?handler=mine").text, "executor_handler")
    fields = {**FORM, "job_group": group_id, "executor_handler": "", "preview": 1}
    assert 'value="nightly"' not in input_of(submit(admin, "/jobinfo/new", **fields).text, "executor_handler")


@pytest.mark.parametrize("other", ["weekly", "nightly,weekly", ""])
def test_a_handler_is_not_filled_in_if_executors_differ(admin: Console, other: str) -> None:
    add_group()
    announce("nightly")
    announce(other, host="10.0.0.2")
    page = admin.get("/jobinfo/new").text
    assert 'value="nightly"' not in input_of(page, "executor_handler")
    assert '<option value="nightly">' in page


def test_a_job_with_code_is_added_without_the_handler_that_was_filled_in(admin: Console) -> None:
    fields = {**FORM, "job_group": add_group(), "glue_type": "GLUE_SHELL"}
    assert submit(admin, "/jobinfo/new", **{**fields, "executor_handler": "nightly"}).status_code == 303
    assert only_job().executor_handler == ""


def test_the_preview_marks_the_wrong_field_of_an_expression(admin: Console) -> None:
    page = admin.get("/jobinfo/preview", query_string={"schedule_type": "CRON", "cron": "0 61 3 * * ?"})
    assert "0 <mark>61</mark> 3 * * ?" in page.text
    several = "schedule_type=CRON&cron=0 0 3 * * ?&not_before=soon&not_after=late"
    assert admin.get(f"/jobinfo/preview?{several}").text.count("is not a time") == 2


#: 01:30 in New York on the day on which the clock goes back, the first and the second time, in UTC
TWICE, FIRST_MS, SECOND_MS = "2027-11-07 01:30:00", 1_825_565_400_000, 1_825_569_000_000


@pytest.mark.parametrize("page", ["edit", "copy"])
def test_an_unchanged_window_keeps_its_instants(admin: Console, page: str) -> None:
    group_id = add_group()
    bounds = {"not_before_ms": FIRST_MS + 123, "not_after_ms": SECOND_MS}
    job_id = add_job(group_id, time_zone="America/New_York", **bounds)
    fields = {**FORM, "time_zone": "America/New_York", "not_before": TWICE, "not_after": TWICE}
    path_after(submit(admin, f"/jobinfo/{job_id}/{page}", **{**fields, "job_group": group_id}))
    with read_scope() as session:
        saved = session.query(Job).order_by(Job.id.desc()).limit(1).one()
    assert {name: getattr(saved, name) for name in bounds} == bounds


@pytest.mark.parametrize("page", ["edit", "copy"])
@pytest.mark.parametrize("bound", ["not_before", "not_after"])
def test_the_preview_of_an_unchanged_window_is_that_of_its_instants(
    admin: Console, page: str, bound: str
) -> None:
    zone, cron = "America/New_York", "0 0/20 1 7 11 ? 2027"
    group_id = add_group()
    job_id = add_job(group_id, time_zone=zone, schedule_conf=cron, **{f"{bound}_ms": SECOND_MS})
    shown = admin.get(f"/jobinfo/{job_id}/{page}").text
    (address,) = re.findall(r'hx-get="/xxl-job-admin(/jobinfo/preview[^"]*)"', shown)
    entered = {"schedule_type": "CRON", "cron": cron, "time_zone": zone, "not_before": "", "not_after": ""}
    part = admin.get(f"{address}&{urlencode(entered | {bound: TWICE})}").text
    assert times_in(part) == times_in(shown.split('id="schedule-preview"')[1])


def times_in(page: str) -> list[str]:
    """Return the instants of a preview."""
    found = re.findall(r'<time datetime="([^"]+)"', page)
    assert found
    return found


def test_the_preview_of_a_job_needs_the_right_to_edit_it(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, foreign = add_group(), add_group("other-app", "Other")
    norman = normal_user(own, rights={own: frozenset({Right.VIEW})})
    path = "/jobinfo/preview?schedule_type=NONE&jobId="
    answers = [norman.get(f"{path}{add_job(group_id)}").status_code for group_id in (own, foreign)]
    assert answers == [403, 404]


@pytest.mark.parametrize(
    ("zone", "entered", "expected_ms"),
    [("America/New_York", "2027-11-07 01:30:01", FIRST_MS + 1_000), ("UTC", TWICE, FIRST_MS - 4 * 3_600_000)],
)
def test_a_changed_window_is_read_anew(admin: Console, zone: str, entered: str, expected_ms: int) -> None:
    group_id = add_group()
    job_id = add_job(group_id, time_zone="America/New_York", not_before_ms=SECOND_MS)
    fields = {**FORM, "job_group": group_id, "time_zone": zone, "not_before": entered}
    path_after(submit(admin, f"/jobinfo/{job_id}/edit", **fields))
    assert job_of(job_id).not_before_ms == expected_ms


def test_placeholders_are_filled_in_where_the_box_is_ticked(admin: Console) -> None:
    submit(admin, "/jobinfo/new", **{**FORM, "job_group": add_group()})
    job = only_job()
    assert job.fill_parameter == 0
    submit(admin, f"/jobinfo/{job.id}/edit", fill_parameter="y", executor_param="${time:yyyy}")
    assert job_of(job.id).fill_parameter == 1
    page = admin.get(f"/jobinfo/{job.id}/edit").text
    (box,) = re.findall(r'<input[^>]* id="fill_parameter"[^>]*>', page)
    assert " checked" in box
    assert "filled in" in text_of(admin.get(f"/jobinfo/{job.id}"))
