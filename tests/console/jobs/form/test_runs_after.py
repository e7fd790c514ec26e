"""What a job runs after, in its form: stored, filled in again, errors at their inputs, the next rounds."""

import json
import re

import pytest

from app.models.job import Job
from tests.console.jobs.form.test_promises import FORM
from tests.console.pages import path_after, submit, text_of
from tests.support.console import Console, add_group, add_job, add_user
from tests.support.factories import all_rows

pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


EVERY = {"jobs": [1], "rule": "all_succeeded", "k": 1, "round": "logical_time", "shards": "all"}
DEFAULT = EVERY | {"shards_k": 1, "deadline_s": 86_400, "at_deadline": "drop"}


def stored(job_id: int) -> object:
    return json.loads(next(job for job in all_rows(Job) if job.id == job_id).runs_after or "null")


def test_predecessors_are_stored_and_filled_in_again(admin: Console) -> None:
    group_id = add_group()
    first, second = add_job(group_id, job_desc="Load"), add_job(group_id, job_desc="Check")
    inputs = {"after_jobs": f"{first}, {second}", "after_rule": "k_of_n", "after_k": "2"}
    inputs |= {"after_round": "day", "after_deadline": "90", "after_unit": "m", "after_at_deadline": "run"}
    page = path_after(submit(admin, "/jobinfo/new", **FORM, job_group=group_id, **inputs)).partition("?")[0]
    value = {"jobs": [first, second], "rule": "k_of_n", "k": 2, "round": "day", "deadline_s": 5_400}
    assert stored(int(page.rpartition("/")[2])) == DEFAULT | value | {"at_deadline": "run"}
    form = admin.get(f"{page}/edit").text
    assert re.search(rf'id="after_jobs"[^>]* value="{first},{second}"', form)
    assert f'<li data-value="{first}">{first} Load</li>' in form
    assert re.search(r'<option selected value="k_of_n">', form)
    assert re.search(r'id="after_deadline"[^>]* value="90"', form)
    assert re.search(r'<option selected value="m">', form)


def test_without_a_predecessor_the_other_inputs_say_nothing(admin: Console) -> None:
    submit(admin, "/jobinfo/new", **FORM, job_group=add_group(), after_rule="k_of_n", after_k="x")
    assert [job.runs_after for job in all_rows(Job)] == [None]


def test_errors_stand_at_their_inputs_and_open_the_section(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    wrong = {"after_k": "0", "after_rule": "k_of_n", "after_deadline": "1000", "after_unit": "d"}
    wrong |= {"after_shards": "at_least", "after_shards_k": "x"}
    page = submit(admin, "/jobinfo/new", **FORM, job_group=group_id, after_jobs=f"{job_id},y", **wrong)
    assert page.status_code == 400
    assert 'id="section-after" open' in page.text
    for name in ("after_jobs", "after_k", "after_deadline", "after_shards_k"):
        assert f'id="{name}-error"' in page.text, name
    assert "is not a whole number from 0 to 31" in text_of(page)


def test_a_job_that_is_missing_or_leads_back_is_refused_at_the_predecessors(admin: Console) -> None:
    group_id = add_group()
    first = add_job(group_id, job_desc="Load")
    second = add_job(group_id, job_desc="Report", runs_after=json.dumps({"jobs": [first]}))
    for text, message in ((f"{first},999", "Job 999 was not found"), (str(second), f"{second} Report")):
        page = submit(admin, f"/jobinfo/{first}/edit", after_jobs=text)
        assert page.status_code == 400
        assert message in text_of(page)
        assert 'id="after_jobs-error"' in page.text
    assert stored(first) is None


def test_the_preview_names_predecessors_that_do_not_fit(admin: Console) -> None:
    group_id = add_group()
    first = add_job(group_id, job_desc="One", schedule_conf="0 0 1 * * ?", start=True)
    second = add_job(group_id, job_desc="Five", schedule_conf="0 5 1 * * ?", start=True)
    off = add_job(group_id, job_desc="Off", schedule_conf="0 0 1 * * ?")
    silent = add_job(group_id, job_desc="Silent", schedule_type="NONE", schedule_conf="")
    jobs = f"after_jobs={first},{second},{off},{silent}&schedule_type=NONE"
    text = text_of(admin.get(f"/jobinfo/rounds?{jobs}"))
    assert f"{first} One has no run that belongs to each of these rounds" in text
    assert "Jobs with different times meet in rounds of the same day" in text
    assert f"{off} Off is switched off" in text
    assert f"{silent} Silent has no schedule and runs after no job" in text
    of_day = text_of(admin.get(f"/jobinfo/rounds?after_round=day&{jobs}"))
    assert "has no run that belongs to" not in of_day
    gate = text_of(
        admin.get(f"/jobinfo/rounds?after_jobs={first}&schedule_type=CRON&cron=0+0+2+*+*+?&time_zone=UTC")
    )
    assert gate.count("02:00:00") == 3
    assert f"{first} One has no run that belongs to each of these rounds" in gate
    assert admin.get("/jobinfo/rounds").text.strip() == ""
    inputs = FORM | {"job_group": group_id, "after_jobs": silent, "preview": "rounds"}
    without_scripts = submit(admin, "/jobinfo/new", **inputs)
    assert 'id="section-after" open' in without_scripts.text
    assert f"{silent} Silent has no schedule" in text_of(without_scripts)


def test_a_predecessor_of_another_group_has_no_name(console: Console) -> None:
    own, other = add_group(), add_group("other-app")
    foreign = add_job(other, job_desc="Payroll")
    job_id = add_job(own, runs_after=json.dumps({"jobs": [foreign]}))
    add_user("bob", [own])
    user = console.log_in("bob")
    page = user.get(f"/jobinfo/{job_id}/edit").text
    assert "Payroll" not in page
    assert f'<li data-value="{foreign}">a job of another group</li>' in page
    submit(user, f"/jobinfo/{job_id}/edit")
    assert stored(job_id) == DEFAULT | {"jobs": [foreign]}
