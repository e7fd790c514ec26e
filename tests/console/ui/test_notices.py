"""Notices after a change name and link what was changed, if this login made the URL."""

import re
from collections.abc import Callable

import pytest

from tests.console.pages import markup_of, path_after, submit, text_of
from tests.support.console import Console, add_group, add_job

#: independent of the database
pytestmark = pytest.mark.databases("sqlite")


def test_a_notice_names_and_links_what_was_changed(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    made = {"app_name": "billing-app", "title": "Billing & more", "address_type": "0"}
    after = path_after(submit(admin, "/jobgroup/new", **made))
    assert "Executor Billing &amp; more added" in markup_of(admin.get(after))
    elsewhere = f"/jobgroup?{after.partition('?')[2]}"
    assert ">Open</a>" in markup_of(admin.get(elsewhere))
    for forged in (
        elsewhere[:-1],
        elsewhere.replace("Billing", "Evil"),
        elsewhere.replace("added", "removed"),
    ):
        assert "Open</a>" not in admin.get(forged).text
    other = normal_user(add_group())
    assert "Billing" not in text_of(other.get(f"/jobinfo?{after.partition('?')[2]}"))


def test_the_sidebar_marks_one_page(admin: Console) -> None:
    for path, marked in (("/user", "users"), ("/user/audit", "users.audit"), ("/load", "load")):
        sidebar = admin.get(path).text.split('class="sidebar"')[1].split("</nav>")[0]
        assert re.findall(r'data-page="([\w.]+)"[^>]*aria-current', sidebar) == [marked], path
    missing = admin.get("/nothing-here", headers={"Accept": "text/html"}).text
    assert "aria-current" not in missing.split('class="sidebar"')[1].split("</nav>")[0]
    assert "<h1>Page not found</h1>" in missing


def test_a_notice_links_no_page_that_is_open_or_gone(admin: Console) -> None:
    job_id = add_job(add_group(), job_desc="n" * 200)
    on_its_page = path_after(
        submit(admin, f"/jobinfo/{job_id}/stop", next=f"/xxl-job-admin/jobinfo/{job_id}")
    )
    page = admin.get(on_its_page)
    assert f"Job {job_id} {'n' * 59}… switched off" in text_of(page)
    assert ">Open</a>" not in page.text
    gone = admin.get(path_after(submit(admin, f"/jobinfo/{job_id}/delete")))
    assert "deleted" in text_of(gone)
    assert ">Open</a>" not in gone.text
