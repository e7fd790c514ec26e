"""Saved views of the lists, and the start page after a login."""

from collections.abc import Callable

import pytest

from app.clock import now_ms
from app.database.engine import read_scope, session_scope
from app.models.saved_view import SavedView
from app.models.start_page import StartPage
from app.models.user import User
from app.services.accounts import users
from app.services.accounts.saved_views import VIEWS_MAX
from tests.console.pages import is_at_login, path_after, submit, text_of, unnamed_path_after
from tests.support.console import ACTOR, ADMIN_PASSWORD, CONTEXT, PASSWORD, Console, add_group, add_job

NEW = "/views/jobs/new?author=ann&tag=a%26b"


def views() -> list[SavedView]:
    with read_scope() as session:
        return session.query(SavedView).order_by(SavedView.id).all()


def save(console: Console, name: str = "Ann's", path: str = NEW) -> int:
    path_after(submit(console, path, name=name))
    return views()[-1].id


def log_in_by_form(console: Console, username: str, password: str) -> str:
    response = console.post("/toLogin", {"userName": username, "password": password})
    assert response.status_code == 303
    return response.headers["Location"].removeprefix(CONTEXT)


def test_the_filters_of_a_list_are_saved_under_a_name(admin: Console) -> None:
    add_job(add_group())
    page = admin.get("/jobinfo?author=ann&tag=a%26b&page=3&length=25").text
    assert 'href="/xxl-job-admin/views/jobs/new?author=ann&amp;tag=a%26b" data-dialog' in page
    assert (
        unnamed_path_after(submit(admin, NEW + "&page=3", name="  Ann's  jobs "))
        == "/jobinfo?author=ann&tag=a%26b&done=view_saved"
    )
    (view,) = views()
    assert (view.name, view.list_name, view.filters) == ("Ann's jobs", "jobs", "author=ann&tag=a%26b")
    link = '<a href="/xxl-job-admin/jobinfo?author=ann&amp;tag=a%26b"{}>Ann&#39;s jobs</a>'
    assert link.format("") in admin.get("/jobinfo").text
    current = admin.get("/jobinfo?tag=a%26b&author=ann&page=2").text
    assert link.format(' aria-current="page"') in current
    assert "Save as a view" not in current, "already saved"
    assert "Save as a view" not in admin.get("/jobinfo").text, "nothing to save"
    assert "Ann&#39;s jobs" not in admin.get("/joblog").text


def test_the_log_has_its_own_views(admin: Console) -> None:
    assert 'href="/xxl-job-admin/joblog?logStatus=2&amp;range=today"' in admin.get("/joblog").text
    path = "/views/logs/new?logStatus=2&range=custom&from=2024-05-01T00%3A00&tag=x"
    assert path_after(submit(admin, path, name="May")).startswith(
        "/joblog?logStatus=2&range=custom&from=2024-05-01T00"
    )
    assert views()[0].filters == "logStatus=2&range=custom&from=2024-05-01T00%3A00"
    save(admin, "May", NEW)  # the same name in the other list
    assert len(views()) == 2


def test_my_jobs_are_those_of_the_reader(normal_user: Callable[..., Console]) -> None:
    norman = normal_user(add_group())
    assert '<a href="/xxl-job-admin/jobinfo?author=norman">Mine' in norman.get("/jobinfo").text


@pytest.mark.parametrize(
    ("path", "name", "problem"),
    [
        (NEW, " ", "Enter a name"),
        (NEW, "x" * 41, "at most 40 characters"),
        (NEW, "a\u202eb", "invisible characters"),
        (NEW, "ANN'S", "You already have a view with this name"),
        ("/views/jobs/new", "fine", "Set a filter in the list first"),
        ("/views/jobs/new?next=//evil.example&page=2&_external=1", "fine", "Set a filter in the list first"),
        (
            "/views/jobs/new?" + "&".join(f"{name}={'%C3%BC' * 200}" for name in ("jobDesc", "author")),
            "fine",
            "too long to save",
        ),
    ],
)
def test_an_invalid_view_is_refused(admin: Console, path: str, name: str, problem: str) -> None:
    save(admin)
    answer = submit(admin, path, name=name)
    assert answer.status_code == 400
    assert problem in text_of(answer)
    assert len(views()) == 1


def test_views_per_list_are_limited(admin: Console) -> None:
    for number in range(VIEWS_MAX):
        save(admin, f"view {number}")
    assert "Delete one first" in text_of(submit(admin, NEW, name="one more"))
    assert len(views()) == VIEWS_MAX
    assert submit(admin, "/views/logs/new?range=all", name="one more").status_code == 303


def test_a_view_is_renamed_and_deleted(admin: Console) -> None:
    view_id, other_id = save(admin), save(admin, "other")
    assert "Ann&#39;s" in admin.get("/account").text
    assert "You already have a view with this name" in text_of(
        submit(admin, f"/views/{view_id}/edit", name="Other")
    )
    assert (
        unnamed_path_after(submit(admin, f"/views/{view_id}/edit", name="ANN'S"))
        == "/account?done=saved#views"
    )
    assert [view.name for view in views()] == ["ANN'S", "other"]
    assert "Delete the view?" in text_of(admin.get(f"/views/{other_id}/delete"))
    assert unnamed_path_after(submit(admin, f"/views/{other_id}/delete")) == "/account?done=removed#views"
    assert [view.id for view in views()] == [view_id]
    assert admin.get(f"/views/{other_id}/edit").status_code == 404


