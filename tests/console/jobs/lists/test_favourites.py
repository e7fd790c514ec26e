"""Favourites: one star per job and user, set by a form without scripts, and their list."""

from collections.abc import Callable

import yaml

from app.clock import now_ms
from app.database.engine import read_scope, session_scope
from app.models.favourite import Favourite
from app.models.user import User
from app.services.accounts import users
from app.services.jobs import jobs
from tests.console.pages import is_at_login, markup_of, path_after, submit, token_of
from tests.support.console import ACTOR, Console, add_group, add_job

STAR = "/jobinfo/favourite"


def starred() -> list[int]:
    with read_scope() as session:
        return sorted(row.job_id for row in session.query(Favourite))


def test_a_star_returns_to_the_previous_page(admin: Console) -> None:
    job_id = add_job(add_group())
    page = markup_of(admin.get("/jobinfo?author=ann"))
    assert f'form="star" name="add" value="{job_id}" aria-pressed="false"' in page
    assert 'name="next" value="/xxl-job-admin/jobinfo?author=ann"' in page
    there = path_after(submit(admin, STAR, add=job_id, next="/xxl-job-admin/jobinfo?author=ann&page=2"))
    assert there == "/jobinfo?author=ann&page=2&done=starred"
    assert f'form="star" name="remove" value="{job_id}" aria-pressed="true"' in markup_of(
        admin.get("/jobinfo")
    )
    assert f'name="remove" value="{job_id}"' in admin.get(f"/jobinfo/{job_id}").text
    assert path_after(submit(admin, STAR, add=job_id)) == "/jobinfo?done=starred"
    assert starred() == [job_id]
    there = path_after(submit(admin, STAR, remove=job_id, next=f"/xxl-job-admin/jobinfo/{job_id}"))
    assert there == f"/jobinfo/{job_id}?done=unstarred"
    assert starred() == []


def test_a_star_never_redirects_elsewhere(admin: Console) -> None:
    job_id = add_job(add_group())
    for elsewhere in ("https://evil.example/", "//evil.example/", "/\\evil.example"):
        assert path_after(submit(admin, STAR, add=job_id, next=elsewhere)) == "/jobinfo?done=starred"


def test_a_script_gets_no_page_in_return(admin: Console) -> None:
    job_id = add_job(add_group())
    fields = {"csrf_token": token_of(admin), "add": job_id}
    assert admin.post(STAR, fields, headers={"Accept": "application/json"}).status_code == 204
    assert starred() == [job_id]


def test_the_list_shows_only_the_users_own_favourites(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own_group, foreign = add_group("mine-app"), add_group("other-app")
    first, second, hidden = add_job(own_group), add_job(own_group), add_job(foreign)
    norman = normal_user(own_group)
    for job_id in (second, hidden):
        submit(admin, STAR, add=job_id)
    submit(norman, STAR, add=first)
    page = admin.get("/jobinfo?favourites=1").text
    assert [job_id for job_id in (first, second, hidden) if f'name="id" value="{job_id}"' in page] == [
        second,
        hidden,
    ]
    assert "Favourites: <b>only these</b>" in page
    assert 'type="hidden" name="favourites" value="1"' in page, "a search keeps the filter"
    page = norman.get("/jobinfo?favourites=1").text
    assert [job_id for job_id in (first, second, hidden) if f'name="id" value="{job_id}"' in page] == [first]
    assert len(yaml.safe_load(norman.get("/jobinfo/export?favourites=1").text)["jobs"]) == 1


def test_a_star_needs_a_login_a_token_and_the_view_right(
    console: Console, admin: Console, normal_user: Callable[..., Console]
) -> None:
    own_group, foreign = add_group("mine-app"), add_group("other-app")
    add_job(own_group)
    hidden = add_job(foreign)
    norman = normal_user(own_group)
    assert is_at_login(console.another().post(STAR, {"add": hidden}))
    assert norman.post(STAR, {"add": hidden}).status_code == 403
    assert submit(norman, STAR, add=hidden).status_code == 404
    for wrong in ("", "x", "99999", "9" * 30):
        assert submit(norman, STAR, add=wrong).status_code == 404
    assert norman.get(STAR).status_code == 405
    assert starred() == []


def test_stars_are_deleted_with_their_job_and_their_user(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    deleted, kept = add_job(group_id), add_job(group_id)
    norman = normal_user(group_id)
    for reader in (admin, norman):
        for job_id in (deleted, kept):
            submit(reader, STAR, add=job_id)
    with session_scope() as session:
        jobs.remove_job(session, deleted, actor=ACTOR, now_ms=now_ms())
    assert starred() == [kept, kept]
    with session_scope() as session:
        users.remove_user(
            session, session.query(User).filter_by(username="norman").one().id, actor=ACTOR, now_ms=now_ms()
        )
    assert starred() == [kept]
