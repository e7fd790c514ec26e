"""Jobs to a file and back: what is exported, the plan of a file, and imports that are whole or nothing."""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import update
from werkzeug.test import TestResponse

from app.clock import now_ms
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.code import JobVersion
from app.models.glue import GlueVersion
from app.models.group import Group
from app.models.job import Job
from app.models.task import Task
from app.models.user import User
from app.services.code.job_file import SIZE_MAX
from app.services.jobs import jobs
from tests.console.pages import is_at_login, submit, text_of, token_of
from tests.console.tasks import result_of
from tests.support.console import ACTOR, Console, add_group, add_job
from tests.support.factories import all_rows, only_row

PATH = "/jobinfo/import"
KEY = "sample-app/nightly-report"
GOOD: dict[str, Any] = {
    "description": "nightly report",
    "owner": "ann",
    "schedule_type": "CRON",
    "schedule": "0 0 3 * * ?",
    "handler": "demoJobHandler",
}
GOLDEN = Path(__file__).parents[2] / "data" / "former_jobs.json"
CODE = {"language": "GLUE_SHELL", "source": "echo two"}


def file_of(key: str = KEY, **changes: Any) -> str:
    """Return a document with one job."""
    return json.dumps({"jobs": {key: {**GOOD, **changes}}})


def plan(console: Console, text: str, **more: str) -> TestResponse:
    return submit(console, PATH, text=text, **more)


def apply(console: Console, text: str, **more: str) -> TestResponse:
    """Import a file; return the page of the result, or that of the refused form."""
    submitted = submit(console, PATH, text=text, apply="1", **more)
    return result_of(console, submitted) if submitted.status_code == 303 else submitted


def stored() -> dict[str, Job]:
    return {job.job_desc: job for job in all_rows(Job)}


def actions() -> list[str]:
    return [entry.action for entry in all_rows(AuditEntry)]


def exported(console: Console, query: str = "") -> dict[str, Any]:
    answer = console.get(f"/jobinfo/export{query}")
    assert answer.status_code == 200
    assert answer.content_type == "application/yaml; charset=utf-8"
    assert answer.headers["Content-Disposition"] == "attachment; filename=jobs.yaml"
    found = yaml.safe_load(answer.text)["jobs"]
    assert isinstance(found, dict)
    return found


def test_without_a_login_or_a_token_nothing_is_given_or_taken(console: Console) -> None:
    for path in (PATH, "/jobinfo/export"):
        assert is_at_login(console.get(path))
    console.log_in()
    add_group()
    assert console.post(PATH, {"text": file_of(), "apply": "1"}).status_code == 403
    assert stored() == {}


def test_the_buttons_are_where_the_jobs_are(admin: Console) -> None:
    group_id = add_group()
    assert 'href="/xxl-job-admin/jobinfo/import"' in admin.get("/jobinfo").text
    assert admin.get("/jobinfo/export").status_code == 400
    add_job(group_id)
    page = admin.get(f"/jobinfo?jobGroup={group_id}&jobDesc=night&length=25").text
    assert f'href="/xxl-job-admin/jobinfo/export?jobGroup={group_id}&amp;jobDesc=night"' in page
    assert 'formaction="/xxl-job-admin/jobinfo/export"' in page
    assert 'type="file"' in admin.get(PATH).text


