"""Job pages: list, job, add, edit, copy, start, stop, run, delete, preview and GLUE."""

from collections.abc import Callable, Iterator

import pytest
from flask import Flask
from sqlalchemy import event

from app.database.engine import read_scope, session_scope
from app.database.flask_db import db
from app.domain.access.permissions import Right
from app.models.fire import Fire
from app.models.glue import GlueVersion
from app.models.job import Job
from tests.console.pages import is_at_login, markup_of, path_after, submit, text_of, token_of
from tests.support.console import Console, add_group, add_job
from tests.support.console_jobs import FORM, job_of, only_job


@pytest.fixture
def statements(app: Flask) -> Iterator[Callable[[], int]]:
    """Return the number of SQL statements since the start of the test."""
    counted = [0]

    def count(*_arguments: object) -> None:
        counted[0] += 1

    with app.app_context():
        engine = db.engine
    event.listen(engine, "before_cursor_execute", count)
    yield lambda: counted[0]
    event.remove(engine, "before_cursor_execute", count)


def job_paths(job_id: int) -> list[str]:
    below = ("", "/edit", "/copy", "/run", "/delete", "/next-times", "/nodes")
    return [f"/jobinfo/{job_id}{path}" for path in below]


def test_without_a_login_every_page_redirects_to_the_login(console: Console) -> None:
    for path in ["/jobinfo", "/jobinfo/new", "/jobinfo/preview", *job_paths(1)]:
        assert is_at_login(console.get(path)), path


@pytest.mark.parametrize("name", ["_scheme", "_anchor", "_external", "_method", "endpoint", "values", "self"])
@pytest.mark.parametrize(
    "path", ["/jobinfo?author=lina&jobDesc=x", "/joblog?range=all", "/user?role=0", "/?range=week"]
)
def test_query_parameters_of_url_for_change_nothing(admin: Console, path: str, name: str) -> None:
    page = admin.get(f"{path}&{name}=gopher")
    assert page.status_code == 200
    assert 'href="gopher' not in page.text


def test_a_job_of_an_invisible_group_does_not_exist(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own_group, foreign_group = add_group(), add_group("other-app", "Other")
    own_job, foreign_job = add_job(own_group), add_job(foreign_group, job_desc="secret job")
    norman = normal_user(own_group)
    assert {norman.get(path).status_code for path in job_paths(foreign_job)} == {404}
    assert {
        submit(norman, path).status_code
        for path in (f"/jobinfo/{foreign_job}/{act}" for act in ("start", "stop", "run", "delete", "edit"))
    } == {404}
    assert {norman.get(path).status_code for path in job_paths(own_job)} == {200}
    assert "secret job" not in norman.get("/jobinfo").text


def test_the_view_right_alone_changes_nothing(admin: Console, normal_user: Callable[..., Console]) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    reader = normal_user(group_id, rights={group_id: frozenset({Right.VIEW})})
    assert reader.get("/jobinfo").status_code == reader.get(f"/jobinfo/{job_id}").status_code == 200
    for path in (
        "/jobinfo/new",
        *(f"/jobinfo/{job_id}/{act}" for act in ("edit", "copy", "run", "delete")),
    ):
        assert reader.get(path).status_code == 403, path
        assert submit(reader, path).status_code == 403, path
    for act in ("start", "stop"):
        assert submit(reader, f"/jobinfo/{job_id}/{act}").status_code == 403


def test_a_form_without_a_token_is_refused(admin: Console) -> None:
    job_id = add_job(add_group())
    assert admin.post(f"/jobinfo/{job_id}/start").status_code == 403
    assert admin.post("/jobinfo/new", FORM).status_code == 403
    assert job_of(job_id).trigger_status == 0


def test_a_job_is_added_shown_and_listed_as_text(admin: Console) -> None:
    group_id = add_group()
    assert admin.get("/jobinfo/new").status_code == 200
    path = path_after(submit(admin, "/jobinfo/new", **FORM, job_group=group_id))
    job = only_job()
    assert path.startswith(f"/jobinfo/{job.id}?done=added")
    assert (job.job_desc, job.schedule_conf, job.executor_fail_retry_count) == (
        "Nightly <b>report</b>",
        "0 0 3 * * ?",
        2,
    )
    assert (job.executor_timeout, job.retry_interval_s, job.retry_backoff_percent) == (0, 5, 100)
    for page in (admin.get(path), admin.get("/jobinfo")):
        assert "Nightly &lt;b&gt;report&lt;/b&gt;" in page.text
        assert "<b>report" not in page.text
    assert f"Job {job.id} Nightly <b>report</b> added" in text_of(admin.get(path))


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"job_desc": " "}, "job_desc", "Enter a job description"),
        ({"author": ""}, "author", "Enter an owner"),
        ({"cron": "0 0 3 * *  x y z"}, "cron", ""),
        ({"schedule_type": "FIX_RATE", "rate_s": "0"}, "rate_s", ""),
        ({"not_before": "tomorrow"}, "not_before", "&#34;tomorrow&#34; is not a time such as"),
        ({"executor_timeout": "soon"}, "executor_timeout", "&#34;soon&#34; is not a whole number from 0 to"),
        (
            {"retry_backoff_percent": "50"},
            "retry_backoff_percent",
            "&#34;50&#34; is not a whole number from 100 to 1000",
        ),
        ({"executor_handler": ""}, "executor_handler", "Enter the JobHandler"),
        ({"child_jobid": "77"}, "child_jobid", "was not found"),
        ({"executor_route_strategy": "ANY"}, "executor_route_strategy", "Route strategy is invalid"),
    ],
)
def test_an_error_is_shown_at_its_field(
    admin: Console, changes: dict[str, str], field: str, message: str
) -> None:
    page = submit(admin, "/jobinfo/new", **{**FORM, "job_group": add_group(), **changes})
    assert page.status_code == 400
    error = page.text.split(f'id="{field}-error"')[1].split("</div>")[0]
    assert message in error
    assert 'aria-invalid="true"' in page.text
    assert 'value="demoJobHandler"' in page.text or field == "executor_handler"  # the entered value is kept


