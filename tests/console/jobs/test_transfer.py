"""Jobs to a file and back: content of the file, dry runs, and imports that are whole or nothing."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest
from sqlalchemy import update
from werkzeug.test import TestResponse

from app.clock import now_ms
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.glue import GlueVersion
from app.models.job import Job
from app.models.managed import JobVersion
from app.models.task import Task
from app.models.user import User
from app.services.jobs import jobs
from app.services.jobs.transfer.job_file import SIZE_MAX
from tests.console.conftest import ACTOR, Console, add_group, add_job
from tests.console.pages import is_at_login, submit, text_of, token_of
from tests.console.tasks import result_of
from tests.factories import all_rows, only_row

PATH = "/jobinfo/import"
NOTHING = "Nothing was imported"
GOOD: dict[str, Any] = {
    "id": 7,
    "appname": "sample-app",
    "jobDesc": "nightly report",
    "author": "ann",
    "scheduleType": "CRON",
    "scheduleConf": "0 0 3 * * ?",
    "executorHandler": "demoJobHandler",
}


def file_of(*objects: Any) -> str:
    return json.dumps({"format": 1, "jobs": list(objects)})


def job(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


def dry_run(console: Console, text: str) -> TestResponse:
    return submit(console, PATH, text=text)


def apply(console: Console, text: str, **more: str) -> TestResponse:
    """Import a file; return the page of the result, or that of the refused form."""
    submitted = submit(console, PATH, text=text, apply="1", **more)
    return result_of(console, submitted) if submitted.status_code == 303 else submitted


def stored() -> dict[str, Job]:
    with read_scope() as session:
        return {job.job_desc: job for job in session.query(Job)}


def actions() -> list[str]:
    with read_scope() as session:
        return [entry.action for entry in session.query(AuditEntry).order_by(AuditEntry.id)]


def exported(console: Console, query: str = "") -> list[dict[str, Any]]:
    answer = console.get(f"/jobinfo/export{query}")
    assert answer.status_code == 200
    assert answer.content_type == "application/json"
    assert answer.headers["Content-Disposition"] == "attachment; filename=jobs.json"
    content = json.loads(answer.text)
    assert content["format"] == 1
    found = content["jobs"]
    assert isinstance(found, list)
    return found


def without_ids(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs with their children by name."""
    names = {str(each["id"]): each["jobDesc"] for each in found}
    children = [",".join(names[text] for text in each["childJobId"].split(",") if text) for each in found]
    return [{**each, "id": 0, "childJobId": named} for each, named in zip(found, children, strict=True)]


def test_without_a_login_or_a_token_nothing_is_given_or_taken(console: Console) -> None:
    for path in (PATH, "/jobinfo/export"):
        assert is_at_login(console.get(path))
    console.log_in()
    add_group()
    assert console.post(PATH, {"text": file_of(GOOD), "apply": "1"}).status_code == 403
    assert stored() == {}


def test_the_buttons_are_where_the_jobs_are(admin: Console) -> None:
    group_id = add_group()
    assert 'href="/xxl-job-admin/jobinfo/import"' in admin.get("/jobinfo").text
    add_job(group_id)
    page = admin.get(f"/jobinfo?jobGroup={group_id}&jobDesc=night&length=25").text
    assert f'href="/xxl-job-admin/jobinfo/export?jobGroup={group_id}&amp;jobDesc=night"' in page
    assert 'formaction="/xxl-job-admin/jobinfo/export"' in page
    assert 'type="file"' in admin.get(PATH).text


def test_a_file_holds_a_job_by_the_names_of_the_endpoints(admin: Console) -> None:
    job_id = add_job(
        add_group(),
        time_zone="UTC",
        not_before_ms=1_900_000_000_000,
        delivery="at_least_once",
        retry_interval_s=5,
    )
    assert exported(admin) == [
        {
            "id": job_id,
            "appname": "sample-app",
            "jobDesc": "nightly report",
            "author": "ann",
            "alarmEmail": "",
            "scheduleType": "CRON",
            "scheduleConf": "0 0 3 * * ?",
            "timeZone": "UTC",
            "misfireStrategy": "DO_NOTHING",
            "executorRouteStrategy": "FIRST",
            "executorHandler": "demoJobHandler",
            "executorParam": "",
            "executorBlockStrategy": "SERIAL_EXECUTION",
            "delivery": "at_least_once",
            "glueType": "BEAN",
            "notBefore": "2030-03-17T17:46:40Z",
            "notAfter": "",
            "executorTimeout": 0,
            "executorFailRetryCount": 0,
            "retryIntervalS": 5,
            "retryBackoffPercent": 100,
            "childJobId": "",
            "tags": [],
        }
    ]