def test_a_file_is_a_document_of_jobs_as_code_with_all_members(admin: Console) -> None:
    add_job(add_group(), time_zone="UTC", not_before_ms=1_900_000_000_000, retry_interval_s=5)
    assert exported(admin) == {
        KEY: {
            **GOOD,
            "param": "",
            "fill_parameter": False,
            "time_zone": "UTC",
            "not_before": "2030-03-17T17:46:40.000Z",
            "not_after": None,
            "enabled": False,
            "children": [],
            "promises": [],
            "escalation": None,
            "max_running": 0,
            "when_full": "wait",
            "priority": 5,
            "max_wait_s": 0,
            "limits": [],
            "limit_key": "",
            "runs_after": None,
            "calendar": None,
            "tags": [],
            "alarm_email": "",
            "route_strategy": "FIRST",
            "misfire_strategy": "DO_NOTHING",
            "misfire_max": 100,
            "misfire_max_age_s": 86_400,
            "log_days": 0,
            "run_days": 0,
            "block_strategy": "SERIAL_EXECUTION",
            "timeout_s": 0,
            "retry_count": 0,
            "retry_interval_s": 5,
            "retry_backoff_percent": 100,
            "delivery": "auto",
        }
    }


def test_the_filters_the_ticks_and_the_rights_choose_the_jobs(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, foreign = add_group(), add_group("other-app", "Other")
    first = add_job(own, job_desc="b")
    add_job(own, job_desc="a")
    theirs = add_job(foreign, job_desc="c")
    assert list(exported(admin)) == ["other-app/c", "sample-app/a", "sample-app/b"]
    assert list(exported(admin, "?jobDesc=b")) == ["sample-app/b"]
    assert list(exported(admin, f"?id={first}&id={theirs}")) == ["other-app/c", "sample-app/b"]
    reader = normal_user(own, rights={own: frozenset({Right.VIEW})})
    assert list(exported(reader)) == ["sample-app/a", "sample-app/b"]
    assert 'formaction="/xxl-job-admin/jobinfo/export"' in reader.get("/jobinfo").text
    assert reader.get(f"/jobinfo/export?id={first}&id={theirs}").status_code == 404
    assert reader.get("/jobinfo/export?id=x").status_code == 400
    assert reader.get(PATH).status_code == 403


def test_a_source_is_exported_with_the_right_to_write_it(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    add_job(
        group_id, glue_type="GLUE_SHELL", executor_handler="", glue_source="echo one", glue_remark="first one"
    )
    code = {"language": "GLUE_SHELL", "source": "echo one", "remark": "first one"}
    assert exported(admin)[KEY]["code"] == code
    reader = normal_user(group_id, rights={group_id: frozenset({Right.EDIT})})
    assert exported(reader)[KEY]["code"] == {"language": "GLUE_SHELL"}


def test_a_file_that_is_none_is_refused_with_its_text(admin: Console) -> None:
    for send in (plan, apply):
        answer = send(admin, '{\n  "format": 1,\n  "jobs": {,}\n}')
        assert answer.status_code == 400
        assert "Invalid JSON at line 3, column 12" in text_of(answer)
        assert "&#34;jobs&#34;: {,}" in answer.text
        assert "Choose a file" in text_of(send(admin, " "))


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"key": "nowhere/x"}, "jobs.nowhere/x", "There is no executor group with the AppName nowhere"),
        ({"cron": "0 0 3 * * ?"}, f"jobs.{KEY}.cron", "There is no such member; known members: description"),
        ({"description": 7}, f"jobs.{KEY}.description", "Must be text"),
        ({"description": "a\x00b"}, f"jobs.{KEY}.description", "cannot be stored"),
        ({"schedule": "0 0 25 * * ?"}, f"jobs.{KEY}.schedule", "25"),
        ({"time_zone": "Mars/Olympus"}, f"jobs.{KEY}.time_zone", "Asia/Shanghai"),
        ({"retry_backoff_percent": 99}, f"jobs.{KEY}.retry_backoff_percent", "must lie between 100 and 1000"),
        ({"handler": ""}, f"jobs.{KEY}.handler", "Enter the JobHandler"),
        ({"children": ["none"]}, f"jobs.{KEY}.children", "There is no job with the key sample-app/none"),
        ({"children": ["nightly-report"]}, f"jobs.{KEY}.children", "trigger each other forever"),
    ],
)
def test_a_wrong_job_is_named_and_nothing_is_stored(
    admin: Console, changes: dict[str, Any], field: str, problem: str
) -> None:
    add_group()
    before = actions()
    for send in (plan, apply):
        answer = send(admin, file_of(**changes))
        assert answer.status_code == 400
        page_text = text_of(answer)
        assert "Nothing was imported" in page_text
        assert field in page_text
        assert problem in page_text
    assert (stored(), actions()) == ({}, before)


