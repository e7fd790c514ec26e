"""Search and views of the run list: typed filters, jobs by name, runs by number, numbers of the views."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote

import pytest

from app.clock import now_ms
from app.console.runs.list_search import run_number
from app.console.ui.lists.ranges import field_text
from app.database.engine import read_scope
from app.domain.access.permissions import Right
from app.models.job import Job
from app.services.report import run_views
from tests.console.pages import markup_of, submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.console_runs import add_log
from tests.support.factories import T0, make_fire
from tests.support.truth_table import truth_table

LIST = "/xxl-job-admin/joblog"


@pytest.fixture
def group_id(admin: Console) -> int:
    return add_group("orders-app", "Orders EU")


@truth_table(
    "text, number",
    [("6379", 6379), (" #6379 ", 6379), ("0", 0), ("x6379", 0), ("6379 x", 0), ("9" * 19, 0), ("٣", 0)],
)
def test_a_number_is_that_of_a_run(text: str, number: int) -> None:
    assert run_number(text) == number


@truth_table(
    "text, is_end, expected",
    [
        ("2024-05-01", False, "2024-05-01T00:00:00"),
        ("2024-05-01", True, "2024-05-01T23:59:59"),
        ("2024-05-01 10:00", True, "2024-05-01T10:00:00"),
        ("2024-05-01T10:00:30", False, "2024-05-01T10:00:30"),
        ("yesterday", False, ""),
        ("2024-13-01", False, ""),
    ],
)
def test_a_typed_time_is_that_of_a_field(text: str, is_end: bool, expected: str) -> None:
    assert field_text(text, is_end=is_end) == expected


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("status:failed", "logStatus=2"),
        ("status:not-started", "logStatus=7"),
        ("STATE:Timeout", "logStatus=5"),
        ('status:"failed in the handler"', "logStatus=4"),
        ("period:week", "range=week"),
        ("time:last-24-hours", "range=day"),
        ("from:2024-05-01", "range=custom&from=2024-05-01T00:00:00"),
        (
            'from:"2024-05-01 10:00" to:2024-05-02',
            "range=custom&from=2024-05-01T10:00:00&to=2024-05-02T23:59:59",
        ),
        ("logical_from:2024-05-01T10:00", "logical_from=2024-05-01T10:00:00"),
        ("executor:orders status:killed", "jobGroup={group}&logStatus=6"),
        ("job:7", "jobId=7"),
        ("job:settle", "jobId={job}"),
        ("settle cards", "jobId={job}"),
        ("executor:orders settle status:running", "jobId={job}&logStatus=3"),
    ],
)
def test_typed_filters_become_parameters(admin: Console, group_id: int, text: str, query: str) -> None:
    job_id = add_job(group_id, job_desc="Settle cards")
    add_job(group_id, job_desc="Other")
    answer = admin.get(f"/joblog?page=2&until=9&q={quote(text)}")
    assert answer.status_code == 302
    address, _mark, parameters = answer.headers["Location"].partition("?")
    assert address == LIST
    assert dict(parse_qsl(parameters)) == dict(parse_qsl(query.format(group=group_id, job=job_id)))


def test_a_typed_filter_takes_the_place_of_those_that_do_not_go_with_it(
    admin: Console, group_id: int
) -> None:
    job_id = add_job(group_id, job_desc="Settle cards")
    former = f"jobGroup={add_group()}&range=custom&from=2024-05-01T00:00&to=2024-05-02T00:00&logStatus=2"
    location = admin.get(f"/joblog?{former}&q=settle+period%3Aall").headers["Location"]
    assert dict(parse_qsl(location.partition("?")[2])) == {
        "jobId": str(job_id),
        "range": "all",
        "logStatus": "2",
    }


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("foo:bar", "There is no filter “foo:”. There are: executor, job, status, period, from, to,"),
        ("status:", "Enter a value after “status:”."),
        ("status:red", "“status:” can be one of: succeeded, running, failed, failed-in-the-handler,"),
        ("period:custom", "“period:” can be one of: last-hour, today,"),
        ("from:monday", "“from:” is a time, as 2024-05-01, "),
        ("executor:none", "No executor is called “none”."),
        ("nothing", "No job matches “nothing”."),
        ("#4711", "There is no run 4711. To list the runs of a job, type job:4711."),
    ],
)
def test_what_cannot_be_meant_is_a_hint_and_no_empty_list(
    admin: Console, group_id: int, text: str, hint: str
) -> None:
    log_id = add_log(add_job(group_id), group_id)
    page = admin.get(f"/joblog?q={quote(text)}")
    assert hint in text_of(page)
    assert f'{LIST}/{log_id}"' in page.text
    assert f'value="{text}"' in page.text, "it can be corrected"


def test_a_name_of_several_jobs_leads_to_each(admin: Console, group_id: int) -> None:
    first, second = (add_job(group_id, job_desc=f"Settle <{number}>") for number in range(2))
    page = markup_of(admin.get("/joblog?range=week&q=settle"))
    assert "Several jobs match “settle”:" in page
    for job_id, number in ((first, 0), (second, 1)):
        assert f'<a href="{LIST}?range=week&amp;jobId={job_id}">{job_id} Settle &lt;{number}&gt;</a>' in page
    add_job(group_id, job_desc="Settle")
    assert admin.get("/joblog?q=settle").headers["Location"].endswith(f"jobId={second + 1}"), "its whole name"


def test_a_number_leads_to_the_run_and_only_to_one_that_one_may_see(
    admin: Console, group_id: int, normal_user: Callable[..., Console]
) -> None:
    log_id = add_log(add_job(group_id), group_id)
    assert admin.get(f"/joblog?q=%23{log_id}").headers["Location"] == f"{LIST}/{log_id}"
    own = add_group("own-app", "Own")
    norman = normal_user(own, rights={own: frozenset({Right.VIEW})})
    for path, hint in ((f"{log_id}", f"There is no run {log_id}."), ("nightly", "No job matches “nightly”.")):
        page = norman.get(f"/joblog?q={path}")
        assert hint in text_of(page)
        assert "nightly report" not in page.text


def test_the_period_is_a_chip_until_the_list_has_runs_of_any_time(admin: Console) -> None:
    def chips(query: str) -> dict[str, str]:
        page = markup_of(admin.get(f"/joblog{query}"))
        found = re.findall(r'class="chip" href="([^"]+)">([^<]+)<b>([^<]*)</b>', page)
        return {f"{label.strip()} {value}": href for href, label, value in found}

    assert chips("") == {"Time: Today": f"{LIST}?range=all"}
    assert chips("?logStatus=2") == {
        "Time: Today": f"{LIST}?logStatus=2&amp;range=all",
        "Status: Failed": LIST,
    }
    assert chips("?range=all") == {}
    assert chips("?logical_from=2024-05-01T00:00").keys() == {"Logical time from: 2024-05-01 00:00"}


def tabs_of(console: Console, query: str = "") -> list[str]:
    """Return the tabs: the current one in brackets, with their numbers of runs."""
    nav = re.findall(r'class="tabs list-views".*?</nav>', markup_of(console.get(f"/joblog{query}")))[0]
    links = re.findall(
        r'<a href="[^"]+"( aria-current="page")?>([\w ]+?)(?:<span class="n[ a-z]*">([\d,+]+)</span>)?</a>',
        nav,
    )
    return [
        f"[{title.strip()}]" if current else f"{title.strip()} {count}" for current, title, count in links
    ]


def test_the_views_are_tabs_with_their_numbers(
    admin: Console, group_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = add_job(group_id)
    assert tabs_of(admin) == ["[Today]", "Failed today 0", "Not started today 0", "Running now 0"]
    add_log(job_id, group_id)
    add_log(job_id, group_id, handle_code=500)
    add_log(job_id, group_id, handle_code=502)
    add_log(job_id, group_id, trigger_code=500, handle_code=0)
    add_log(job_id, group_id, trigger_code=504, handle_code=0)
    add_log(job_id, group_id, handle_code=500, trigger_time=T0)
    with read_scope() as session:
        job = session.get_one(Job, job_id)
    make_fire(job, state="ACCEPTED")
    make_fire(job, state="PENDING")
    assert tabs_of(admin) == ["[Today]", "Failed today 4", "Not started today 1", "Running now 1"]
    assert tabs_of(admin, "?range=today")[0] == "[Today]"
    assert tabs_of(admin, "?logStatus=7&range=today")[2] == "[Not started today]"
    assert tabs_of(admin, "?range=week")[0] == "Today "
    monkeypatch.setattr(run_views, "COUNT_MAX", 3)
    assert tabs_of(admin)[1] == "Failed today 3+"


def test_the_numbers_are_of_the_runs_that_one_may_see(
    admin: Console, group_id: int, normal_user: Callable[..., Console]
) -> None:
    own = add_group("own-app", "Own")
    norman = normal_user(own, rights={own: frozenset({Right.VIEW})})
    for group in (group_id, own, own):
        job_id = add_job(group)
        add_log(job_id, group, handle_code=500)
        with read_scope() as session:
            make_fire(session.get_one(Job, job_id), state="ACCEPTED")
    assert tabs_of(norman) == ["[Today]", "Failed today 2", "Not started today 0", "Running now 2"]
    assert tabs_of(admin)[1] == "Failed today 3"


def test_runs_of_other_days_stand_below_their_date(admin: Console, group_id: int) -> None:
    submit(admin, "/account/settings", language="en", time_zone="UTC")
    job_id, at_ms = add_job(group_id), now_ms()
    add_log(job_id, group_id, trigger_time=at_ms)
    add_log(job_id, group_id, trigger_time=at_ms)
    assert 'data-part="day-' not in admin.get("/joblog?range=all").text, "all are of today"
    add_log(job_id, group_id, trigger_time=at_ms - 86_400_000)
    add_log(job_id, group_id, trigger_time=T0)
    page = admin.get("/joblog?range=all")
    today, yesterday = (
        datetime.fromtimestamp(ms / 1_000, UTC).date().isoformat() for ms in (at_ms, at_ms - 86_400_000)
    )
    heads = re.findall(r'<tr class="day" data-part="day-([\d-]+)"', page.text)
    assert heads == [today, yesterday, "2024-05-01"]
    assert f"Today {today}" in text_of(page)
    assert f"Yesterday {yesterday}" in text_of(page)