def test_the_filters_the_ticks_and_the_rights_choose_the_jobs(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, foreign = add_group(), add_group("other-app", "Other")
    first, second, theirs = (
        add_job(own, job_desc="b"),
        add_job(own, job_desc="a"),
        add_job(foreign, job_desc="c"),
    )
    assert [each["jobDesc"] for each in exported(admin)] == ["c", "a", "b"]
    assert [each["id"] for each in exported(admin, "?jobDesc=b")] == [first]
    assert [each["id"] for each in exported(admin, f"?id={first}&id={theirs}")] == [theirs, first]
    reader = normal_user(own, rights={own: frozenset({Right.VIEW})})
    assert [each["id"] for each in exported(reader)] == [second, first]
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
    assert exported(admin)[0]["glueSource"] == "echo one"
    reader = normal_user(group_id, rights={group_id: frozenset({Right.EDIT})})
    assert {"glueSource", "glueRemark"} & set(exported(reader)[0]) == set()


def test_a_file_that_is_none_is_refused_with_its_text(admin: Console) -> None:
    for send in (dry_run, apply):
        answer = send(admin, '{\n  "format": 1,\n  "jobs": [,]\n}')
        assert answer.status_code == 400
        assert "Invalid JSON at line 3, column 12" in text_of(answer)
        assert "&#34;jobs&#34;: [,]" in answer.text
        assert "Choose a file" in text_of(send(admin, " "))


@pytest.mark.parametrize(
    ("wrong", "field", "problem"),
    [
        ("job", "jobs", "must be an object"),
        (
            job(cronExpr="0 0 3 * * ?"),
            "cronExpr",
            "Jobs have no such field; known fields: id, appname, jobDesc",
        ),
        (job(jobGroup=1), "jobGroup", "Jobs have no such field"),
        (job(appname="nowhere"), "appname", "There is no executor group with this appname"),
        (job(jobDesc=""), "jobDesc", "Enter a job description"),
        (job(jobDesc=7), "jobDesc", "Must be text"),
        (job(jobDesc="a\x00b"), "jobDesc", "cannot be stored"),
        (job(author=" "), "author", "Enter an owner"),
        (job(scheduleType="DAILY"), "scheduleType", "One of: NONE, CRON"),
        (job(scheduleConf="0 0 25 * * ?"), "scheduleConf", "25"),
        (job(timeZone="Mars/Olympus"), "timeZone", "Asia/Shanghai"),
        (job(notBefore="2030-01-31 08:00:00"), "notBefore", "a time with an offset"),
        (job(notAfter=5), "notAfter", "Must be text"),
        (job(executorTimeout="5"), "executorTimeout", "whole number without quotes"),
        (job(retryBackoffPercent=99), "retryBackoffPercent", "must lie between 100 and 1000"),
        (job(executorHandler=""), "executorHandler", "Enter the JobHandler"),
        (job(delivery="maybe"), "delivery", "One of: auto"),
        (job(childJobId="x"), "childJobId", "(x) is invalid"),
        (job(childJobId="99"), "childJobId", "is not in the file"),
        (job(childJobId="7"), "childJobId", "leads back to this job"),
        (job(id="7"), "id", "whole number"),
        (job(id=1), "id", "Job 1 of the file has the same id"),
        (job(jobDesc="fine"), "jobDesc", "Job 1 of the file has the same"),
    ],
)
def test_a_wrong_job_is_named_and_nothing_is_stored(
    admin: Console, wrong: Any, field: str, problem: str
) -> None:
    add_group()
    before = actions()
    for send in (dry_run, apply):
        answer = send(admin, file_of(job(id=1, jobDesc="fine"), wrong))
        assert answer.status_code == 400
        page_text = text_of(answer)
        assert NOTHING in page_text
        assert f" {field} : " in page_text
        assert problem in page_text
    assert stored() == {}
    assert actions() == before


def test_all_errors_of_a_job_are_named(admin: Console) -> None:
    add_group()
    kinds = dry_run(admin, file_of(job(executorTimeout="5", timeZone=1, childJobId="x,y")))
    for problem in ("executorTimeout", "timeZone", "(x) is invalid", "(y) is invalid"):
        assert problem in text_of(kinds)
    rules = text_of(dry_run(admin, file_of(job(author=" ", alarmEmail="ops@example.com,the team"))))
    assert "Enter an owner" in rules
    assert '"the team": not a mail address' in rules


def test_a_dry_run_stores_nothing_and_the_import_stops_what_is_new(admin: Console) -> None:
    add_group()
    before = actions()
    asked = dry_run(admin, file_of(GOOD))
    assert "Nothing is stored yet. Preview: 1 new, 0 changed, 0 unchanged." in text_of(asked)
    assert 'name="apply"' in asked.text
    assert (stored(), actions()) == ({}, before)
    assert "Imported: 1 new, 0 changed, 0 unchanged." in text_of(apply(admin, file_of(GOOD)))
    made = stored()["nightly report"]
    assert (made.trigger_status, made.misfire_strategy, made.delivery, made.author) == (
        0,
        "DO_NOTHING",
        "auto",
        "ann",
    )
    assert actions() == [*before, "job.add"]
    assert "0 new, 0 changed, 1 unchanged." in text_of(apply(admin, file_of(GOOD)))
    assert actions() == [*before, "job.add"]


def test_a_change_is_told_field_by_field_and_keeps_switch_and_what_is_not_named(admin: Console) -> None:
    job_id = add_job(add_group(), start=True, executor_param="kept")
    text = file_of(job(id=1, author="<b>bob</b>", notAfter="2031-01-01T08:00:00+08:00", executorTimeout=9))
    asked = dry_run(admin, text)
    for change in (
        "author : ann → <b>bob</b>",
        "notAfter : – → 2031-01-01T00:00:00Z",
        "executorTimeout : 0 → 9",
    ):
        assert change in text_of(asked).replace("&lt;", "<").replace("&gt;", ">")
    assert "<b>bob" not in asked.text
    assert stored()["nightly report"].author == "ann"
    assert "1 changed" in text_of(apply(admin, text))
    changed = stored()["nightly report"]
    assert (changed.id, changed.author, changed.trigger_status, changed.executor_param) == (
        job_id,
        "<b>bob</b>",
        1,
        "kept",
    )
    assert actions()[-1] == "job.update"


def test_a_file_is_uploaded_with_its_byte_order_mark(admin: Console) -> None:
    add_group()

    def upload(content: bytes) -> TestResponse:
        file = BytesIO(content), "backup/jobs<1>.json"
        answer = admin.post(PATH, {"csrf_token": token_of(admin), "file": file})
        answer.request.environ[
            "wsgi.input"
        ].close()  # the test client leaves its own copy of a long body open
        return answer

    uploaded = upload(b"\xef\xbb\xbf" + file_of(job(jobDesc="日报")).encode())
    page_text = text_of(uploaded)
    assert '<input type="hidden" name="file_name" value="jobs&lt;1&gt;.json">' in uploaded.text
    assert "1 new" in page_text
    assert "日报" in page_text
    assert "not UTF-8 text" in text_of(upload(b"\xff\xfe"))
    assert "larger than" in text_of(upload(b" " * (SIZE_MAX + 1)))


def test_the_versions_of_imported_jobs_name_the_file(admin: Console) -> None:
    add_group()
    apply(admin, file_of(job()), file_name="../jobs\x00 1.json")
    apply(admin, file_of(job(author="bob")))
    assert [version.source for version in all_rows(JobVersion)] == ["import jobs 1.json", "import"]


@pytest.mark.parametrize(("language", "state"), [("en", "Changed"), ("zh_CN", "已更改"), ("zh_TW", "已更改")])
def test_a_changed_job_is_called_so_in_each_language(admin: Console, language: str, state: str) -> None:
    add_job(add_group())
    submit(admin, "/account/settings", language=language, time_zone="")
    assert f"{state} author" in text_of(dry_run(admin, file_of(job(author="bob"))))


def test_more_than_one_match_is_an_error(admin: Console) -> None:
    group_id = add_group()
    first, second = add_job(group_id), add_job(group_id)
    assert f"More than one job has this appname, jobDesc and executorHandler: {first}, {second}." in text_of(
        dry_run(admin, file_of(GOOD))
    )
    add_group(title="Again")
    assert "Several executor groups have this appname" in text_of(
        dry_run(admin, file_of(job(jobDesc="other")))
    )


def test_the_rights_are_those_of_each_group(admin: Console, normal_user: Callable[..., Console]) -> None:
    own, seen, _foreign = add_group(), add_group("seen-app", "Seen"), add_group("foreign-app", "Foreign")
    add_job(seen)
    norman = normal_user(own, seen, rights={own: frozenset({Right.EDIT}), seen: frozenset({Right.VIEW})})
    shell = {"glueType": "GLUE_SHELL", "executorHandler": "", "glueSource": "echo"}
    refusals = [
        (job(appname="foreign-app"), "appname : There is no executor"),
        (job(appname="seen-app", jobDesc="new"), "appname : You have no permission to edit jobs"),
        (job(appname="seen-app", author="bob"), "appname : You have no permission to edit jobs"),
        (job(**shell), "glueSource : You have no permission to write code"),
    ]
    for wrong, problem in refusals:
        assert problem in text_of(apply(norman, file_of(wrong)))
    assert "1 unchanged" in text_of(dry_run(norman, file_of(job(appname="seen-app"))))
    assert "1 new" in text_of(apply(norman, file_of(GOOD)))
    child = job(id=2, appname="seen-app")
    assert "You have no permission to run one of these child jobs" in text_of(
        apply(norman, file_of(job(childJobId="2"), child))
    )


def test_a_source_is_changed_as_a_new_version_and_the_run_mode_never(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    job_id = add_job(group_id, glue_type="GLUE_SHELL", executor_handler="", glue_source="echo one")
    shell = job(glueType="GLUE_SHELL", executorHandler="", glueSource="echo two")
    editor = normal_user(group_id, rights={group_id: frozenset({Right.EDIT})})
    assert "You have no permission to write code" in text_of(apply(editor, file_of(shell)))
    assert "glueSource : 8 characters → 8 characters" in text_of(dry_run(admin, file_of(shell)))
    assert apply(admin, file_of(shell)).status_code == 200
    with read_scope() as session:
        initial, version = session.query(GlueVersion).order_by(GlueVersion.id)
        assert initial.glue_source == "echo one"
        assert (version.job_id, version.glue_source, version.glue_remark) == (
            job_id,
            "echo two",
            "imported from a file",
        )
    assert "glueType : The run mode of a job cannot be changed." in text_of(
        dry_run(admin, file_of({**shell, "glueType": "GLUE_PHP"}))
    )


def test_children_are_mapped_by_the_ids_of_the_file(admin: Console) -> None:
    group_id = add_group()
    taken = add_job(group_id, job_desc="taken")
    parent = add_job(group_id, job_desc="parent", child_jobid=str(taken))
    text = file_of(
        job(id=50, jobDesc="parent", childJobId="51,52"),
        job(id=51, jobDesc="taken"),
        job(id=52, jobDesc="new"),
    )
    assert f"childJobId : {taken} → {taken},*52" in text_of(dry_run(admin, text))
    page_text = text_of(apply(admin, text))
    found = stored()
    assert f"childJobId : {taken} → {taken},{found['new'].id}" in page_text
    assert found["parent"].id == parent
    assert found["parent"].child_ids == [taken, found["new"].id]
    turned = file_of(
        job(id=50, jobDesc="parent", childJobId=""), job(id=51, jobDesc="taken", childJobId="50")
    )
    assert "2 changed" in text_of(apply(admin, turned))
    assert stored()["taken"].child_ids == [parent]


def test_a_child_outside_the_file_stays_where_it_is_one_already(admin: Console) -> None:
    group_id = add_group()
    child = add_job(group_id, job_desc="child")
    parent = add_job(group_id, child_jobid=str(child))
    (shown,) = exported(admin, f"?id={parent}")
    assert "1 unchanged" in text_of(dry_run(admin, file_of(shown)))
    assert "is not in the file" in text_of(dry_run(admin, file_of({**shown, "jobDesc": "elsewhere"})))


def test_an_import_whose_jobs_changed_after_the_form_stores_nothing(admin: Console) -> None:
    group_id = add_group()
    submitted = submit(admin, PATH, text=file_of(GOOD), apply="1")
    assert stored() == {}
    add_job(group_id)
    add_job(group_id)
    page_text = text_of(result_of(admin, submitted))
    assert NOTHING in page_text
    assert "More than one job has this appname" in page_text
    assert len(actions()) == 4


def test_rights_lost_after_the_form_store_nothing(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    norman = normal_user(group_id)
    submitted = submit(norman, PATH, text=file_of(GOOD), apply="1")
    with session_scope() as session:
        session.execute(update(User).where(User.username == "norman").values(permission=""))
    assert "There is no executor group with this appname" in text_of(result_of(norman, submitted))
    assert stored() == {}


def test_the_text_of_a_file_is_not_kept(admin: Console) -> None:
    add_group()
    text = file_of(GOOD)
    first = submit(admin, PATH, text=text, apply="1", form_key="0" * 32)
    assert "nightly report" in only_row(Task).parameters
    assert "1 new" in text_of(result_of(admin, first))
    assert only_row(Task).parameters == "{}"
    again = submit(admin, PATH, text=text, apply="1", form_key="0" * 32)
    assert "already submitted" in text_of(result_of(admin, again))


def test_an_error_of_a_child_is_none_of_its_parent(admin: Console) -> None:
    add_group()
    page_text = text_of(
        dry_run(
            admin,
            file_of(
                job(id=1, childJobId="2"), job(id=2, jobDesc="child", author=5), job(id=3, jobDesc="third")
            ),
        )
    )
    assert "(1)" in page_text
    assert "not in the file" not in page_text


def test_a_circle_in_the_file_is_refused(admin: Console) -> None:
    add_group()
    circle = file_of(job(id=1, childJobId="2"), job(id=2, jobDesc="child", childJobId="1"))
    assert "leads back to this job" in text_of(dry_run(admin, circle))


def test_an_export_comes_back_equal_in_an_empty_database(admin: Console) -> None:
    group_id, other = add_group(), add_group("other-app", "Other")
    last = add_job(
        other,
        job_desc="last",
        schedule_type="FIX_RATE",
        schedule_conf="30",
        executor_param=" a\n b ",
        alarm_email="a@b.c",
    )
    middle = add_job(
        group_id,
        job_desc="middle",
        glue_type="GLUE_SHELL",
        executor_handler="",
        glue_source="echo",
        child_jobid=str(last),
    )
    bounds = {
        "not_before_ms": 1_900_000_000_123,
        "not_after_ms": 2_000_000_000_000,
        "time_zone": "Europe/Berlin",
    }
    add_job(
        group_id,
        start=True,
        child_jobid=f"{middle},{last}",
        delivery="at_most_once",
        retry_backoff_percent=200,
        **bounds,
    )
    before = exported(admin)
    text = admin.get("/jobinfo/export").text
    assert text == admin.get("/jobinfo/export").text
    assert "3 unchanged" in text_of(dry_run(admin, text))
    with session_scope() as session:
        for job_id in [each["id"] for each in before]:
            jobs.remove_job(session, job_id, actor=ACTOR, now_ms=now_ms())
    assert stored() == {}
    assert "3 new" in text_of(apply(admin, text.replace("\n", "\r\n")))
    assert without_ids(exported(admin)) == without_ids(before)
    assert "3 unchanged" in text_of(dry_run(admin, admin.get("/jobinfo/export").text))


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