def test_all_errors_are_named(admin: Console) -> None:
    add_group()
    wrong = {
        KEY: {**GOOD, "owner": " ", "alarm_email": "the team"},
        "sample-app/b": {**GOOD, "param": "x" * 2_049},
    }
    page_text = text_of(plan(admin, json.dumps({"jobs": wrong})))
    for problem in ("Enter an owner", '"the team": not a mail address', "jobs.sample-app/b.param"):
        assert problem in page_text


def test_of_very_many_errors_only_the_first_are_shown(admin: Console) -> None:
    page = plan(admin, json.dumps({"jobs": {f"a/k{number}": {"no": 1} for number in range(3_000)}}))
    assert page.status_code == 400
    assert "Correct the file (3000)" in text_of(page)
    assert "2800 further errors" in text_of(page)
    assert page.text.count('<td class="main"') == 201


def test_a_plan_stores_nothing_and_the_import_stops_what_is_new(admin: Console) -> None:
    add_group()
    before = actions()
    asked = plan(admin, file_of(enabled=True))
    assert "Nothing is stored yet. Preview: 1 new, 0 changed, 0 unchanged." in text_of(asked)
    assert 'name="apply"' in asked.text
    assert (stored(), actions()) == ({}, before)
    assert "Imported: 1 new, 0 changed, 0 unchanged." in text_of(apply(admin, file_of(enabled=True)))
    made = stored()["nightly report"]
    assert (made.trigger_status, made.misfire_strategy, made.author) == (0, "DO_NOTHING", "ann")
    assert actions() == [*before, "job.add"]
    assert "0 new, 0 changed, 1 unchanged." in text_of(apply(admin, file_of()))
    assert actions() == [*before, "job.add"]


def test_schedules_are_switched_where_the_box_is_ticked(admin: Console) -> None:
    add_group()
    asked = plan(admin, file_of(enabled=True), with_switches="y")
    assert '<input type="hidden" name="with_switches" value="y">' in asked.text
    apply(admin, file_of(enabled=True), with_switches="y")
    assert stored()["nightly report"].trigger_status == 1


def test_a_change_is_shown_field_by_field_and_keeps_switch_and_what_is_not_named(admin: Console) -> None:
    job_id = add_job(add_group(), start=True, executor_param="kept")
    text = file_of(owner="<b>bob</b>", not_after="2031-01-01T08:00:00+08:00", timeout_s=9)
    asked = plan(admin, text)
    for change in (
        "Owner : ann → <b>bob</b>",
        "Not after : – → 2031-01-01T00:00:00.000Z",
        "Timeout : none → 9 s",
    ):
        assert change in text_of(asked).replace("&lt;", "<").replace("&gt;", ">")
    assert "<b>bob" not in asked.text
    assert stored()["nightly report"].author == "ann"
    assert "1 changed" in text_of(apply(admin, text))
    changed = stored()["nightly report"]
    values = (changed.id, changed.author, changed.trigger_status, changed.executor_param)
    assert values == (job_id, "<b>bob</b>", 1, "kept")
    assert actions()[-1] == "job.update"


def test_a_plan_names_jobs_by_their_description_with_the_key_behind(admin: Console) -> None:
    job_id = add_job(add_group())
    new = file_of(key="sample-app/hourly", description="hourly count")
    assert "hourly count sample-app/hourly" in text_of(plan(admin, new))
    assert f"{job_id} · nightly report {KEY}" in text_of(plan(admin, file_of(owner="bob")))


