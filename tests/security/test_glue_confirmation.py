"""Code is saved from a browser only after the password was entered once in that login.

So a login left open, or a script injected into a page, puts no code on executors. Scripts are not asked.
"""

import json
from dataclasses import replace

import pytest
import yaml
from sqlalchemy import update

from app.clock import MINUTE_MS, now_ms
from app.database.engine import session_scope
from app.domain.access.permissions import Actor
from app.errors import InvalidInput
from app.models.audit import AuditEntry
from app.models.job import Job
from app.models.session import LoginSession
from app.services.accounts import confirmation
from app.services.accounts.login import Visitor
from tests.console.pages import path_after, submit, text_of
from tests.support.console import ADMIN_PASSWORD, Console, add_group, add_job
from tests.support.factories import all_rows, only_row

BROWSER = {"Sec-Fetch-Site": "same-origin"}
#: of a browser that uses a host without TLS
PLAIN_BROWSER = {"Origin": "http://localhost"}


@pytest.fixture
def admin(console: Console) -> Console:
    """An administrator who has logged in, and confirmed nothing yet."""
    return console.log_in("admin", ADMIN_PASSWORD)


@pytest.fixture
def job_id(admin: Console) -> int:
    group_id = add_group()
    return add_job(group_id, glue_type="GLUE_SHELL", executor_handler="", glue_source="echo one")


def source_of(job_id: int) -> str | None:
    return only_row(Job, id=job_id).glue_source


def test_the_editor_saves_nothing_without_the_password_and_keeps_what_was_typed(
    admin: Console, job_id: int
) -> None:
    path = f"/jobcode?jobId={job_id}"
    code = {"glue_source": "rm -rf <all>", "glue_remark": "an attack"}
    assert "Your password" in text_of(admin.get(path))
    for password, reason in (("", "Enter your password"), ("guess-one-1", "Wrong password")):
        refused = submit(admin, path, password=password, **code)
        assert (refused.status_code, source_of(job_id)) == (400, "echo one")
        assert reason in text_of(refused)
        assert "rm -rf &lt;all&gt;" in refused.text
        assert 'value="an attack"' in refused.text
        assert password == "" or password not in refused.text
    assert "done=saved" in path_after(submit(admin, path, password=ADMIN_PASSWORD, **code))
    assert source_of(job_id) == "rm -rf <all>"
    assert only_row(AuditEntry, action="login.confirm").username == "admin"
    assert "Your password" not in text_of(admin.get(path)), "once in this login"
    path_after(submit(admin, path, glue_source="echo two", glue_remark="the second one"))
    assert source_of(job_id) == "echo two"
    other = admin.another().log_in("admin", ADMIN_PASSWORD)
    assert submit(other, path, **code).status_code == 400, "another login is asked again"


def test_guessing_the_password_is_slowed_down_without_losing_the_source(admin: Console, job_id: int) -> None:
    path, code = f"/jobcode?jobId={job_id}", {"glue_source": "echo kept", "glue_remark": "an attack"}
    answers = [submit(admin, path, password=f"guess-{number}", **code) for number in range(7)]
    assert [answer.status_code for answer in answers] == [400] * 5 + [429] * 2
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert "echo kept" in answers[-1].text
    assert len(all_rows(AuditEntry, action="login.refused")) >= 5


def test_a_version_is_restored_only_with_the_password(admin: Console, job_id: int) -> None:
    submit(
        admin,
        f"/jobcode?jobId={job_id}",
        glue_source="echo two",
        glue_remark="second",
        password=ADMIN_PASSWORD,
    )
    version = admin.get(f"/jobcode?jobId={job_id}").text.split("version=")[1].split('"')[0]
    other = admin.another().log_in("admin", ADMIN_PASSWORD)
    path = f"/jobcode/restore?jobId={job_id}&version={version}"
    refused = submit(other, path, glue_remark="restored by another")
    assert refused.status_code == 400
    assert 'type="password"' in refused.text
    answer = submit(other, path, glue_remark="restored by another", password=ADMIN_PASSWORD)
    assert "done=restored" in path_after(answer)


