"""Job list: equal parts of rows are cached, each row shows its own job and escapes text from users."""

import re
from collections.abc import Callable

import pytest

from app.console.ui import filters
from app.console.ui.lists.columns import JOBS
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.models.group import Group
from app.models.job import Job
from tests.support.console import Console, add_group, add_job
from tests.support.factories import T0, make_log

ODD = "<script>alert(1)</script>&\"'%d %(id)s"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#34;&#39;%d %(id)s"
#: placeholder of ids in cached parts; in a user's text it stays unchanged
STAND_IN = "2000000011"


def job_of(job_id: int) -> Job:
    with read_scope() as session:
        return session.get_one(Job, job_id)


def rows_of(page: str) -> dict[int, str]:
    """Return job id -> the HTML of its row."""
    rows = re.findall(r'<tr data-part="job-.*?</tr>', page, re.DOTALL)
    return {int(re.findall(r'name="id" value="(\d+)"', row)[0]): row for row in rows}


def menu_of(row: str) -> set[str]:
    """Return the links of a row's menu, without the id."""
    menu = row.partition('popover aria-label="')[2]
    return {re.sub(r"\d+", "#", path) for path in re.findall(r'href="/xxl-job-admin/([^"]+)"', menu)}


def test_cells_and_heads_are_in_the_order_of_the_columns(admin: Console) -> None:
    job_id = add_job(add_group())
    page = admin.get("/jobinfo").text
    names = [column.name for column in JOBS.cells]
    assert re.findall(r'<td class="(?:col-)?([a-z]+)', rows_of(page)[job_id]) == names
    assert re.findall(r'<th\b[^>]*class="(?:col-)?([a-z]+)', page) == names


def test_user_text_is_escaped_in_every_row(admin: Console) -> None:
    tag = "<script>&\"'"
    typed = {"job_desc": ODD, "author": ODD[:40], "executor_handler": ODD, "tags": (tag, STAND_IN)}
    group_id = add_group(addresses="http://127.0.0.1:9999")
    # the second of two equal rows is made of cached parts
    ids = [add_job(group_id, **typed) for _row in range(2)]
    with session_scope() as session:
        session.get_one(Group, group_id).title = "<script>a</script>"
        for job_id in ids:
            session.get_one(Job, job_id).schedule_conf = ODD
    for job_id in ids:
        make_log(job_of(job_id), handle_code=200, handle_time=T0)
    page = admin.get("/jobinfo").text
    assert "<script>a" not in page
    assert "<script>&" not in page
    for row in rows_of(page).values():
        assert row.count(ESCAPED) >= 3  # description, schedule, handler
        assert ESCAPED[:60] in row.partition('class="col-owner"')[2]
        assert "&lt;script&gt;&amp;&#34;&#39;</a>" in row
        assert 'tag=%3Cscript%3E%26%22%27"' in row
        assert f'tag={STAND_IN}" title="{STAND_IN}">{STAND_IN}</a>' in row
        assert "&lt;script&gt;a&lt;/script&gt;" in row


def test_each_row_has_its_own_id_in_all_links(admin: Console) -> None:
    group_id = add_group(addresses="http://127.0.0.1:9999")
    ids = [add_job(group_id) for _row in range(3)]
    rows = rows_of(admin.get("/jobinfo").text)
    assert sorted(rows) == ids
    for job_id, row in rows.items():
        named = re.findall(
            r"/jobinfo/(\d+)|jobId=(\d+)|job-menu-(\d+)|job (\d+)\"|data-switch=\"(\d+)\"", row
        )
        assert len(named) > 15
        assert {"".join(matches) for matches in named} == {str(job_id)}


def test_the_menu_of_a_row_depends_on_the_job_and_the_users_rights(
    normal_user: Callable[..., Console],
) -> None:
    all_rights, view_only = add_group(), add_group("other-app")
    shell = {"glue_type": "GLUE_SHELL", "glue_source": "echo"}
    ids = {
        "on": add_job(all_rights, start=True),
        "off": add_job(all_rights),
        "by hand": add_job(all_rights, schedule_type="NONE", schedule_conf="", **shell),
        "running": add_job(all_rights),
        "read only": add_job(view_only, **shell),
    }
    make_log(job_of(ids["running"]))
    console = normal_user(all_rights, view_only, rights={view_only: frozenset({Right.VIEW})})
    rows = rows_of(console.get("/jobinfo").text)
    menus = {name: menu_of(rows[job_id]) for name, job_id in ids.items()}
    view_links = {"joblog?jobId=#", "jobinfo/#/nodes", "jobinfo/#/graph"}
    change = {f"jobinfo/#/{act}" for act in ("run", "mute", "edit", "delete", "copy")}
    change |= {"blackouts/new?job=#", "backfills/new?job=#"}
    times = {"jobinfo/#/next-times"}
    assert menus == {
        "on": view_links | change | times,
        "off": view_links | change | times,
        "by hand": view_links | change | {"jobcode?jobId=#"},
        "running": view_links | change | times | {"jobinfo/#/kill"},
        "read only": view_links | times,
    }
    acts = {
        name: re.findall(r'formaction="[^"]*/(start|stop)"', rows[job_id]) for name, job_id in ids.items()
    }
    # the switch, and the entry of the menu
    assert acts == {
        "on": ["stop"] * 2,
        "off": ["start"] * 2,
        "by hand": [],
        "running": ["start"] * 2,
        "read only": [],
    }


def test_only_rows_that_changed_are_sent_to_a_live_list(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = add_group()
    running, idle = add_job(group_id), add_job(group_id)
    make_log(job_of(running))
    page = admin.get("/jobinfo").text
    held = {"X-Parts": "".join(re.findall(r'data-hash="([^"]+)"', page))}
    # a run in progress gets older, which is no change
    monkeypatch.setattr(filters, "now_ms", lambda: T0 + 3_600_000)
    assert admin.get("/jobinfo", headers=held).status_code == 204
    with session_scope() as session:
        session.get_one(Job, idle).trigger_status = 1
    assert set(admin.get("/jobinfo", headers=held).get_json()["parts"]) == {f"job-{idle}"}


def test_a_live_list_fills_and_empties(admin: Console) -> None:
    job_id, path = add_job(add_group()), "/jobinfo?triggerStatus=1"
    for status in (1, 0):
        held = {"X-Parts": "".join(re.findall(r'data-hash="([^"]+)"', admin.get(path).text))}
        assert admin.get(path, headers=held).status_code == 204
        with session_scope() as session:
            session.get_one(Job, job_id).trigger_status = status
        assert "list" in admin.get(path, headers=held).get_json()["parts"]
