"""The misfire strategy that runs all: in the form, on the page of the job, and where runs wait."""

import re

import pytest

from app.models.job import Job
from tests.console.jobs.form.test_promises import FORM
from tests.console.pages import markup_of, path_after, submit, text_of
from tests.support.console import Console, add_group
from tests.support.factories import make_fire, only_row

pytestmark = pytest.mark.databases("sqlite")

ALL = {"misfire_strategy": "RUN_ALL", "misfire_max": "48", "misfire_max_age_s": "7200"}


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


def test_it_is_stored_shown_on_the_page_and_filled_in_again(admin: Console) -> None:
    answer = submit(admin, "/jobinfo/new", **(FORM | ALL), job_group=add_group())
    page = path_after(answer).partition("?")[0]
    job = only_row(Job)
    assert (job.misfire_strategy, job.misfire_max, job.misfire_max_age_s) == ("RUN_ALL", 48, 7_200)
    form = markup_of(admin.get(f"{page}/edit"))
    assert re.search(r'id="misfire_max"[^>]* value="48"', form)
    assert "Run all, one after the other · at most 48 missed runs · missed in the last 7200 s" in text_of(
        admin.get(f"{page}/edit")
    )
    assert "Run all, one after the other · at most 48, of the last 2 h 0 min" in text_of(admin.get(page))


def test_errors_are_at_their_inputs(admin: Console) -> None:
    form = FORM | ALL | {"misfire_max": "1001", "when_full": "skip"}
    answer = submit(admin, "/jobinfo/new", **form, job_group=add_group())
    assert answer.status_code == 400
    page = markup_of(answer)
    assert 'id="misfire_max-error"' in page
    assert 'id="when_full-error"' in page
    assert "runs have to wait for a slot" in text_of(answer)


def test_what_waits_says_so(admin: Console) -> None:
    submit(admin, "/jobinfo/new", **(FORM | ALL), job_group=add_group())
    fire = make_fire(only_row(Job), trigger_type="MISFIRE", state="GATED", waits_for="missed")
    question = text_of(admin.get(f"/joblog/waiting/w{fire.id}/start"))
    assert "waits for the missed run before it" in question
    assert "It starts beside the one before it." in question
