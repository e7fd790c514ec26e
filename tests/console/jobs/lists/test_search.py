"""Search, views and marks of the job list: typed filters, hints, states by the last run, jobs from code."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.models.job import Job
from app.services.report import failing
from app.store.runs import failing as failing_runs
from tests.console.pages import markup_of, submit, text_of
from tests.services.code.steps import CLOSE, NIGHTLY, apply
from tests.support.console import Console, add_group, add_job
from tests.support.factories import T0, make_fire, make_log, only_row

LIST = "/xxl-job-admin/jobinfo"


def job_of(job_id: int) -> Job:
    with read_scope() as session:
        return session.get_one(Job, job_id)


def shown(console: Console, query: str) -> list[int]:
    """Return the ids of the listed jobs."""
    page = console.get(f"/jobinfo?{query}").text
    return [int(number) for number in re.findall(r'name="id" value="(\d+)"', page)]


def tabs_of(console: Console) -> dict[str, str]:
    """Return title -> number of jobs of the counted tabs."""
    nav = re.findall(r'class="tabs list-views".*?</nav>', markup_of(console.get("/jobinfo")))[0]
    return dict(re.findall(r'>([\w ]+)<span class="n[ a-z]*">([\d+]+)</span>', nav))


def jobs_with_runs(group_id: int) -> dict[str, int]:
    """Store jobs with different last runs; return their ids."""
    ids = {name: add_job(group_id) for name in ("failing", "recovered", "running", "sent", "never")}
    make_log(job_of(ids["failing"]), handle_code=200, trigger_time=T0 - 5_000)
    for age_ms in (2_000, 1_000):
        make_log(job_of(ids["failing"]), handle_code=500, trigger_time=T0 - age_ms)
    make_log(job_of(ids["recovered"]), handle_code=500, trigger_time=T0 - 3_000)
    make_log(job_of(ids["recovered"]), handle_code=200, trigger_time=T0 - 500)
    make_log(job_of(ids["running"]))
    make_log(job_of(ids["sent"]), handle_code=200)
    make_fire(job_of(ids["sent"]), state="ACCEPTED")
    return ids


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("tag:nightly", "tag=nightly"),
        ("owner:ann handler:demo", "executorHandler=demo&author=ann"),
        ("status:off", "triggerStatus=0"),
        ("schedule: On", "triggerStatus=1"),
        ("last:failing payout", "q=payout&last=failing"),
        ("last:never ran", "q=ran&last=never"),
        ("last:never-ran", "last=never"),
        ('code:"managed by code"', "code=managed"),
        ("code:drifted", "code=drifted"),
        ("executor:orders-app", "jobGroup={group}"),
        ("EXECUTOR:order", "jobGroup={group}"),
        ('appname:"Orders EU"', "jobGroup={group}"),
    ],
)
def test_typed_filters_become_parameters(admin: Console, text: str, query: str) -> None:
    group_id = add_group("orders-app", "Orders EU")
    answer = admin.get(f"/jobinfo?page=2&q={quote(text)}")
    assert answer.status_code == 302
    address, _mark, parameters = answer.headers["Location"].partition("?")
    assert address == LIST
    assert set(parameters.split("&")) == set(query.format(group=group_id).split("&"))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("foo:bar", "There is no filter “foo:”"),
        ("http://host/x", "There is no filter “http:”"),
        ("tag:", "Enter a value after “tag:”."),
        ("last:red", "“last:” can be one of: failing, running, never-ran."),
        ("executor:none", "No executor is called “none”."),
        ("executor:sample", "Several executors match “sample”: Sample one, Sample two."),
    ],
)
def test_what_cannot_be_meant_is_a_hint_and_no_empty_list(admin: Console, text: str, hint: str) -> None:
    job_id = add_job(add_group("sample-one", "Sample one"))
    add_group("sample-two", "Sample two")
    page = admin.get(f"/jobinfo?q={quote(text)}")
    assert hint in text_of(page)
    assert f'name="id" value="{job_id}"' in page.text
    assert f'value="{text}"' in page.text, "it can be corrected"


def test_an_executor_that_one_may_not_see_is_not_named(normal_user: Callable[..., Console]) -> None:
    own = add_group()
    add_group("hidden-app", "Hidden")
    console = normal_user(own, rights={own: frozenset({Right.VIEW})})
    assert "No executor is called “hidden”." in text_of(console.get("/jobinfo?q=executor:hidden"))


def test_the_text_matches_description_handler_owner_tag_and_id(admin: Console) -> None:
    group_id = add_group()
    first = add_job(group_id, job_desc="Close 100% of books", author="lina", tags=("Nightly",))
    second = add_job(group_id, job_desc="Pay", executor_handler="closeHandler", author="marco")
    assert shown(admin, "q=close") == [second, first]
    assert shown(admin, "q=LINA") == shown(admin, "q=night") == shown(admin, f"q={first}") == [first]
    assert shown(admin, "q=close+marco") == [second], "each word has to match"
    assert shown(admin, "q=%22100%25+of%22") == [first], "a text in quotes is one word"
    assert shown(admin, "q=close+nothing") == shown(admin, "q=%25_") == []
    assert len(shown(admin, "q=%00")) == 0


def test_the_former_parameters_are_chips_that_can_be_removed(admin: Console) -> None:
    group_id = add_group()
    add_job(group_id, author="ann", start=True)
    page = markup_of(admin.get(f"/jobinfo?jobGroup={group_id}&triggerStatus=1&author=ann&last=never"))
    assert f'<a class="chip" href="{LIST}?jobGroup={group_id}&amp;triggerStatus=1&amp;last=never">' in page
    for chip in ("Executor: <b>Sample</b>", "Schedule: <b>On</b>", "Owner: <b>ann</b>"):
        assert chip.replace(" <b>", "<b>") in page
    assert "Last run:<b>Never ran</b>" in page
    assert len(shown(admin, "last=odd&code=odd&triggerStatus=x")) == 1, "unknown values are no filter"


def test_jobs_are_filtered_by_their_last_run(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = jobs_with_runs(add_group())
    assert shown(admin, "last=failing") == [ids["failing"]]
    assert shown(admin, "last=running") == [ids["sent"], ids["running"]]
    assert shown(admin, "last=never") == [ids["never"]]
    assert tabs_of(admin) == {"All": "5", "Failing": "1", "Running": "2", "Mine": "0", "Favourites": "0"}
    monkeypatch.setattr(failing_runs, "SEARCHED_MAX", 1)
    monkeypatch.setattr(failing, "_last_failures", {})
    assert shown(admin, "last=failing") == [ids["failing"]], "found by its own runs"
    assert tabs_of(admin)["Failing"] == "1"


def row_of(console: Console, job_id: int) -> str:
    page = markup_of(console.get("/jobinfo"))
    return page.partition(f'data-part="job-{job_id}"')[2].partition("</tr>")[0]


def test_failures_in_a_row_are_counted(admin: Console) -> None:
    ids = jobs_with_runs(add_group())
    row = row_of(admin, ids["failing"])
    assert 'Failed</span><span class="times">2×<span class="since">' in row
    assert 'role="img" aria-label="Failed"' in row
    assert "2 failures in a row. Last success: #1, " in row
    assert 'class="times"' not in row_of(admin, ids["recovered"])


def test_failures_are_counted_back_to_the_last_success(admin: Console) -> None:
    group_id = add_group()
    often, always, once = (job_of(add_job(group_id)) for _ in range(3))
    make_log(often, handle_code=200, trigger_time=T0 - 60_000)
    for number in range(30):
        make_log(often, handle_code=500, trigger_time=T0 - number * 1_000)
    for number in range(failing.LOOKED_AT + 1):
        make_log(always, handle_code=500, trigger_time=T0 - number * 1_000)
    make_log(once, handle_code=500, trigger_time=T0)
    assert 'class="times">30×' in row_of(admin, often.id)
    assert 'class="times">&gt;100×' in row_of(admin, always.id)
    assert "More than 100 failures in a row." in row_of(admin, always.id)
    assert "1 failure. It has never succeeded." in row_of(admin, once.id)


def test_a_job_stays_failing_while_it_is_tried_again(admin: Console) -> None:
    ids = jobs_with_runs(add_group())
    make_log(job_of(ids["failing"]), trigger_code=200, trigger_time=T0)
    assert shown(admin, "last=failing") == [ids["failing"]]
    assert shown(admin, "sort=-last")[0] == ids["failing"]
    assert tabs_of(admin)["Failing"] == "1"
    row = row_of(admin, ids["failing"])
    assert 'role="img" aria-label="Failed"' in row
    assert 'Running</span><span class="times">Failed 2×' in row
    page = text_of(admin.get(f"/jobinfo/{ids['failing']}"))
    assert "2 failures in a row." in page, "as on its page"


def test_states_and_counts_keep_to_visible_groups(normal_user: Callable[..., Console]) -> None:
    own, foreign = add_group("own-app", "Own"), add_group("other-app", "Other")
    jobs_with_runs(foreign)
    ids = jobs_with_runs(own)
    console = normal_user(own, rights={own: frozenset({Right.VIEW})})
    assert shown(console, "last=failing") == [ids["failing"]]
    assert shown(console, "last=running") == [ids["sent"], ids["running"]]
    assert tabs_of(console)["All"] == "5"
    assert tabs_of(console)["Failing"] == "1"


def test_jobs_from_code_are_marked_filtered_and_counted(admin: Console) -> None:
    assert "Drifted" not in tabs_of(admin), "nothing is managed by code"
    document: dict[str, Any] = {
        "groups": {"books": {"title": "Books"}},
        "jobs": {"books/close": {**CLOSE, **NIGHTLY, "param": "first"}},
    }
    apply(document)
    job_id = only_row(Job).id
    other_id = add_job(add_group())
    assert shown(admin, "code=managed") == [job_id]
    assert shown(admin, "code=drifted") == []
    assert tabs_of(admin)["Drifted"] == "0"
    assert 'aria-label="Managed by code"' in admin.get("/jobinfo").text
    with session_scope() as session:
        session.get_one(Job, job_id).executor_param = "second"
    assert shown(admin, "code=drifted") == [job_id]
    assert tabs_of(admin)["Drifted"] == "1"
    page = admin.get("/jobinfo").text
    assert page.count('aria-label="Differs from its code"') == 1
    assert "Managed by code" not in page.partition(f'data-part="job-{other_id}"')[2].partition("</tr>")[0]


def test_bulk_changes_and_exports_keep_the_search(admin: Console) -> None:
    ids = jobs_with_runs(add_group())
    page = text_of(admin.get("/jobinfo/bulk/stop?matching=1&last=failing"))
    assert "Switch off the schedule of 1 job?" in page
    assert admin.get("/jobinfo/export?last=never").text.count("handler:") == 1
    assert f'name="id" value="{ids["failing"]}"' in admin.get("/jobinfo?last=failing").text


def test_jobs_are_grouped_by_executor_if_the_reader_chose_that(admin: Console) -> None:
    orders, books = (
        add_group("orders-app", "Orders", "http://127.0.0.1:9999"),
        add_group("books-app", "Books"),
    )
    ids = [
        add_job(group_id, job_desc=name) for group_id, name in ((orders, "b"), (books, "c"), (orders, "a"))
    ]
    assert 'data-part="group-' not in admin.get("/jobinfo").text
    submit(admin, "/preferences", group="executor")
    page = admin.get("/jobinfo")
    assert re.findall(r'data-part="(group|job)-(\d+)"', page.text) == [
        ("group", str(books)),
        ("job", str(ids[1])),
        ("group", str(orders)),
        ("job", str(ids[2])),
        ("job", str(ids[0])),
    ]
    assert "Orders 2 1 online" in text_of(page)
    assert "Books 1 offline" in text_of(page)
    assert shown(admin, "sort=desc") == [ids[1], ids[2], ids[0]]
    assert shown(admin, "sort=-last") == [ids[1], ids[2], ids[0]]
    assert "Orders 1 1 online" in text_of(admin.get("/jobinfo?jobDesc=a")), "of those that match"
    submit(admin, "/preferences", group="none")
    assert shown(admin, "") == ids[::-1]


def test_a_row_has_two_tags_and_the_number_of_the_others(admin: Console) -> None:
    group_id = add_group()
    add_job(group_id, tags=("a", "b", "<c>", "d"))
    two = add_job(group_id, tags=("a", "b"))
    first, second = (markup_of(admin.get(f"/jobinfo?q={number}")) for number in (two - 1, two))
    assert re.findall(r'class="chip"[^>]*>([^<]*)<', first.partition('class="tags"')[2]) == [
        "&lt;c&gt;",
        "a",
        "+2",
    ]
    assert 'title="b, d">+2' in first
    assert re.findall(r'class="chip"[^>]*>([^<]*)<', second.partition('class="tags"')[2]) == ["a", "b"]
