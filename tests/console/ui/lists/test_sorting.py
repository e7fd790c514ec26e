"""Sorted lists: column headings as links; the order is kept with filters, pages, views and exports."""

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import quote

import pytest

from app.console.ui.lists import sorting
from app.console.ui.lists.columns import ColumnTable
from app.domain.access.permissions import Right
from app.models.job import Job
from app.store.accounts import audit, users
from app.store.executors import listing as group_lists
from app.store.jobs import listing as job_lists
from app.store.runs.listing import OLDEST_FIRST
from tests.console.pages import markup_of, submit, unnamed_path_after
from tests.support.console import CONTEXT, Console, add_group, add_job
from tests.support.factories import T0, make_log, only_row

# the order on each database is tested in tests/store/base/test_ordering.py
pytestmark = pytest.mark.databases("sqlite")

HEAD = re.compile(r'<th scope="col"(?: class="[^"]*")?(?: aria-sort="(\w+)")?>(.*?)</th>', re.DOTALL)
LINK = re.compile(r'<a class="sort[^"]*" href="([^"]+)">([^<]+)<')
CHOSEN = re.compile(r'<option value="([^"]*)" selected>([^<]+)</option>')


def heads(page: str) -> dict[str, tuple[str, str]]:
    """Return title -> (``aria-sort``, link) of the headings that are links."""
    return {
        title: (state, unescape(href).removeprefix(CONTEXT))
        for state, head in HEAD.findall(page)
        for href, title in LINK.findall(head)
    }


def order_field(page: str) -> str:
    return re.findall(r'<select class="form-select" id="sort".*?</select>', page, re.DOTALL)[0]


def listed(page: str) -> list[str]:
    """Return the ids of the jobs of a page."""
    return re.findall(r'name="id" value="(\d+)"', page)


def sorted_jobs(console: Console) -> list[str]:
    """Store jobs and return their ids by description."""
    group_id = add_group()
    return [str(add_job(group_id, job_desc=text)) for text in ("alpha", "beta", "delta", "gamma")]


def test_a_heading_sorts_then_reverses_and_the_third_click_resets(admin: Console) -> None:
    group_id = add_group()
    delta, alpha = (str(add_job(group_id, job_desc=text)) for text in ("delta", "alpha"))
    address, seen = "/jobinfo?author=ann&length=25&page=1", []
    for _click in range(4):
        page = admin.get(address).text
        state, following = heads(page)["Job description"]
        seen.append((address, state, "".join(listed(page))))
        address = following
    assert seen == [
        ("/jobinfo?author=ann&length=25&page=1", "", alpha + delta),
        ("/jobinfo?author=ann&length=25&sort=desc", "ascending", alpha + delta),
        ("/jobinfo?author=ann&length=25&sort=-desc", "descending", delta + alpha),
        ("/jobinfo?author=ann&length=25", "", alpha + delta),
    ]


def test_the_default_order_is_shown_and_reversed(admin: Console) -> None:
    ids = sorted_jobs(admin)
    page = admin.get("/jobinfo").text
    assert heads(page)["Job ID"] == ("descending", "/jobinfo?sort=id")
    assert CHOSEN.findall(order_field(page)) == [("", "Job ID, descending")]
    page = admin.get("/jobinfo?sort=id").text
    assert (heads(page)["Job ID"], listed(page)) == (("ascending", "/jobinfo"), ids)
    assert [state for state, _href in heads(page).values() if state] == ["ascending"]
    assert heads(admin.get("/jobinfo?sort=-id").text)["Job ID"] == ("descending", "/jobinfo?sort=id"), (
        "named, it equals the default"
    )


@pytest.mark.parametrize(
    ("path", "first_clicks"),
    [
        ("/jobinfo", ["id", "desc", "executor", "mode", "owner", "-status", "next", "-last"]),
        ("/joblog?range=all", ["time"]),
        ("/jobgroup", ["-appname", "title", "registration", "addresses", "-heartbeat"]),
        ("/user", ["-name", "-role", "-state"]),
        ("/user/audit", ["time"]),
    ],
)
def test_each_list_offers_its_columns_and_ignores_others(
    admin: Console, path: str, first_clicks: list[str]
) -> None:
    make_log(_job(admin))
    page = admin.get(path).text
    glue = "&" if "?" in path else "?"
    assert [href for _state, href in heads(page).values()] == [
        f"{path}{glue}sort={text}" for text in first_clicks
    ]
    values = re.findall(r'<option value="([^"]*)"', order_field(page))
    assert len(values) == 2 * len(first_clicks)
    for value in values:
        shown = admin.get(f"{path}{glue}sort={value}").text
        assert [chosen for chosen, _text in CHOSEN.findall(order_field(shown))] == [value]
        assert (
            '<span class="visually-hidden"> ascending</span>' in shown
            or '<span class="visually-hidden"> descending</span>' in shown
        )
    for unknown in ("nothing", "--id", "id,desc", "trigger_msg", "'"):
        shown = admin.get(f"{path}{glue}sort={quote(unknown)}")
        assert shown.status_code == 200
        assert CHOSEN.findall(order_field(shown.text)) == CHOSEN.findall(order_field(page))


def _job(console: Console) -> Job:
    add_job(add_group())
    return only_row(Job)


