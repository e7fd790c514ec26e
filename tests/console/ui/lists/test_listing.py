"""Paging: a list shows its last page for one beyond its end, such as after its last row was deleted."""

import re

import pytest
from flask import Flask

from app.clock import now_ms
from app.console.ui.lists.listing import fetch_requested
from app.console.ui.live_parts import HEADER
from app.models.log import JobLog
from app.models.task import Task
from app.store.base.paging import Page
from tests.console.pages import submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import save


@pytest.mark.parametrize(
    ("rows", "count_to", "number", "shown", "starts"),
    [
        (11, 100, 2, 2, [10]),
        (10, 100, 2, 1, [10, 0]),
        (25, 100, 9, 3, [80, 20]),
        (0, 100, 1, 1, [0]),
        (0, 100, 2, 1, [10, 0]),
        (35, 20, 4, 4, [30]),
        (35, 20, 5, 2, [40, 10]),
    ],
)
def test_a_page_beyond_the_end_is_the_last_one(
    app: Flask, rows: int, count_to: int, number: int, shown: int, starts: list[int]
) -> None:
    asked: list[int] = []

    def fetch(start: int, length: int) -> Page[int]:
        asked.append(start)
        return Page(list(range(rows))[start : start + length], min(rows, count_to), rows > count_to)

    with app.test_request_context(f"/?length=10&page={number}"):
        page, paging = fetch_requested(fetch)
    assert (paging.page, asked) == (shown, starts)
    assert page.rows == list(range(rows))[starts[-1] : starts[-1] + 10]


@pytest.fixture
def one_of_each(admin: Console) -> Console:
    """Store a row for each list of the console."""
    group_id = add_group()
    job_id, at_ms = add_job(group_id), now_ms()
    save(JobLog(job_group=group_id, job_id=job_id, trigger_time=at_ms, trigger_code=200))
    task = {"idempotency_key": "k", "kind": "bulk", "parameters": "{}", "created_ms": at_ms}
    save(Task(**task, user_id=1, username="admin"))
    submit(admin, "/user/tokens/new", name="ci", rights=["view"], scope="all", expires="30")
    return admin


@pytest.mark.parametrize(
    ("path", "counted"),
    [
        ("/jobinfo", "1 job"),
        ("/joblog", "1 run"),
        ("/jobgroup", "1 executor"),
        ("/tasks", "1 task"),
        ("/user", "1 user"),
        ("/user/audit", r"\d+ entries"),
        ("/user/tokens", "1 token"),
    ],
)
def test_every_list_shows_its_last_page_beyond_its_end(one_of_each: Console, path: str, counted: str) -> None:
    assert re.search(f"{counted} Per page: ", text_of(one_of_each.get(f"{path}?page=3")))


def test_a_live_list_stays_when_its_page_becomes_empty(one_of_each: Console) -> None:
    held = "".join(re.findall(r'data-hash="([^"]+)"', one_of_each.get("/jobinfo").text))
    assert one_of_each.get("/jobinfo?page=3", headers={HEADER: held}).status_code == 204
