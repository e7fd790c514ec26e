"""Stale forms: the second of two saves undoes the first only knowingly."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest

from app.database.engine import session_scope
from app.domain.access.permissions import Right
from app.models.channel import AlarmChannel
from app.models.group import Group
from app.models.job import Job
from app.models.right import Right as UserRight
from tests.console.pages import path_after, submit, text_of
from tests.support.console import Console, add_group, add_job, add_user
from tests.support.console_jobs import FORM, job_of
from tests.support.factories import only_row

CHANGED = "This was changed after you had opened it."
LOADED = re.compile(r'name="loaded" value="([0-9a-f]{32})"')


def loaded(page: str) -> str:
    found = LOADED.search(page)
    assert found is not None
    return found.group(1)


def saves_twice(
    admin: Console, path: str, first: dict[str, Any], second: dict[str, Any], *, by: str = "admin"
) -> str:
    """Save two forms that were opened together, the second one again; return the page that refused it."""
    opened = loaded(admin.get(path).text)
    path_after(submit(admin, path, **first, loaded=opened))
    refused = submit(admin, path, **second, loaded=opened)
    assert refused.status_code == 400
    assert CHANGED in text_of(refused)
    assert (f"The last change is by {by} at 2" if by else "Nothing was saved.") in text_of(refused)
    assert f'<a href="/xxl-job-admin{path}" target="_blank"' in unescape(refused.text)
    again = submit(admin, path, **second, loaded=loaded(refused.text))
    assert "done=saved" in path_after(again)
    return refused.text


def test_a_job_that_was_changed_meanwhile_is_overwritten_only_knowingly(admin: Console) -> None:
    form = FORM | {"job_group": add_group()}
    job_id = add_job(form["job_group"])
    path = f"/jobinfo/{job_id}/edit"
    other = form | {"executor_handler": "otherHandler"}
    page = saves_twice(admin, path, form | {"cron": "0 0 5 * * ?", "tags": "late"}, other)
    assert 'value="otherHandler"' in page
    job = job_of(job_id)
    assert (job.schedule_conf, job.executor_handler) == (form["cron"], "otherHandler")


def change_past_the_history(job_id: int, **columns: str) -> None:
    with session_scope() as session:
        for name, value in columns.items():
            setattr(session.get_one(Job, job_id), name, value)


@pytest.mark.parametrize("change", [{"tags": "late"}, {"executor_timeout": "7"}, {"child_jobid": ""}])
def test_any_change_of_a_job_is_noticed_and_a_refused_save_is_none(
    admin: Console, change: dict[str, str]
) -> None:
    group_id = add_group()
    job_id = add_job(group_id, child_jobid=str(add_job(group_id)))
    path, form = f"/jobinfo/{job_id}/edit", FORM | {"job_group": group_id}
    same = form | {"child_jobid": job_of(job_id).child_jobid, "job_desc": "same"}
    path_after(submit(admin, path, **same))
    opened = loaded(admin.get(path).text)
    assert submit(admin, path, **same | {"executor_handler": ""}, loaded=opened).status_code == 400
    path_after(submit(admin, path, **same, loaded=opened))
    path_after(submit(admin, path, **same | change))
    assert CHANGED in text_of(submit(admin, path, **same, loaded=opened))


def test_switches_and_runs_of_a_job_are_no_change(admin: Console) -> None:
    group_id = add_group()
    path = f"/jobinfo/{add_job(group_id)}"
    opened = loaded(admin.get(f"{path}/edit").text)
    path_after(submit(admin, f"{path}/start"))
    path_after(submit(admin, f"{path}/run"))
    path_after(submit(admin, f"{path}/edit", **FORM, job_group=group_id, loaded=opened))


def test_a_change_past_the_history_of_a_job_names_no_user(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    path = f"/jobinfo/{job_id}/edit"
    opened = loaded(admin.get(path).text)
    change_past_the_history(job_id, author="java")
    refused = text_of(submit(admin, path, **FORM, job_group=group_id, loaded=opened))
    assert CHANGED in refused
    assert "The last change is by" not in refused


def test_a_right_that_was_revoked_meanwhile_is_restored_only_knowingly(admin: Console) -> None:
    group_id = add_group()
    user_id = add_user("nina", [group_id], {group_id: frozenset({Right.VIEW, Right.GLUE})})
    revoked, stale = ({"role": "0", "right": [f"{group_id}:{right}"]} for right in ("view", "glue"))
    page = saves_twice(admin, f"/user/{user_id}/edit", revoked, stale, by="")
    assert f'value="{group_id}:glue" aria-label="Sample: GLUE" checked' in re.sub(r"\s+", " ", page)
    assert only_row(UserRight).rights == "view,glue"


def test_code_that_was_saved_meanwhile_is_overwritten_only_knowingly(admin: Console) -> None:
    job_id = add_job(add_group(), glue_type="GLUE_SHELL", executor_handler="", glue_source="echo one")
    path = f"/jobcode?jobId={job_id}"
    first, second = ({"glue_source": f"echo {name}", "glue_remark": f"of {name}"} for name in ("ann", "bob"))
    page = saves_twice(admin, path, first, second)
    assert "echo bob</textarea>" in page
    assert job_of(job_id).glue_source == "echo bob"


def test_a_form_that_does_not_say_what_it_was_filled_from_is_saved(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    norman = normal_user(group_id)
    for number, user in enumerate((admin, norman)):
        form = FORM | {"job_group": group_id, "job_desc": f"saved {number}"}
        path_after(submit(user, f"/jobinfo/{job_id}/edit", **form))
    assert job_of(job_id).job_desc == "saved 1"


def test_a_group_that_was_changed_meanwhile_is_overwritten_only_knowingly(admin: Console) -> None:
    group_id = add_group()
    form = {"app_name": "sample-app", "title": "Sample", "address_type": "0"}
    other = form | {"title": "Renamed"}
    page = saves_twice(
        admin, f"/jobgroup/{group_id}/edit", form | {"alarm_urls": "json://host/"}, other, by=""
    )
    assert 'value="Renamed"' in page
    assert only_row(Group).title == "Renamed"


def user_form(admin: Console) -> tuple[str, dict[str, str]]:
    user_id = add_user("nina", [add_group()])
    return f"/user/{user_id}/edit", {"role": "0"}


def group_form(admin: Console) -> tuple[str, dict[str, str]]:
    return f"/jobgroup/{add_group()}/edit", {"app_name": "sample-app", "title": "Sample", "address_type": "0"}


@pytest.mark.parametrize(
    ("form_of", "secret"), [(group_form, "access_token"), (user_form, "password")], ids=["group", "user"]
)
def test_a_secret_in_a_refused_form_is_asked_for_again(
    admin: Console, form_of: Callable[[Console], tuple[str, dict[str, str]]], secret: str
) -> None:
    path, form = form_of(admin)
    opened = loaded(admin.get(path).text)
    changed = {"title": "Other"} if secret == "access_token" else {"disabled": "1"}
    path_after(submit(admin, path, **form | changed, loaded=opened))
    for typed in ("typed-in-secret-77", ""):
        refused = submit(admin, path, **form, **{secret: typed}, loaded=opened)
        assert CHANGED in text_of(refused)
        assert ("Enter it again" in text_of(refused)) is bool(typed)
        assert (f'id="{secret}-error"' in refused.text) is bool(typed)
        assert "typed-in-secret-77" not in refused.text


@pytest.mark.parametrize(
    ("form_of", "secret", "wrong"),
    [(group_form, "access_token", {"title": ""}), (user_form, "password", {"password": "short"})],
    ids=["group", "user"],
)
def test_a_secret_in_a_form_with_another_error_is_asked_for_again(
    admin: Console,
    form_of: Callable[[Console], tuple[str, dict[str, str]]],
    secret: str,
    wrong: dict[str, str],
) -> None:
    path, form = form_of(admin)
    refused = submit(admin, path, **form | {secret: "typed-in-secret-77"} | wrong)
    assert refused.status_code == 400
    assert ("Enter it again" in text_of(refused)) is (secret not in wrong), "its own error says so"
    assert f'id="{secret}-error"' in refused.text


def test_a_registration_is_no_change_of_a_group(admin: Console) -> None:
    group_id = add_group()
    path = f"/jobgroup/{group_id}/edit"
    opened = loaded(admin.get(path).text)
    with session_scope() as session:
        session.get_one(Group, group_id).address_list = "http://127.0.0.1:9998/"
    form = {"app_name": "sample-app", "title": "Renamed", "address_type": "0"}
    path_after(submit(admin, path, **form, loaded=opened))


def test_an_alarm_channel_that_was_changed_meanwhile_is_overwritten_only_knowingly(admin: Console) -> None:
    group_id = add_group()
    form = {"kind": "mail", "name": "Team", "addresses": "ann@example.org", "scope": "all"}
    path_after(submit(admin, "/alarmchannels/new", **form))
    path = f"/alarmchannels/{only_row(AlarmChannel).id}/edit"
    narrowed, stale = form | {"scope": "chosen", "groups": str(group_id)}, form | {"name": "Night"}
    page = saves_twice(admin, path, narrowed, stale, by="")
    assert 'value="Night"' in page
    channel = only_row(AlarmChannel)
    assert (channel.name, channel.for_all) == ("Night", 1)