@pytest.mark.parametrize("headers", [BROWSER, PLAIN_BROWSER], ids=["fetch metadata", "origin"])
def test_the_endpoints_of_scripts_are_no_way_round_for_a_page(
    admin: Console, job_id: int, headers: dict[str, str]
) -> None:
    saved = {"id": job_id, "glueSource": "echo injected", "glueRemark": "injected"}
    added = {
        "jobGroup": only_row(Job, id=job_id).job_group,
        "jobDesc": "injected",
        "author": "x",
        "scheduleType": "NONE",
        "misfireStrategy": "DO_NOTHING",
        "executorRouteStrategy": "FIRST",
        "executorBlockStrategy": "SERIAL_EXECUTION",
        "glueType": "GLUE_SHELL",
        "glueSource": "echo injected",
        "glueRemark": "injected",
    }
    for path, values in (("/jobcode/save", saved), ("/jobinfo/add", added)):
        answer = admin.post(path, values, headers=headers).get_json()
        assert (answer["code"], "Confirm your password" in answer["msg"]) == (500, True), path
    assert [job.glue_source for job in all_rows(Job) if job.glue_type == "GLUE_SHELL"] == ["echo one"]
    for path, values in (("/jobcode/save", saved), ("/jobinfo/add", added)):
        assert admin.call(path, **values)["code"] == 200, "a script sends neither header"
    submit(
        admin,
        f"/jobcode?jobId={job_id}",
        glue_source="x",
        glue_remark="confirmed",
        password=ADMIN_PASSWORD,
    )
    assert admin.post("/jobcode/save", saved, headers=headers).get_json()["code"] == 200


def test_a_file_with_code_is_imported_only_with_the_password(admin: Console, job_id: int) -> None:
    exported = yaml.safe_load(admin.get("/jobinfo/export").text)
    (job,) = exported["jobs"].values()
    job["code"]["source"] = "echo imported"
    with_code = {"text": json.dumps(exported)}
    assert "Your password" in text_of(submit(admin, "/jobinfo/import", **with_code))
    refused = submit(admin, "/jobinfo/import", apply="1", **with_code)
    assert refused.status_code == 400
    assert "Enter your password" in text_of(refused)
    assert "echo imported" in refused.text
    path_after(submit(admin, "/jobinfo/import", apply="1", password=ADMIN_PASSWORD, **with_code))

    other = admin.another().log_in("admin", ADMIN_PASSWORD)
    del job["code"]["source"]
    job["owner"] = "ben"
    path_after(submit(other, "/jobinfo/import", apply="1", text=json.dumps(exported)))


VISITOR = Visitor(
    actor=Actor(user_id=1, username="olga", is_admin=True, address="10.0.0.1"),
    session_id=1,
    token_hash="0" * 64,
    last_seen_ms=0,
    must_change=False,
    weak_password=0,
    language="",
    time_zone="",
    created_ms=1_714_530_000_000,
)


@pytest.mark.parametrize(("minutes", "needed"), [(0, False), (15, False), (16, True)])
def test_a_sign_on_confirms_only_while_it_is_fresh(minutes: int, needed: bool) -> None:
    visitor, at_ms = replace(VISITOR, sign_on=True), VISITOR.created_ms + minutes * MINUTE_MS
    assert confirmation.needs_confirmation(visitor, now_ms=at_ms) is needed
    if needed:
        with pytest.raises(InvalidInput, match="Log in again"):
            confirmation.confirm(visitor, ADMIN_PASSWORD, now_ms=at_ms)


def test_an_old_sign_on_has_to_log_in_again(admin: Console, job_id: int) -> None:
    with session_scope() as session:
        session.execute(update(LoginSession).values(sign_on=1, created_ms=now_ms() - 16 * MINUTE_MS))
    path, code = f"/jobcode?jobId={job_id}", {"glue_source": "echo two", "glue_remark": "an attack"}
    assert 'type="password"' not in admin.get(path).text
    refused = submit(admin, path, password=ADMIN_PASSWORD, **code)
    assert (refused.status_code, source_of(job_id)) == (400, "echo one")
    assert "Log in again" in text_of(refused)
