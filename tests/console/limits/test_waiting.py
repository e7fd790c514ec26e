"""Runs that wait for a limit: in lists and on pages; started now, withdrawn, slots released, runs forced."""

import json
import re

import pytest

from app.clock import now_ms
from app.database.engine import session_scope
from app.domain.access.permissions import Right
from app.domain.enums import FireState, LimitKind, TriggerCode
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import Job
from app.models.skip import Skip
from tests.console.pages import path_after, submit, text_of, unnamed_path_after
from tests.support.console import PASSWORD, Console, add_group, add_job, add_user
from tests.support.factories import all_rows, make_log, only_row
from tests.support.limits import add_holder, add_limit, add_waiting

pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


@pytest.fixture
def job_id() -> int:
    """Return a job that runs once at a time, with a run in progress and two that wait."""
    job_id = add_job(add_group(), max_running=1, job_desc="nightly", priority=7)
    limit_id = add_limit(str(job_id), slots=0, kind=LimitKind.JOB)
    log = make_log(only_row(Job), trigger_code=TriggerCode.ACCEPTED)
    add_holder(job_id, log.id, admitted_ms=now_ms() - 60_000)
    due_ms = now_ms() - 50_000
    add_waiting(job_id, limit_id, due_ms=due_ms, place=due_ms)
    add_waiting(job_id, limit_id, due_ms=due_ms + 10_000, place=due_ms + 10_000, trigger_type="RETRY")
    return job_id


def waiting_ids() -> list[str]:
    return [f"w{fire.id}" for fire in all_rows(Fire, state="WAITING")]


def test_the_list_of_runs_begins_with_those_that_wait(admin: Console, job_id: int) -> None:
    first, second = waiting_ids()
    log_id = all_rows(Fire, state="ACCEPTED")[0].log_id
    for path in ("/joblog", "/joblog?logStatus=8", f"/joblog?jobId={job_id}&range=all"):
        page = admin.get(path)
        text = text_of(page)
        assert "position 1" in text, path
        assert "position 2 · Retry" in text, path
        assert re.search(rf"the slot of this job is taken: run {log_id}", text), path
        assert f"/joblog/waiting/{first}/start?next=" in page.text
        assert f"/joblog/waiting/{second}/withdraw?next=" in page.text
    assert "position 1" not in text_of(admin.get("/joblog?logStatus=2"))
    assert "position 1" not in text_of(admin.get(f"/joblog?jobId={job_id + 1}"))


def test_the_pages_of_job_and_limits_list_them(admin: Console, job_id: int) -> None:
    for path in (f"/jobinfo/{job_id}", "/limits"):
        text = text_of(admin.get(path))
        assert "Waiting runs" in text, path
        assert "the slot of this job is taken" in text, path
    for path in ("/limits", f"/limits/job/{job_id}", f"/jobinfo/{job_id}", "/joblog"):
        parts = admin.get(path, headers={"X-Parts": ""}).get_json()["parts"]
        assert any("/joblog/waiting/" in text for text in parts.values()), path
    page = admin.get(f"/limits/job/{job_id}")
    assert all(f"/joblog/waiting/{run_id}/start" in page.text for run_id in waiting_ids())
    assert re.search(r"1 of 1 .* 2 ", text_of(admin.get("/limits")))
    assert "Now and next 2 waiting" in text_of(admin.get("/"))


def test_a_waiting_run_is_started_now(admin: Console, job_id: int) -> None:
    first, _second = waiting_ids()
    question = text_of(admin.get(f"/joblog/waiting/{first}/start"))
    assert "the slot of this job is taken" in question
    assert "the limit is exceeded until a run has ended" in question
    answer = submit(admin, f"/joblog/waiting/{first}/start", next="/limits")
    assert unnamed_path_after(answer) == "/limits?done=started_now"
    started = all_rows(Fire, state="PENDING")
    assert [bool(fire.admitted_ms) for fire in started] == [True]
    assert f"started a waiting run of job {job_id}" in text_of(admin.get(f"/jobinfo/{job_id}?tab=history"))
    again = admin.get(f"/joblog/waiting/{first}/start")
    assert again.status_code == 409
    assert "The run no longer waits" in text_of(again)


