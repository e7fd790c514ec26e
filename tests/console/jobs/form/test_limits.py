"""Limits in the form of a job: plain fields, rows of named limits, errors at them, the most common wish."""

import json
import re

import pytest
from sqlalchemy import select

from app.database.engine import read_scope
from app.models.job import Job
from app.models.limit import LimitUse
from tests.console.jobs.form.test_promises import FORM
from tests.console.pages import markup_of, path_after, submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import all_rows, only_row
from tests.support.limits import add_limit

pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


def rows(*shares: tuple[str, str]) -> dict[str, str]:
    """Return the inputs of named limits: name and weight."""
    parts = ("name", "weight")
    return {
        f"limit{number}_{part}": text
        for number, share in enumerate(shares)
        for part, text in zip(parts, share, strict=True)
    }


def test_limits_are_stored_shown_on_the_page_and_filled_in_again(admin: Console) -> None:
    group_id, limit_id = add_group(), add_limit("reporting database", slots=3)
    inputs = {"max_running": "2", "when_full": "newest", "priority": "7", "max_wait_s": "600"}
    inputs |= {"limit_key": "${param.customer}"} | rows(("", "1"), ("reporting database", "2"))
    answer = submit(admin, "/jobinfo/new", **FORM, job_group=group_id, **inputs)
    page = path_after(answer).partition("?")[0]
    job = only_row(Job)
    assert json.loads(job.limits or "") == [{"limit": "reporting database", "weight": 2}]
    assert (job.max_running, job.when_full, job.priority, job.max_wait_s) == (2, "newest", 7, 600)
    with read_scope() as session:
        use = session.scalars(select(LimitUse)).one()
        assert (use.limit_id, use.weight) == (limit_id, 2)
    form = markup_of(admin.get(f"{page}/edit"))
    assert re.search(r'id="max_running"[^>]* value="2"', form)
    assert re.search(r'<option selected value="reporting database">reporting database \(3 slots\)', form)
    assert re.search(r'id="limit0_weight"[^>]* value="2"', form)
    assert 'id="limit2_name"' not in form
    shown = text_of(admin.get(page))
    assert "Most runs at once 2 for each ${param.customer}" in shown
    assert "reporting database × 2" in shown
    assert "those that waited are skipped · waits 600 s at most" in shown
    assert f'href="/xxl-job-admin/limits/{limit_id}"' in admin.get(page).text


def test_an_empty_section_is_that_of_a_job_without_limits(admin: Console) -> None:
    submit(admin, "/jobinfo/new", **FORM, job_group=add_group())
    job = only_row(Job)
    assert (job.max_running, job.when_full, job.priority, job.max_wait_s) == (0, "wait", 5, 0)
    assert job.limits is None
    assert "Most runs at once" not in text_of(admin.get(f"/jobinfo/{job.id}"))


def test_errors_stand_at_their_inputs_and_open_the_section(admin: Console) -> None:
    group_id = add_group()
    add_limit("reporting database", slots=3)
    inputs = rows(("reporting database", "4"), ("reporting database", "1"), ("gone", "x"))
    inputs |= {"limit_key": "${time:yyyy}"}
    page = submit(admin, "/jobinfo/new", **FORM, job_group=group_id, **inputs)
    assert page.status_code == 400
    assert re.search(r'id="section-limits" open', page.text)
    for name in ("limit0_weight", "limit1_name", "limit2_weight", "limit_key"):
        assert f'id="{name}-error"' in page.text, name
    assert all_rows(Job) == []


def test_never_twice_is_filled_in_without_scripts_and_keeps_what_was_entered(admin: Console) -> None:
    page = submit(
        admin, "/jobinfo/new", **FORM | {"job_desc": "mine"}, job_group=add_group(), preview="never_twice"
    )
    assert page.status_code == 200
    assert all_rows(Job) == []
    form = markup_of(page)
    assert re.search(r'id="section-limits" open', form)
    assert re.search(r'id="max_running"[^>]* value="1"', form)
    assert re.search(r'id="job_desc"[^>]* value="mine"', form)
    assert '<option selected value="wait">' in form
    assert "at most 1 at once" in form


def test_the_closed_section_names_what_differs(admin: Console) -> None:
    query = "max_running=1&when_full=wait&priority=5&max_wait_s=&limit_key=&limit0_name=db&limit0_weight=2"
    note = text_of(admin.get(f"/jobinfo/summary/limits?{query}")).strip()
    assert note == "at most 1 at once · db × 2"
    query = "max_running=0&when_full=replace&priority=9&max_wait_s=60&limit_key=${param.a}"
    note = text_of(admin.get(f"/jobinfo/summary/limits?{query}")).strip()
    assert note == (
        "The run in progress is killed, then the new one starts · priority 9 · waits 60 s at most"
        " · for each ${param.a}"
    )


def test_a_change_of_limits_is_one_in_the_history(admin: Console) -> None:
    add_limit("database", slots=3)
    job_id = add_job(add_group(), limits=json.dumps([{"limit": "database", "weight": 1}]))
    changed = {**FORM, "job_group": only_row(Job).job_group, "job_desc": only_row(Job).job_desc}
    for name in ("author", "schedule_type", "executor_handler"):
        changed[name] = getattr(only_row(Job), name)
    changed["cron"] = only_row(Job).schedule_conf
    submit(admin, f"/jobinfo/{job_id}/edit", **changed, max_running="1", **rows(("database", "2")))
    history = text_of(admin.get(f"/jobinfo/{job_id}?tab=history"))
    assert "changed the limits of" in history
    assert "Named limits" in history
    assert "database database × 2" in history.replace("→", "").replace("  ", " ")