def test_a_file_is_uploaded_with_its_byte_order_mark(admin: Console) -> None:
    add_group()

    def upload(content: bytes) -> TestResponse:
        file = BytesIO(content), "backup/jobs<1>.json"
        answer = admin.post(PATH, {"csrf_token": token_of(admin), "file": file})
        answer.request.environ[
            "wsgi.input"
        ].close()  # the test client leaves its own copy of a long body open
        return answer

    uploaded = upload(b"\xef\xbb\xbf" + file_of("sample-app/日报").encode())
    assert 'name="file_name" type="hidden" value="jobs&lt;1&gt;.json"' in uploaded.text
    assert "1 new" in text_of(uploaded)
    assert "日报" in text_of(uploaded)
    assert "not UTF-8 text" in text_of(upload(b"\xff\xfe"))
    assert "larger than" in text_of(upload(b" " * (SIZE_MAX + 1)))


def test_the_versions_of_imported_jobs_name_the_file(admin: Console) -> None:
    add_group()
    apply(admin, file_of(), file_name="../jobs\x00 1.yaml")
    apply(admin, file_of(owner="bob"))
    assert [version.source for version in all_rows(JobVersion)] == ["import jobs 1.yaml", "import"]


@pytest.mark.parametrize(
    ("language", "state"), [("en", "Changed Owner"), ("zh_CN", "已更改 负责人"), ("zh_TW", "已更改 負責人")]
)
def test_a_changed_job_is_called_so_in_each_language(admin: Console, language: str, state: str) -> None:
    add_job(add_group())
    submit(admin, "/account/settings", language=language, time_zone="")
    assert state in text_of(plan(admin, file_of(owner="bob")))


def test_the_rights_are_those_of_each_group(admin: Console, normal_user: Callable[..., Console]) -> None:
    own, seen, _foreign = add_group(), add_group("seen-app", "Seen"), add_group("foreign-app", "Foreign")
    add_job(seen)
    norman = normal_user(own, seen, rights={own: frozenset({Right.EDIT}), seen: frozenset({Right.VIEW})})
    refusals = [
        (file_of("foreign-app/x"), "There is no executor group"),
        (file_of("seen-app/x", description="new"), "You have no permission to edit jobs"),
        (file_of("seen-app/x", owner="bob"), "You have no permission to edit jobs"),
        (file_of(handler="", code=CODE), "You have no permission to write code"),
    ]
    for wrong, problem in refusals:
        assert problem in text_of(apply(norman, wrong))
    assert "1 unchanged" in text_of(plan(norman, file_of("seen-app/x")))
    assert "1 new" in text_of(apply(norman, file_of()))
    parent = {KEY: {**GOOD, "children": ["seen-app/x"]}, "seen-app/x": GOOD}
    refused = text_of(apply(norman, json.dumps({"jobs": parent})))
    assert "You have no permission to run one of these child jobs" in refused
    routed = apply(norman, file_of(alarm_channels=["Ops"]))
    assert routed.status_code == 403
    assert "only administrators route alarms" in text_of(routed)


def test_a_source_is_changed_as_a_new_version_and_the_run_mode_never(admin: Console) -> None:
    job_id = add_job(add_group(), glue_type="GLUE_SHELL", executor_handler="", glue_source="echo one")
    text = file_of(handler="", code=CODE)
    asked = plan(admin, text)
    assert "Source : 1 lines → 1 lines" in text_of(asked)
    assert "-echo one\n+echo two" in asked.text
    assert apply(admin, text).status_code == 200
    with read_scope() as session:
        initial, version = session.query(GlueVersion).order_by(GlueVersion.id)
        assert initial.glue_source == "echo one"
        made = (version.job_id, version.glue_source, version.glue_remark)
        assert made == (job_id, "echo two", "imported from a file")
    other = file_of(handler="", code={**CODE, "language": "GLUE_PHP"})
    assert "The run mode of a job cannot be changed" in text_of(plan(admin, other))


