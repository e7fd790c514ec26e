"""What is archived and how long it is kept, in the forms of jobs and of executor groups."""

import re

import pytest

from app.domain.archive.kinds import KEEPING
from app.models.group import Group
from app.models.job import Job
from tests.console.jobs.form.test_promises import FORM
from tests.console.pages import markup_of, path_after, submit, text_of
from tests.support.console import Console, add_group
from tests.support.factories import only_row

pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


def test_a_job_shows_what_it_keeps(admin: Console) -> None:
    inputs = {"log_archive": "failed", "log_days": "7", "run_days": "3"}
    answer = submit(admin, "/jobinfo/new", **FORM, job_group=add_group(), **inputs)
    page = path_after(answer).partition("?")[0]
    assert [str(getattr(only_row(Job), name)) for name in KEEPING] == ["failed", "7", "3"]
    assert "Log archive of failed runs" in text_of(admin.get(page))
    form = markup_of(admin.get(f"{page}/edit"))
    assert re.search(r'<option selected value="failed">', form)
    assert "of failed runs · logs for 7 days · runs for 3 days" in form


def test_an_executor_says_what_its_jobs_keep(admin: Console) -> None:
    path = f"/jobgroup/{add_group()}/edit"
    inputs = {"app_name": "sample", "title": "Sample", "address_type": "0"}
    submit(admin, path, **inputs, log_archive="all", log_days="90", run_days="")
    group = only_row(Group)
    assert (group.log_archive, group.log_days, group.run_days) == ("all", 90, 0)
    assert re.search(r'<option selected value="all">', markup_of(admin.get(path)))
    wrong = submit(admin, path, **inputs, log_archive="all", log_days="x")
    assert "whole number" in text_of(wrong)
