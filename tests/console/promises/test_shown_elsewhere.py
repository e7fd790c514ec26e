"""Promises and incidents on other pages: the job, its history, the dashboard, the executor form."""

import json

import pytest

from app.clock import MINUTE_MS, now_ms
from app.console.jobs.history.version_words import stored_value
from app.database.engine import session_scope
from app.models.channel import AlarmChannel
from app.models.group import Group
from app.models.job import Job
from tests.console.pages import markup_of, path_after, submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.console_scripting import BEAN
from tests.support.factories import only_row, save
from tests.support.promises import make_incident, make_promise

pytestmark = pytest.mark.databases("sqlite")

OWN = '[{"kind":"takes_at_most","s":600}]'


def words(console: Console, path: str) -> str:
    return " ".join(text_of(console.get(path)).split())


def test_the_job_page_has_a_line_of_its_promises(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, promises=OWN)
    assert "Promises:" not in words(admin, f"/jobinfo/{job_id}")
    make_promise(job_id, {"kind": "takes_at_most", "s": 600}, kept_ms=0)
    assert "Promises: none was due yet" in words(admin, f"/jobinfo/{job_id}")
    make_promise(job_id, number=2, days=json.dumps({"2026-11-29": [998, 2, 5]}))
    assert "Promises: kept 99.8 % of 30 days" in words(admin, f"/jobinfo/{job_id}")
    make_incident(job_id, group_id)
    make_incident(job_id, group_id, logical_ms=1_000, state="acknowledged")
    assert "Promises: kept 99.8 % of 30 days , 1 incident open" in words(admin, f"/jobinfo/{job_id}")


def test_the_job_page_says_what_holds_by_its_executor(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, promises=OWN)
    with session_scope() as session:
        group = session.get_one(Group, group_id)
        group.promises = '[{"kind":"starts_within","s":60},{"kind":"takes_at_most","s":5}]'
        group.escalation = '{"channel":"pager","after_minutes":15}'
    text = words(admin, f"/jobinfo/{job_id}")
    assert "takes at most 10 min starts within 1 min from the executor" in text
    assert "takes at most 5 s" not in text
    assert "to pager after 15 min" in text


def test_history_and_versions_have_the_words(admin: Console) -> None:
    job_id = add_job(add_group())
    form = {
        "job_group": "1",
        "job_desc": "nightly report",
        "author": "ann",
        "schedule_type": "CRON",
        "cron": "0 0 3 * * ?",
        "executor_handler": "demoJobHandler",
        "executor_route_strategy": "FIRST",
        "misfire_strategy": "DO_NOTHING",
        "executor_block_strategy": "SERIAL_EXECUTION",
        "delivery": "auto",
        "retry_backoff_percent": "100",
        "promise0_kind": "takes_at_most",
        "promise0_value": "10",
        "promise0_unit": "m",
    }
    assert submit(admin, f"/jobinfo/{job_id}/edit", **form).status_code == 303
    for path in (f"/jobinfo/{job_id}?tab=history", f"/jobinfo/{job_id}?tab=versions", "/user/audit"):
        text = words(admin, path)
        assert "takes at most 10 min" in text, path
        assert "takes_at_most" not in text, path
    assert f"changed the promises of job {job_id} nightly report" in words(admin, "/user/audit")
    assert "takes at most 10 min" in words(admin, f"/jobinfo/{job_id}/versions/1")


def test_the_dashboard_lists_open_incidents(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, job_desc="nightly")
    make_incident(job_id, group_id, logical_ms=now_ms() - 3 * MINUTE_MS)
    make_incident(job_id, group_id, logical_ms=1_000, state="acknowledged")
    page = admin.get("/")
    text = " ".join(text_of(page).split())
    assert "1 incident is open" in text
    assert "Incident nightly not started within 1 min for 2 minutes" in text
    assert "All is well" not in text


def test_an_executor_has_defaults_for_its_jobs(admin: Console) -> None:
    save(AlarmChannel(name="pager", kind="webhook", settings="{}", for_all=1))
    form = {
        "app_name": "sample-app",
        "title": "Sample",
        "address_type": "0",
        "promise0_kind": "finishes_by",
        "promise0_value": "06:00",
        "escalation_channel": "pager",
        "escalation_minutes": "30",
    }
    path = path_after(submit(admin, "/jobgroup/new", **form)).partition("?")[0]
    group = only_row(Group)
    assert json.loads(group.promises or "")[0]["at"] == "06:00"
    assert json.loads(group.escalation or "") == {"channel": "pager", "after_minutes": 30}
    page = markup_of(admin.get(f"{path}/edit"))
    assert 'value="06:00"' in page
    assert "succeeds by 06:00" in words(admin, "/user/audit")
    wrong = submit(admin, f"{path}/edit", **form | {"promise0_value": "soon", "escalation_minutes": ""})
    assert wrong.status_code == 400
    text = markup_of(wrong)
    assert "is not a time such as 06:00" in text.partition('id="promise0_value-error"')[2][:200]
    assert "is not a whole number from 1 to 10080" in text.partition('id="escalation_minutes-error"')[2][:200]
    assert path_after(submit(admin, f"{path}/edit", **form | {"promise0_kind": "", "escalation_channel": ""}))
    assert (only_row(Group).promises, only_row(Group).escalation) == (None, None)


def test_changes_of_a_file_have_the_words(admin: Console) -> None:
    with admin.app.test_request_context():
        assert stored_value(OWN, "promises") == "takes at most 10 min"
        assert (
            stored_value('{"channel": "pager", "after_minutes": 90}', "escalation") == "to pager after 90 min"
        )
        assert [stored_value(text, "promises") for text in ("", "null", "[]")] == ["–", "–", "–"]


def test_scripts_of_the_original_neither_see_nor_change_promises(admin: Console) -> None:
    escalation = '{"channel":"pager","after_minutes":15}'
    save(AlarmChannel(name="pager", kind="webhook", settings="{}", for_all=1))
    group_id = add_group()
    job_id = add_job(group_id, promises=OWN, escalation=escalation)
    answer = admin.call("/jobinfo/update", **(BEAN | {"jobGroup": group_id, "id": job_id}))
    assert answer["code"] == 200, answer
    job = only_row(Job)
    assert json.loads(job.promises or "")[0]["s"] == 600
    assert json.loads(job.escalation or "")["channel"] == "pager"
    query = {"jobGroup": group_id, "triggerStatus": -1, "jobDesc": "", "executorHandler": "", "author": ""}
    row = admin.get("/jobinfo/pageList", query_string=query).get_json()["data"][0]
    assert row["id"] == job_id
    assert not {"promises", "escalation"} & row.keys()
    group = admin.call("/jobgroup/loadById", id=group_id)["content"]
    assert not {"promises", "escalation"} & group.keys()
