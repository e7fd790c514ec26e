"""Pages of limits: list, page of one with who has its slots, forms, and what each reader sees."""

import json
import re

import pytest

from app.clock import now_ms
from app.domain.access.permissions import Right
from app.domain.enums import FireState, LimitKind
from app.models.audit import AuditEntry
from app.models.job import Job
from app.models.limit import Limit
from tests.console.pages import markup_of, path_after, submit, text_of, unnamed_path_after
from tests.support.console import PASSWORD, Console, add_group, add_job, add_user
from tests.support.factories import all_rows, make_log, only_row
from tests.support.limits import add_holder, add_limit, add_waiting

pytestmark = pytest.mark.databases("sqlite")


@pytest.fixture
def admin(console: Console) -> Console:
    return console.log_in()


def sharing_job(group_id: int, name: str, weight: int = 1, **changes: object) -> int:
    """Add a job that shares a named limit."""
    limits = json.dumps([{"limit": name, "weight": weight}])
    return add_job(group_id, limits=limits, **{"job_desc": f"shares {name}"} | changes)


def test_an_empty_page_says_what_limits_are_for(admin: Console) -> None:
    page = text_of(admin.get("/limits"))
    assert "No named limit yet" in page
    assert "a database with room for three reports" in page
    assert "No run waits for a slot." in page


def test_a_limit_is_added_listed_changed_and_deleted(admin: Console) -> None:
    answer = submit(admin, "/limits/new", name=" reporting database ", slots="3", group="all")
    assert unnamed_path_after(answer) == "/limits?done=added"
    limit = only_row(Limit)
    assert (limit.name, limit.slots, limit.group_id) == ("reporting database", 3, None)
    group_id = add_group()
    job_id = sharing_job(group_id, "reporting database", weight=2)
    add_holder(job_id, 811)
    page = text_of(admin.get("/limits"))
    assert "reporting database 2 of 3 0 1 all" in page
    path = f"/limits/{limit.id}"
    refused = submit(admin, f"{path}/edit", slots="1", group="all")
    assert refused.status_code == 400
    assert "A run takes 2 slots of this limit" in text_of(refused)
    answer = submit(admin, f"{path}/edit", slots="4", group=str(group_id))
    assert path_after(answer).startswith(f"{path}?done=saved")
    assert (only_row(Limit).slots, only_row(Limit).group_id) == (4, group_id)
    question = text_of(admin.get(f"{path}/delete"))
    assert "Jobs that use it: 1. Remove it from these jobs first." in question
    assert submit(admin, f"{path}/delete").status_code == 409
    submit(admin, f"/jobinfo/{job_id}/delete")
    assert unnamed_path_after(submit(admin, f"{path}/delete")) == "/limits?done=removed"
    assert all_rows(Limit) == []
    assert "deleted limit reporting database" in text_of(admin.get("/user/audit"))


def test_a_second_limit_of_a_name_is_refused_and_changes_nothing(admin: Console) -> None:
    add_limit("database", slots=3)
    page = submit(admin, "/limits/new", name="database", slots="9", group="all")
    assert page.status_code == 400
    assert "There is a limit of this name already" in text_of(page)
    assert only_row(Limit).slots == 3
    page = submit(admin, "/limits/new", name=" ", slots="x", group="")
    for name in ("name", "slots", "group"):
        assert f'id="{name}-error"' in page.text, name


def test_a_stale_form_says_so(admin: Console) -> None:
    limit_id = add_limit("database", slots=3)
    loaded = re.search(r'name="loaded" value="(\w+)"', admin.get(f"/limits/{limit_id}/edit").text)
    assert loaded is not None
    submit(admin, f"/limits/{limit_id}/edit", slots="5", group="all")
    page = submit(admin, f"/limits/{limit_id}/edit", slots="4", group="all", loaded=loaded[1])
    assert page.status_code == 400
    assert "Nothing was saved" in text_of(page)
    assert only_row(Limit).slots == 5


def test_the_page_of_a_limit_shows_who_has_its_slots(admin: Console) -> None:
    group_id, limit_id = add_group(), add_limit("database", slots=3)
    job_id = sharing_job(group_id, "database", weight=2, priority=7)
    log = make_log(only_row(Job))
    add_holder(job_id, log.id, admitted_ms=now_ms() - 60_000)
    add_holder(job_id, 99, state=FireState.HELD, admitted_ms=now_ms() - 50_000)
    page = admin.get(f"/limits/{limit_id}")
    text = text_of(page)
    assert "4 of 3" in text
    assert f'href="/xxl-job-admin/joblog/{log.id}"' in page.text
    assert "Unresolved, holds its slot" in text
    assert 'href="/xxl-job-admin/joblog/99/release?next=' in page.text
    assert f"{job_id} shares database 2 7 The new run waits Sample" in text


def test_limits_of_jobs_and_executors_have_pages_of_their_own(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id, max_running=2, job_desc="nightly")
    add_holder(job_id, 811)
    own = add_limit(str(job_id), slots=0, kind=LimitKind.JOB)
    assert "1 of 2" in text_of(admin.get(f"/limits/job/{job_id}"))
    assert "Limit of an executor" in text_of(admin.get(f"/limits/executor/{group_id}"))
    assert admin.get(f"/limits/{own}").headers["Location"].endswith(f"/limits/job/{job_id}")
    assert "nightly" not in text_of(admin.get("/limits"))
    add_waiting(job_id, own, due_ms=5_000, place=5_000)
    assert re.search(r"Job \d+ nightly 1 of 2 1", text_of(admin.get("/limits")))


def test_readers_see_and_change_only_what_is_theirs(admin: Console, console: Console) -> None:
    mine, other = add_group(), add_group("other-app", "Other")
    everyone, hidden = add_limit("shared", slots=2), add_limit("of others", slots=1, group_id=other)
    add_holder(sharing_job(other, "shared", job_desc="secret job"), 811)
    own = add_limit("of mine", slots=1, group_id=mine)
    add_user("eve", [mine], rights={mine: frozenset({Right.VIEW, Right.EDIT})})
    admin.post("/account/logout", {})
    eve = console.log_in("eve", PASSWORD)
    listed = markup_of(eve.get("/limits"))
    assert "of others" not in listed
    assert "shared" in listed
    assert f"/limits/{own}/edit" in listed
    assert f"/limits/{everyone}/edit" not in listed
    assert eve.get(f"/limits/{hidden}").status_code == 404
    page = text_of(eve.get(f"/limits/{everyone}"))
    assert "secret job" not in page
    assert "1 run of another executor has slots, too." in page
    assert submit(eve, f"/limits/{everyone}/edit", slots="9", group="all").status_code == 403
    assert submit(eve, "/limits/new", name="new", slots="9", group="all").status_code in (400, 403)
    assert unnamed_path_after(submit(eve, "/limits/new", name="new", slots="9", group=str(mine)))
    assert [entry.action for entry in all_rows(AuditEntry)][-1] == "limit.set"
