"""Pickers: limited suggestions by id or name, only of selectable objects; plain fields without scripts."""

import re
from collections.abc import Callable

import pytest
from sqlalchemy import insert
from werkzeug.test import TestResponse

from app.database.engine import session_scope
from app.domain.access.permissions import Right
from app.models.group import Group
from app.models.job import Job
from app.services.jobs.choices import OFFERED_MAX, SELECT_MAX
from tests.console.pages import is_at_login, markup_of, text_of
from tests.support.console import Console, add_group, add_job, add_user

VIEW, OPERATE, EDIT = frozenset({Right.VIEW}), frozenset({Right.OPERATE}), frozenset({Right.EDIT})


def values(answer: TestResponse) -> list[str]:
    assert answer.status_code == 200, answer.text
    assert "<html" not in answer.text
    return re.findall(r'data-value="([^"]*)"', answer.text)


def add_jobs(group_id: int, count: int) -> None:
    row = {"job_group": group_id, "glue_type": "BEAN", "schedule_type": "NONE"}
    with session_scope() as session:
        session.execute(insert(Job), [{**row, "job_desc": f"numbered {number}"} for number in range(count)])


def test_without_a_login_nothing_is_suggested(console: Console) -> None:
    for path in ("/pick/jobs", "/pick/groups", "/pick/users"):
        assert is_at_login(console.get(path))


def test_jobs_are_found_by_id_name_and_handler(admin: Console) -> None:
    group_id, other = add_group(), add_group("other-app", "Other")
    first = add_job(group_id, job_desc="Close ORDERS")
    second = add_job(other, job_desc=f"orders of job {first}", executor_handler="settle_100%")
    assert values(admin.get("/pick/jobs")) == [str(second), str(first)]
    assert values(admin.get("/pick/jobs?q=orders")) == [str(second), str(first)]
    assert values(admin.get(f"/pick/jobs?q={first}"))[0] == str(first)
    assert values(admin.get("/pick/jobs?q=100%25")) == [str(second)]
    assert values(admin.get(f"/pick/jobs?jobGroup={group_id}&q=orders")) == [str(first)]
    assert values(admin.get(f"/pick/jobs?skip={second}")) == [str(first)]
    for text in ("nothing", "99999999999999999999", "%00", "x" * 300, "_"):
        assert not set(values(admin.get(f"/pick/jobs?q={text}"))) - {str(second)}
    assert "No matches" in text_of(admin.get("/pick/jobs?q=nothing"))


def test_suggestions_are_limited_and_say_so(admin: Console) -> None:
    group_id = add_group()
    add_jobs(group_id, OFFERED_MAX)
    assert f"{OFFERED_MAX} matches" in text_of(admin.get("/pick/jobs?q=numbered"))
    add_jobs(group_id, 1)
    answer = admin.get("/pick/jobs?q=numbered")
    assert len(values(answer)) == OFFERED_MAX
    assert f"First {OFFERED_MAX} results; type more" in text_of(answer)


def test_only_selectable_objects_are_suggested(admin: Console, normal_user: Callable[..., Console]) -> None:
    own_group, seen, foreign = add_group(), add_group("seen-app", "Seen"), add_group("foreign-app", "Foreign")
    own_job, viewed_job, _ = add_job(own_group), add_job(seen), add_job(foreign)
    norman = normal_user(own_group, seen, rights={own_group: OPERATE | EDIT, seen: VIEW})
    assert values(norman.get("/pick/jobs")) == [str(viewed_job), str(own_job)]
    assert values(norman.get("/pick/jobs?right=operate")) == [str(own_job)]
    assert values(norman.get(f"/pick/jobs?jobGroup={foreign}")) == []
    assert values(norman.get("/pick/groups")) == [str(own_group), str(seen)]
    assert values(norman.get("/pick/groups?right=edit&q=app")) == [str(own_group)]
    assert norman.get("/pick/users").status_code == 403
    groupless = normal_user(username="groupless")
    assert values(groupless.get("/pick/jobs")) == values(groupless.get("/pick/groups")) == []


def test_users_are_found_by_name(admin: Console) -> None:
    add_user("annabel")
    assert values(admin.get("/pick/users?q=NNA")) == ["annabel"]
    assert 'data-picker="username"' in admin.get("/user/audit").text


def test_suggestions_are_escaped(admin: Console) -> None:
    add_job(add_group(), job_desc='<script>"')
    assert '&lt;script&gt;&#34;"' in admin.get("/pick/jobs").text


def test_the_log_has_a_select_or_a_field_without_scripts(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    page = markup_of(admin.get(f"/joblog?jobId={job_id}"))
    assert f'<option value="{job_id}" selected>{job_id} nightly report</option>' in page
    assert f'value="{job_id} nightly report" placeholder="All"' in page
    add_jobs(group_id, SELECT_MAX)
    page = markup_of(admin.get(f"/joblog?jobId={job_id}"))
    assert (
        '<input class="form-control" id="jobId" name="jobId" inputmode="numeric" placeholder="Job ID"'
        f' value="{job_id}">' in page
    )
    assert "numbered 7" not in page


def test_a_name_is_hidden_from_users_who_may_not_see_the_job(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own_group, foreign = add_group(), add_group("foreign-app", "Foreign")
    hidden = add_job(foreign, job_desc="top secret")
    parent = add_job(own_group, child_jobid=str(hidden))
    assert f'<li data-value="{hidden}">{hidden} top secret</li>' in admin.get(f"/jobinfo/{parent}/edit").text
    norman = normal_user(own_group)
    for path in (f"/jobinfo/{parent}/edit", f"/joblog?jobId={hidden}"):
        assert "top secret" not in norman.get(path).text
    assert f'<li data-value="{hidden}">{hidden}</li>' in norman.get(f"/jobinfo/{parent}/edit").text


@pytest.mark.parametrize(("count", "has_picker"), [(20, False), (21, True)])
def test_a_long_select_of_executors_gets_a_picker(admin: Console, *, count: int, has_picker: bool) -> None:
    with session_scope() as session:
        session.add_all(
            Group(app_name=f"app-{number:03}", title=f"Title {number}", address_type=0)
            for number in range(count)
        )
        session.flush()
        chosen = session.query(Group).filter_by(title="Title 7").one().id
    for path in ("/jobinfo", "/joblog"):
        page = admin.get(f"{path}?jobGroup={chosen}").text
        assert f'<option value="{chosen}" selected>Title 7</option>' in page
        assert ('data-picker="jobGroup"' in page) is has_picker
        assert (
            'id="jobGroup-search" name="q" form="jobGroup-none" role="combobox" value="Title 7"' in page
        ) is has_picker
    page = admin.get(f"/jobinfo/new?jobGroup={chosen}").text
    assert ('data-picker="job_group"' in page) is has_picker
    assert ('value="Title 7 (app-007)"' in page) is has_picker