def test_a_job_is_edited_and_keeps_its_kind(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    assert 'value="0 0 3 * * ?"' in admin.get(f"/jobinfo/{job_id}/edit").text
    changed = {
        **FORM,
        "job_group": group_id,
        "schedule_type": "FIX_DELAY",
        "delay_s": "90",
        "glue_type": "GLUE_SHELL",
        "time_zone": "Europe/Paris",
    }
    path_after(submit(admin, f"/jobinfo/{job_id}/edit", **changed))
    job = job_of(job_id)
    assert (job.schedule_type, job.schedule_conf, job.glue_type, job.time_zone) == (
        "FIX_DELAY",
        "90",
        "BEAN",
        "Europe/Paris",
    )


def test_a_window_is_read_in_the_zone_of_the_job(admin: Console) -> None:
    fields = {
        **FORM,
        "job_group": add_group(),
        "time_zone": "Europe/Paris",
        "not_before": "2031-01-01 00:00:00",
    }
    path_after(submit(admin, "/jobinfo/new", **fields))
    job = only_job()
    assert job.not_before_ms == 1_924_988_400_000  # 2030-12-31T23:00:00Z
    assert 'value="2031-01-01 00:00:00"' in admin.get(f"/jobinfo/{job.id}/edit").text


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("stored", ["a=1\nb=2", "a=1\r\nb=2", "a=1\r\nb=2\nc=3"])
def test_a_parameter_keeps_its_line_ends(admin: Console, stored: str, end: str) -> None:
    """Forms send CRLF for each line end, scripts of pages LF."""
    group_id = add_group()
    job_id = add_job(group_id, executor_param=stored)
    sent = {**FORM, "job_group": group_id, "executor_param": end.join(stored.splitlines())}
    path_after(submit(admin, f"/jobinfo/{job_id}/edit", **sent))
    assert (job_of(job_id).job_desc, job_of(job_id).executor_param) == (FORM["job_desc"], stored)
    path_after(submit(admin, f"/jobinfo/{job_id}/run", executor_param=sent["executor_param"]))
    with read_scope() as session:
        assert session.query(Fire).one().executor_param == stored


def test_a_changed_parameter_has_the_line_ends_it_had(admin: Console) -> None:
    group_id = add_group()
    for stored, changed in {"1\n2": "1\n2\n3", "1\r\n2": "1\r\n2\r\n3", "1": "1\r\n2\r\n3"}.items():
        job_id = add_job(group_id, executor_param=stored)
        sent = {**FORM, "job_group": group_id, "executor_param": "1\r\n2\r\n3"}
        path_after(submit(admin, f"/jobinfo/{job_id}/edit", **sent))
        assert job_of(job_id).executor_param == changed


def test_a_run_mode_of_another_version_is_shown_as_it_is(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, glue_type="GLUE_PYTHON", executor_handler="", glue_source="print 1")
    with session_scope() as session:
        session.get_one(Job, job_id).glue_type = "GLUE_PYTHON2"
    for path in ("edit", "copy"):
        page = markup_of(admin.get(f"/jobinfo/{job_id}/{path}"))
        assert '<option selected value="GLUE_PYTHON2">GLUE_PYTHON2</option>' in page
    sent = {**FORM, "job_group": group_id, "executor_handler": ""}
    path_after(submit(admin, f"/jobinfo/{job_id}/edit", **sent))
    assert (job_of(job_id).job_desc, job_of(job_id).glue_type) == (FORM["job_desc"], "GLUE_PYTHON2")


@pytest.mark.parametrize("page", ["", "/edit", "/copy", "/next-times"])
def test_a_job_in_a_zone_that_this_host_does_not_know_is_shown(admin: Console, page: str) -> None:
    """Another node may have newer time zones."""
    job_id = add_job(add_group(), not_before_ms=1_900_000_000_000)
    with session_scope() as session:
        session.get_one(Job, job_id).time_zone = "America/Atlantis"
    shown = admin.get(f"/jobinfo/{job_id}{page}")
    assert (shown.status_code, "America/Atlantis" in shown.text) == (200, True)


def test_a_copy_is_a_new_job(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, executor_param="keep me")
    assert "keep me" in admin.get(f"/jobinfo/{job_id}/copy").text
    path_after(
        submit(admin, f"/jobinfo/{job_id}/copy", **{**FORM, "job_group": group_id, "job_desc": "the copy"})
    )
    with read_scope() as session:
        assert sorted(job.job_desc for job in session.query(Job)) == ["nightly report", "the copy"]


def test_a_new_glue_job_gets_a_first_source(admin: Console) -> None:
    fields = {**FORM, "job_group": add_group(), "glue_type": "GLUE_SHELL", "executor_handler": ""}
    path_after(submit(admin, "/jobinfo/new", **fields))
    assert (only_job().glue_source or "").startswith("#!/bin/bash")


def test_the_switch_returns_to_the_list_it_was_on(admin: Console) -> None:
    job_id = add_job(add_group(), job_desc="nightly & more")
    here = "/xxl-job-admin/jobinfo?author=ann&page=2&length=50"
    path = path_after(submit(admin, f"/jobinfo/{job_id}/start", next=here))
    assert path.startswith("/jobinfo?author=ann&page=2&length=50&done=started")
    assert job_of(job_id).trigger_status == 1
    page = admin.get(path)
    assert f"Job {job_id} nightly & more switched on" in text_of(page)
    assert f'action="/xxl-job-admin/jobinfo/{job_id}/stop"' in page.text  # Undo
    path_after(submit(admin, f"/jobinfo/{job_id}/stop", next=here))
    assert job_of(job_id).trigger_status == 0


def test_a_script_gets_the_toast_of_a_switch_or_why_it_was_refused(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id, headers = add_group(), {"Accept": "application/json"}
    job_id, idle = add_job(group_id), add_job(group_id, schedule_type="NONE", schedule_conf="")
    wrong = add_job(group_id)
    with session_scope() as session:
        session.get_one(Job, wrong).schedule_conf = "0 61 * * * ?"
    reader = normal_user(group_id, rights={group_id: frozenset({Right.VIEW})})

    def switch(console: Console, job_id: int) -> tuple[int, dict[str, str]]:
        fields = {"csrf_token": token_of(console), "next": "/xxl-job-admin/jobinfo?page=3"}
        answer = console.post(f"/jobinfo/{job_id}/start", fields, headers=headers)
        return answer.status_code, answer.get_json()

    status, body = switch(admin, job_id)
    assert (status, body["on"]) == (200, True)
    assert f"/jobinfo/{job_id}/stop" in body["toast"]
    assert 'value="/xxl-job-admin/jobinfo?page=3"' in body["toast"]
    refused = {each: switch(admin, each) for each in (idle, wrong)}
    assert {status for status, _body in refused.values()} == {400}
    assert "without a schedule cannot be switched on" in refused[idle][1]["msg"]
    assert "61" in refused[wrong][1]["msg"]
    assert switch(reader, wrong)[0] == 403
    assert switch(reader, wrong)[1]["msg"]
    expired = admin.post(f"/jobinfo/{job_id}/start", {"csrf_token": "0" * 128}, headers=headers)
    assert expired.status_code == 403
    assert expired.get_json()["msg"] == "This form has expired. Reload the page and try again."


@pytest.mark.parametrize(
    "evil",
    [
        "https://evil.example/x",
        "//evil.example/xxl-job-admin/",
        "/\\evil.example",
        "javascript:alert(1)",
        "http://[",
    ],
)
def test_a_form_never_redirects_to_another_site(admin: Console, evil: str) -> None:
    job_id = add_job(add_group())
    assert path_after(submit(admin, f"/jobinfo/{job_id}/start", next=evil)).startswith(
        "/jobinfo?done=started"
    )


def test_a_job_that_never_fires_cannot_be_started(admin: Console) -> None:
    job_id = add_job(add_group(), schedule_type="NONE", schedule_conf="")
    page = submit(admin, f"/jobinfo/{job_id}/start")
    assert page.status_code == 400
    assert "without a schedule cannot be switched on" in text_of(page)
    assert job_of(job_id).trigger_status == 0


def test_a_run_is_queued_with_its_parameter(admin: Console) -> None:
    job_id = add_job(add_group(addresses="http://127.0.0.1:9999"), executor_param="the usual")
    assert "the usual" in admin.get(f"/jobinfo/{job_id}/run").text
    path_after(
        submit(
            admin, f"/jobinfo/{job_id}/run", executor_param="this once", address_list="http://127.0.0.1:9999"
        )
    )
    with read_scope() as session:
        fire = session.query(Fire).one()
    assert (fire.executor_param, fire.address_list) == ("this once", "http://127.0.0.1:9999")


def test_a_run_at_an_address_of_another_group_is_refused_at_the_field(admin: Console) -> None:
    job_id = add_job(add_group())
    page = submit(admin, f"/jobinfo/{job_id}/run", executor_param="", address_list="http://10.9.9.9:9999")
    assert page.status_code == 400
    assert "is not an address of this executor group" in page.text.split('id="address_list-error"')[1]


def test_the_deletion_page_names_what_is_deleted(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    parent_id = add_job(group_id, child_jobid=str(job_id))
    confirmation = text_of(admin.get(f"/jobinfo/{job_id}/delete"))
    assert "cannot be undone" in confirmation
    assert f"will no longer do so: {parent_id}" in confirmation
    path_after(submit(admin, f"/jobinfo/{job_id}/delete"))
    assert admin.get(f"/jobinfo/{job_id}").status_code == 404


def test_the_list_is_filtered_by_its_url(admin: Console) -> None:
    group_id, other_id = add_group(), add_group("other-app", "Other")
    add_job(group_id, job_desc="first job", author="ann")
    add_job(other_id, job_desc="second job", author="bob", start=True)
    assert "first job" not in admin.get(f"/jobinfo?jobGroup={other_id}").text
    page = admin.get("/jobinfo?author=bob&triggerStatus=1&jobDesc=second")
    assert "second job" in page.text
    assert "first job" not in page.text
    assert (
        'href="/xxl-job-admin/jobinfo?triggerStatus=1&amp;jobDesc=second"' in page.text
    )  # the chip that removes the owner
    assert "No job matches the filters" in admin.get("/jobinfo?jobDesc=100%25").text


def test_the_list_has_pages(admin: Console) -> None:
    group_id = add_group()
    for number in range(12):
        add_job(group_id, job_desc=f"job-{number:02d}")
    second = admin.get("/jobinfo?page=2&length=10&author=ann").text
    assert "job-01" in second
    assert "job-11" not in second
    assert "/jobinfo?length=10&amp;author=ann&amp;page=1" in second
    assert (
        admin.get("/jobinfo?page=zzz&length=7").status_code
        == admin.get("/jobinfo?page=999999999").status_code
        == 200
    )


def test_the_preview_describes_a_schedule_and_its_times(admin: Console) -> None:
    page = admin.get("/jobinfo/preview", query_string={"schedule_type": "CRON", "cron": "0 0 3 * * ?"})
    assert page.text.count("<li>") == 5
    assert "Daily at 03:00" in page.text
    wrong = admin.get("/jobinfo/preview", query_string={"schedule_type": "CRON", "cron": "0 61 3 * * ?"})
    assert "preview bad" in wrong.text
    assert "minute" in wrong.text.lower()
    assert "after each run" in admin.get("/jobinfo/preview?schedule_type=FIX_DELAY&delay_s=60").text


def test_without_scripts_the_preview_is_a_button(admin: Console) -> None:
    page = submit(admin, "/jobinfo/new", **{**FORM, "job_group": add_group(), "preview": "1"})
    assert markup_of(page).count("<li><time") == 5
    with read_scope() as session:
        assert session.query(Job).count() == 0


def test_a_source_is_saved_as_a_version(admin: Console, normal_user: Callable[..., Console]) -> None:
    group_id = add_group()
    job_id = add_job(group_id, glue_type="GLUE_SHELL", executor_handler="", glue_source="echo one")
    address = f"/jobcode?jobId={job_id}"
    assert "echo one" in admin.get(address).text
    assert submit(admin, address, glue_source="echo two", glue_remark="no").status_code == 400
    path_after(submit(admin, address, glue_source="echo two\r\n", glue_remark="second one"))
    with read_scope() as session:
        initial, version = session.query(GlueVersion).order_by(GlueVersion.id)
    assert (initial.glue_source, initial.author) == ("echo one", "")
    assert (version.glue_source, version.author) == ("echo two\n", "admin")
    assert "An older version is shown" not in admin.get(f"{address}&version={version.id}").text
    path_after(submit(admin, address, glue_source="echo three", glue_remark="third one"))
    assert "An older version is shown" in admin.get(f"{address}&version={version.id}").text
    assert admin.get(f"{address}&version=999").status_code == 404
    writer = normal_user(group_id, rights={group_id: frozenset({Right.EDIT, Right.OPERATE})})
    assert writer.get(address).status_code == 403
    assert "nonce-" in admin.get(address).headers["Content-Security-Policy"]


def test_a_bean_job_has_no_source(admin: Console) -> None:
    assert admin.get(f"/jobcode?jobId={add_job(add_group())}").status_code == 409


def test_ids_beyond_the_column_range_are_not_found(admin: Console) -> None:
    assert (
        admin.get("/jobinfo/99999999999").status_code == admin.get("/jobinfo/2147483647").status_code == 404
    )
    assert admin.get("/joblog/99999999999999999999").status_code == 404


def test_a_page_of_many_jobs_needs_a_fixed_number_of_statements(
    admin: Console, statements: Callable[[], int]
) -> None:
    group_id = add_group()
    add_job(group_id)
    admin.get("/jobinfo")
    before = statements()
    admin.get("/jobinfo")
    count_for_one = statements() - before
    for _number in range(9):
        add_job(group_id)
    before = statements()
    admin.get("/jobinfo")
    assert statements() - before == count_for_one


def test_the_token_of_one_login_is_invalid_for_another(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    norman = normal_user(group_id)
    assert norman.post(f"/jobinfo/{job_id}/start", {"csrf_token": token_of(admin)}).status_code == 403
