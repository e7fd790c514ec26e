"""Search of archived logs on its page."""

import re

import pytest

from app.models.job import Job
from app.settings.config import Config
from tests.console.pages import submit, text_of
from tests.support.archive import archive, folder_in
from tests.support.console import Console, add_group, add_job
from tests.support.factories import all_rows


@pytest.fixture
def job(admin: Console) -> Job:
    add_job(add_group())
    [row] = all_rows(Job)
    return row


def test_hits_lead_to_their_lines(admin: Console, config: Config, job: Job) -> None:
    store = folder_in(config.home)
    first = archive(store, job, ["one", "<b>Order</b> 17"], run={"handle_code": 500})
    second = archive(store, job, ["order 18"])
    page = admin.get("/logs/search?q=order").text
    places = re.findall(r'href="[^"]*/joblog/(\d+)\?tab=output#L(\d+)"', page)
    assert places == [(str(second.id), "1"), (str(first.id), "2")]
    assert "&lt;b&gt;<mark>Order</mark>&lt;/b&gt; 17" in page
    assert "These are all lines that match." in page
    assert "No line matches" in admin.get("/logs/search?q=nowhere").text
    assert "<mark>" not in admin.get("/logs/search?q=ORDER&case=1").text
    assert "<mark>Order&lt;/b&gt; 1</mark>" not in admin.get("/logs/search").text
    pattern = admin.get(f"/logs/search?q=Order.*1.&regex=1&logStatus=2&jobId={job.id}").text
    assert "<mark>Order&lt;/b&gt; 17</mark>" in pattern
    assert "expression" in text_of(admin.get("/logs/search?q=(&regex=1"))


def test_further_lines_are_on_further_pages(
    admin: Console, config: Config, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.console.runs.log_search.LINES_MAX", 2)
    archive(folder_in(config.home), job, ["x"] * 3)
    href, pages = "/logs/search?q=x", 0
    while href:
        page = admin.get(href).text
        pages += 1
        further = re.search(r'href="[^"]*(/logs/search[^"]*)" rel="next"', page)
        assert ("Search on" in page) == bool(further)
        href = further[1].replace("&amp;", "&") if further else ""
    assert pages == 2


@pytest.mark.parametrize(("language", "heading"), [("zh_CN", "搜索日志内容"), ("zh_TW", "搜尋日誌內容")])
def test_the_page_is_in_the_readers_language(admin: Console, language: str, heading: str) -> None:
    submit(admin, "/account/settings", language=language, time_zone="UTC")
    assert heading in admin.get("/logs/search").text
    assert heading in admin.get("/joblog").text


def test_links_lead_to_the_search(admin: Console, job: Job) -> None:
    assert "/logs/search" in admin.get("/joblog").text
    assert f"/logs/search?jobId={job.id}" in admin.get(f"/jobinfo/{job.id}?tab=runs").text