def test_a_waiting_run_is_withdrawn_and_recorded(admin: Console, job_id: int) -> None:
    _first, second = waiting_ids()
    assert "will not start" in text_of(admin.get(f"/joblog/waiting/{second}/withdraw"))
    answer = submit(admin, f"/joblog/waiting/{second}/withdraw", next=f"/xxl-job-admin/jobinfo/{job_id}")
    assert unnamed_path_after(answer) == f"/jobinfo/{job_id}?done=withdrawn"
    assert only_row(Skip).reason == "withdrawn"
    missed = text_of(admin.get(f"/jobinfo/{job_id}?tab=runs"))
    assert "it was withdrawn while it waited · Retry" in missed
    assert admin.get("/joblog/waiting/w99999/withdraw").status_code == 404


def test_only_who_operates_a_group_may_act(admin: Console, console: Console, job_id: int) -> None:
    first, _second = waiting_ids()
    group_id = only_row(Job).job_group
    add_user("vera", [group_id], rights={group_id: frozenset({Right.VIEW})})
    add_user("stranger", [add_group("other-app")])
    admin.post("/account/logout", {})
    vera = console.log_in("vera", PASSWORD)
    page = vera.get("/limits")
    assert "the slot of this job is taken" in text_of(page)
    assert "/joblog/waiting/" not in page.text
    for act in ("start", "withdraw"):
        assert submit(vera, f"/joblog/waiting/{first}/{act}").status_code == 403
    vera.post("/account/logout", {})
    stranger = console.log_in("stranger", PASSWORD)
    assert "2 waiting" not in text_of(stranger.get("/"))
    assert "nightly" not in text_of(stranger.get("/limits"))
    assert submit(stranger, f"/joblog/waiting/{first}/start").status_code == 404
    assert len(waiting_ids()) == 2


def test_the_slot_of_an_unresolved_run_is_released(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, max_running=1)
    log = make_log(only_row(Job), trigger_code=TriggerCode.UNRESOLVED, trigger_msg="Result: gone")
    add_holder(job_id, log.id, state=FireState.HELD)
    page = admin.get(f"/joblog/{log.id}")
    assert "It may still be in progress, so it holds its slot." in text_of(page)
    assert f"/joblog/{log.id}/release" in page.text
    assert "Look at its instance first" in text_of(admin.get(f"/joblog/{log.id}/release"))
    answer = submit(admin, f"/joblog/{log.id}/release")
    assert unnamed_path_after(answer) == f"/joblog/{log.id}?done=released"
    assert all_rows(Fire) == []
    assert all_rows(AuditEntry)[-1].action == "run.release"
    assert "/release" not in admin.get(f"/joblog/{log.id}").text
    assert admin.get(f"/joblog/{log.id}/release").status_code == 409


def test_a_run_by_hand_may_ignore_the_limit(admin: Console) -> None:
    group_id = add_group()
    plain, limited = add_job(group_id), add_job(group_id, max_running=1)
    assert 'name="force"' not in admin.get(f"/jobinfo/{plain}/run").text
    assert 'name="force"' in admin.get(f"/jobinfo/{limited}/run").text
    later = submit(
        admin, f"/jobinfo/{limited}/run", executor_param="", when="at", at="2031-01-01T00:00:00", force="y"
    )
    assert later.status_code == 400
    assert 'id="force-error"' in later.text
    submit(admin, f"/jobinfo/{limited}/run", executor_param="", when="now", force="y")
    assert only_row(Fire).admitted_ms > 0
    assert json.loads(all_rows(AuditEntry)[-1].changes or "{}")["force"] is True
    log = make_log(only_row(Job, id=limited), trigger_msg="Limits: not asked, forced by a user\n")
    assert "although a limit was reached" in text_of(admin.get(f"/joblog/{log.id}"))


def test_the_page_of_a_trigger_says_what_it_waits_for(admin: Console) -> None:
    job_id = add_job(add_group(), max_running=1)
    path = path_after(submit(admin, f"/jobinfo/{job_id}/run", executor_param="", when="now")).partition("?")[
        0
    ]
    limit_id = add_limit(str(job_id), slots=0, kind=LimitKind.JOB)
    with session_scope() as session:
        fire = session.get_one(Fire, only_row(Fire).id)
        fire.state, fire.deadline_ms = FireState.WAITING.value, 5_000
        fire.waits_for, fire.lease_until = f"{limit_id} full 1/1", 2**62
    add_holder(job_id, None)
    page = admin.get(path)
    assert "The run waits for a slot: the slot of this job is taken." in text_of(page)
    assert "/start" in page.text
    assert "Withdraw" in text_of(page)
    for listing in ("/limits", "/joblog", f"/jobinfo/{job_id}"):
        assert "the slot of this job is taken" in text_of(admin.get(listing)), listing