def test_an_import_whose_plan_is_another_after_the_form_stores_nothing(admin: Console) -> None:
    group_id = add_group()
    plan_hash = str(plan(admin, file_of()).text).partition('name="plan_hash" type="hidden" value="')[2][:64]
    submitted = submit(admin, PATH, text=file_of(), apply="1", plan_hash=plan_hash)
    add_job(group_id, author="ben")
    page_text = text_of(result_of(admin, submitted))
    assert "no longer what the plan showed" in page_text
    assert stored()["nightly report"].author == "ben"
    again = submit(admin, PATH, text=file_of(), apply="1", plan_hash=plan_hash)
    assert again.status_code == 409
    assert "no longer what was shown" in text_of(again)
    assert "Owner : ben → ann" in text_of(again)


def test_rights_lost_after_the_form_store_nothing(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    norman = normal_user(add_group())
    submitted = submit(norman, PATH, text=file_of(), apply="1")
    with session_scope() as session:
        session.execute(update(User).where(User.username == "norman").values(permission=""))
    assert "There is no executor group" in text_of(result_of(norman, submitted))
    assert stored() == {}


def test_the_document_of_an_import_is_not_kept(admin: Console) -> None:
    add_group()
    first = submit(admin, PATH, text=file_of(), apply="1", form_key="0" * 32)
    assert "nightly report" in only_row(Task).parameters
    assert "1 new" in text_of(result_of(admin, first))
    assert only_row(Task).parameters == "{}"
    again = submit(admin, PATH, text=file_of(), apply="1", form_key="0" * 32)
    assert "already submitted" in text_of(result_of(admin, again))


def test_a_former_file_is_still_imported(admin: Console) -> None:
    for app_name in ("sample-app", "other-app"):
        add_group(app_name)
    text = GOLDEN.read_text(encoding="utf-8")
    assert "3 new" in text_of(apply(admin, text))
    assert set(stored()) == {"nightly report", "nightly: report", "日报"}
    assert "3 unchanged" in text_of(plan(admin, text))
    wrong = text.replace('"childJobId": "8,9"', '"childJobId": "99"')
    assert "Child job 99 is not in the file" in text_of(plan(admin, wrong))


def test_an_export_comes_back_equal_in_an_empty_installation(admin: Console) -> None:
    group_id, other = add_group(), add_group("other-app", "Other")
    last = add_job(
        other, job_desc="last", schedule_type="FIX_RATE", schedule_conf="30", executor_param=" a\n ${b} "
    )
    script = {"glue_type": "GLUE_SHELL", "executor_handler": "", "glue_source": "echo ${1}\n"}
    middle = add_job(group_id, job_desc="middle", child_jobid=str(last), **script)
    add_job(group_id, start=True, child_jobid=f"{middle},{last}", not_before_ms=1_900_000_000_123)
    text = admin.get("/jobinfo/export").text
    assert "5 unchanged" in text_of(plan(admin, text, with_switches="y"))
    with session_scope() as session:
        for job in stored().values():
            jobs.remove_job(session, job.id, actor=ACTOR, now_ms=now_ms())
        session.query(Group).delete()
    assert "5 new" in text_of(apply(admin, text.replace("\n", "\r\n"), with_switches="y"))
    assert admin.get("/jobinfo/export").text == text
    assert "5 unchanged" in text_of(plan(admin, text, with_switches="y"))


def test_a_file_too_long_to_be_read_again_is_not_written(admin: Console) -> None:
    group_id = add_group()
    for number in range(3):
        add_job(
            group_id,
            job_desc=f"job {number}",
            glue_type="GLUE_PHP",
            executor_handler="",
            glue_source="x" * 400_000,
        )
    assert admin.get("/jobinfo/export").status_code == 400
    assert len(exported(admin, "?jobDesc=job+1")) == 1