def test_views_belong_to_their_user(
    console: Console, admin: Console, normal_user: Callable[..., Console]
) -> None:
    view_id = save(admin)
    norman = normal_user(add_group())
    for path in (f"/views/{view_id}/edit", f"/views/{view_id}/delete"):
        assert is_at_login(console.another().get(path))
        assert norman.get(path).status_code == 404
        assert submit(norman, path, name="taken over").status_code == 404
    assert admin.post(f"/views/{view_id}/delete").status_code == 403, "without the token"
    assert "Ann" not in norman.get("/jobinfo").text
    assert submit(norman, "/account/start-page", start_page=f"view:{view_id}").status_code == 400
    save(norman, "Ann's")
    assert [view.name for view in views()] == ["Ann's", "Ann's"]


def test_a_stored_view_links_only_to_filters_of_its_list(admin: Console) -> None:
    with session_scope() as session:
        admin_id = session.query(User).one().id
        forged = "_external=1&_scheme=https&_anchor=x&next=//evil.example&author=ann"
        session.add(
            SavedView(user_id=admin_id, list_name="jobs", name="forged", name_key="forged", filters=forged)
        )
    assert '<a href="/xxl-job-admin/jobinfo?author=ann">forged</a>' in admin.get("/jobinfo").text


@pytest.mark.parametrize(
    ("chosen", "address"),
    [
        ("", "/"),
        ("jobs", "/jobinfo"),
        ("logs", "/joblog"),
        ("mine", "/jobinfo?author=admin"),
        ("favourites", "/jobinfo?favourites=1"),
        ("failed", "/joblog?logStatus=2&range=today"),
        ("not_started", "/joblog?logStatus=7&range=today"),
        ("running", "/joblog?logStatus=3&range=all"),
        ("view:1", "/jobinfo?author=ann&tag=a%26b"),
    ],
)
def test_login_and_logo_lead_to_the_start_page(admin: Console, chosen: str, address: str) -> None:
    save(admin)
    assert 'class="logo" href="/xxl-job-admin/start"' in admin.get("/help").text
    path_after(submit(admin, "/account/start-page", start_page="logs"))
    assert path_after(submit(admin, "/account/start-page", start_page=chosen)) == "/account?done=saved"
    assert f'<option value="{chosen}" selected>' in admin.get("/account").text
    assert path_after(admin.get("/start")) == address
    assert path_after(admin.get("/toLogin")) == address
    assert log_in_by_form(admin.another(), "admin", ADMIN_PASSWORD) == address
    assert "Dashboard" in text_of(admin.get("/")), "the root is unchanged"


def test_the_start_page_of_a_deleted_view_is_the_dashboard(admin: Console) -> None:
    view_id = save(admin)
    submit(admin, "/account/start-page", start_page=f"view:{view_id}")
    submit(admin, f"/views/{view_id}/delete")
    assert path_after(admin.get("/start")) == "/"
    with session_scope() as session:
        assert session.query(StartPage).count() == 0
        admin_id = session.query(User).one().id
        session.add(StartPage(user_id=admin_id, target="view:4711"))
    assert path_after(admin.get("/start")) == "/"
    assert '<option value="" selected>' in admin.get("/account").text


def test_a_script_that_logs_in_gets_the_original_answer(admin: Console) -> None:
    submit(admin, "/account/start-page", start_page="logs")
    answer = admin.another().post("/login", {"userName": "admin", "password": ADMIN_PASSWORD})
    assert (answer.status_code, answer.get_json()) == (200, {"code": 200, "msg": None, "content": None})


def test_no_other_start_page_can_be_chosen(console: Console, admin: Console) -> None:
    assert is_at_login(console.another().get("/start"))
    assert admin.post("/account/start-page", {"start_page": "logs"}).status_code == 403
    for wrong in ("https://evil.example", "//evil.example", "view:1", "view:", "/jobinfo"):
        assert submit(admin, "/account/start-page", start_page=wrong).status_code == 400
    assert path_after(admin.get("/start")) == "/"


def test_views_and_start_page_are_deleted_with_their_user(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    norman = normal_user(add_group())
    save(admin)
    submit(norman, "/account/start-page", start_page=f"view:{save(norman, 'mine')}")
    assert log_in_by_form(norman.another(), "norman", PASSWORD) == "/jobinfo?author=ann&tag=a%26b"
    with session_scope() as session:
        users.remove_user(
            session, session.query(User).filter_by(username="norman").one().id, actor=ACTOR, now_ms=now_ms()
        )
    assert [view.name for view in views()] == ["Ann's"]
    with read_scope() as session:
        assert session.query(StartPage).count() == 0