def test_the_offered_columns_are_those_the_tables_can_sort() -> None:
    known: list[tuple[ColumnTable, set[str]]] = [
        (sorting.JOBS, {*job_lists.ORDERS, job_lists.LAST_RUN}),
        (sorting.LOGS, {OLDEST_FIRST.column}),
        (sorting.GROUPS, set(group_lists.ORDERS)),
        (sorting.USERS, set(users.ORDERS)),
        (sorting.AUDIT, set(audit.ORDERS)),
    ]
    for list_name, names in known:
        assert set(list_name.sortable) == names
        assert list_name.default.column in list_name.sortable


def test_pages_filters_and_sizes_keep_the_order(admin: Console) -> None:
    group_id = add_group()
    ids = [str(add_job(group_id, job_desc=f"job {number:02}", author="ann")) for number in range(12)]
    first, second = (
        admin.get(f"/jobinfo?author=ann&sort=desc&length=10&page={page}").text for page in (1, 2)
    )
    assert listed(first) + listed(second) == ids
    kept = {
        unescape(href) for href in re.findall(r'href="/xxl-job-admin(/jobinfo\?[^"]*sort=desc[^"]*)"', first)
    }
    assert {
        "/jobinfo?author=ann&sort=desc&length=10&page=2",
        "/jobinfo?author=ann&sort=desc&length=25",
        "/jobinfo?sort=desc&length=10",
    } <= kept
    assert CHOSEN.findall(order_field(first)) == [("desc", "Job description, ascending")], (
        "the filter form sends it again"
    )
    for path, chip in (
        ("/joblog?range=week&sort=time", "/joblog?sort=time&amp;range=all"),
        ("/user?username=adm&sort=-role", "/user?sort=-role"),
    ):
        assert f'<a class="chip" href="{CONTEXT}{chip}">' in admin.get(path).text


def test_selecting_all_matches_selects_the_same_jobs_in_any_order(admin: Console) -> None:
    ids = sorted_jobs(admin)
    for order, expected in (("desc", ids), ("-desc", ids[::-1])):
        question = admin.get(f"/jobinfo/bulk/stop?matching=1&author=ann&sort={order}").text
        assert re.findall(r'name="ids" value="([\d,]+)"', question) == [",".join(expected)]
    exported = [admin.get(f"/jobinfo/export?matching=1{order}").get_data() for order in ("", "&sort=-desc")]
    assert exported[0] == exported[1]


def test_a_view_keeps_its_order(admin: Console) -> None:
    ids = sorted_jobs(admin)
    page = admin.get("/jobinfo?sort=desc&page=2").text
    assert 'href="/xxl-job-admin/views/jobs/new?sort=desc" data-dialog' in page
    assert (
        unnamed_path_after(submit(admin, "/views/jobs/new?author=ann&sort=desc", name="By name"))
        == "/jobinfo?author=ann&sort=desc&done=view_saved"
    )
    assert (
        '<a href="/xxl-job-admin/jobinfo?author=ann&amp;sort=desc">By name</a>' in admin.get("/jobinfo").text
    )
    page = admin.get("/jobinfo?author=ann&sort=desc").text
    assert 'sort=desc" aria-current="page">By name</a>' in page
    assert listed(page) == ids


def test_the_runs_are_exported_in_the_order_of_the_list(admin: Console) -> None:
    job = _job(admin)
    old, new = (str(make_log(job, trigger_time=T0 + number * 1_000).id) for number in range(2))
    for query, expected in (("", [new, old]), ("&sort=time", [old, new]), ("&sort=-duration", [new, old])):
        page = markup_of(admin.get(f"/joblog?range=all{query}"))
        assert re.findall(r'<td class="id[^>]*><a href="[^"]+">(\d+)</a>', page) == expected
        (export,) = set(re.findall(r'href="([^"]+runs\.csv[^"]*)"', page))
        table = admin.get(unescape(export).removeprefix(CONTEXT)).get_data(as_text=True)
        assert [line.partition(",")[0] for line in table.splitlines()[1:]] == expected


def test_without_the_heading_the_order_is_shown_above_the_list(admin: Console) -> None:
    sorted_jobs(admin)
    admin.client.set_cookie("xxl_job_columns_jobs", "schedule.last", path=CONTEXT)
    for order, seen in (("next", True), ("-owner", True), ("last", False), ("", False)):
        assert ('<div class="sort-by seen">' in admin.get(f"/jobinfo?sort={order}").text) is seen


def test_a_run_of_an_invisible_group_does_not_move_a_job(normal_user: Callable[..., Console]) -> None:
    visible, foreign = add_group(), add_group("other-app")
    moved, ran = (add_job(visible) for _job in range(2))
    for job_id, group_id, ran_ms in ((moved, foreign, T0 + 9_000), (ran, visible, T0)):
        make_log(only_row(Job, id=job_id), job_group=group_id, trigger_time=ran_ms)
    norman = normal_user(visible, rights={visible: frozenset({Right.VIEW})})
    assert listed(norman.get("/jobinfo?sort=-last").text) == [str(ran), str(moved)]


def test_scripts_get_their_lists_unchanged(admin: Console) -> None:
    make_log(_job(admin))
    for path in ("/jobinfo/pageList", "/joblog/pageList", "/jobgroup/pageList", "/user/pageList"):
        query = {"jobGroup": 0, "jobId": 0, "triggerStatus": -1, "logStatus": -1, "role": -1}
        assert admin.call(path, **query, sort="title") == admin.call(path, **query)
