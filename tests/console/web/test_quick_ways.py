"""Shortcuts: undo in the toast, a first job in three fields, recent parameters."""

import re
from collections.abc import Callable

import pytest

from app.clock import now_ms
from app.database.engine import read_scope
from app.domain.access.permissions import Right
from app.models.job import Job
from app.models.log import JobLog
from tests.console.pages import markup_of, path_after, submit, text_of
from tests.support.console import Console, add_group, add_job
from tests.support.factories import save

#: independent of the database
pytestmark = pytest.mark.databases("sqlite")


def test_a_switched_schedule_can_be_switched_back_at_once(admin: Console) -> None:
    job_id = add_job(add_group())
    after = path_after(submit(admin, f"/jobinfo/{job_id}/start", next="/xxl-job-admin/jobinfo"))
    page = admin.get(after)
    assert f'action="/xxl-job-admin/jobinfo/{job_id}/stop"' in page.text
    assert "Undo" in text_of(page)


def test_a_page_with_an_invalid_referrer_returns_to_the_list(admin: Console) -> None:
    page = admin.get(f"/jobinfo/{add_job(add_group())}/delete", headers={"Referer": "http://["})
    assert 'name="next" value="/xxl-job-admin/jobinfo"' in page.text


def test_a_link_from_elsewhere_offers_no_undo(admin: Console, normal_user: Callable[..., Console]) -> None:
    job_id = add_job(group_id := add_group())
    after = path_after(submit(admin, f"/jobinfo/{job_id}/start", next="/xxl-job-admin/jobinfo"))
    assert "Undo" not in normal_user(group_id).get(after).text
    for mark in ("", "&mark=", "&mark=0123456789abcdef", "&mark=ä"):
        assert "Undo" not in admin.get(f"/jobinfo?done=started&at={job_id}{mark}").text


def test_the_first_job_needs_three_fields(admin: Console) -> None:
    group_id = add_group()
    assert 'name="quick"' in admin.get("/jobinfo").text
    made = submit(
        admin,
        "/jobinfo/new",
        quick=1,
        job_group=group_id,
        executor_handler="demoJobHandler",
        job_desc="first",
    )
    path_after(made)
    with read_scope() as session:
        job = session.query(Job).one()
    assert (job.job_desc, job.executor_handler, job.author, job.schedule_type) == (
        "first",
        "demoJobHandler",
        "admin",
        "NONE",
    )
    assert (job.executor_route_strategy, job.executor_block_strategy, job.misfire_strategy) == (
        "FIRST",
        "SERIAL_EXECUTION",
        "DO_NOTHING",
    )
    refused = submit(
        admin, "/jobinfo/new", quick=1, job_group=group_id, executor_handler="", job_desc="second"
    )
    assert refused.status_code == 400
    assert 'value="second"' in refused.text
    assert 'name="quick"' not in admin.get("/jobinfo").text


def test_recent_manual_parameters_are_offered(admin: Console, normal_user: Callable[..., Console]) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    at_ms = now_ms() // 1000 * 1000
    for number, (param, kind) in enumerate(
        [("day=1", "MANUAL"), ("day=2", "MANUAL"), ("day=1", "MANUAL"), ("day=3", "CRON"), ("", "MANUAL")]
    ):
        save(
            JobLog(
                job_group=group_id,
                job_id=job_id,
                executor_param=param,
                trigger_type=kind,
                trigger_time=at_ms + number * 1000,
            )
        )
    page = markup_of(admin.get(f"/jobinfo/{job_id}/run"))
    offered = re.findall(r'run\?log=(\d+)" data-fill="#executor_param" data-value="([^"]*)"', page)
    assert [param for _, param in offered] == ["day=1", "day=2"]
    assert ">day=1</textarea>" in admin.get(f"/jobinfo/{job_id}/run?log={offered[0][0]}").text.replace(
        "\r\n", ""
    ).replace("\n", "")


def test_columns_and_row_height_are_stored_in_the_browser(admin: Console) -> None:
    add_job(add_group())
    assert re.findall("without-[a-z]+", admin.get("/jobinfo").text) == ["without-conf", "without-mode"]
    columns = ["schedule", "mode", "status", "next", "last", "nonsense"]
    submit(admin, "/preferences", table="jobs", column=columns, rows="dense", next="/xxl-job-admin/jobinfo")
    page = admin.get("/jobinfo").text
    assert re.search('class="grid cards[^"]* without-owner"', page)
    assert ' class=" dense"' in page
    submit(admin, "/preferences", table="nonsense", column=[], rows="nonsense", next="/xxl-job-admin/jobinfo")
    assert "without-owner" in admin.get("/jobinfo").text
    submit(admin, "/preferences", rows="comfortable", next="/xxl-job-admin/jobinfo")
    page = admin.get("/jobinfo").text
    assert "without-owner" in page
    assert " dense" not in page.split(">")[1]


def test_code_is_run_in_the_editor_only_with_the_right(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    job_id = add_job(group_id, glue_type="GLUE_SHELL", executor_handler="", glue_source="echo one")
    assert "data-try" in admin.get(f"/jobcode?jobId={job_id}").text
    author = normal_user(group_id, rights={group_id: frozenset({Right.VIEW, Right.EDIT, Right.GLUE})})
    assert "data-try" not in author.get(f"/jobcode?jobId={job_id}").text


def test_code_is_run_in_the_editor_with_every_line_of_the_parameter(admin: Console) -> None:
    parameter = "\nregion=eu\nlimit=500"
    job_id = add_job(
        add_group(), glue_type="GLUE_SHELL", executor_handler="", glue_source="echo", executor_param=parameter
    )
    field = re.search(
        r'<textarea[^>]* id="try-param"[^>]*>(.*?)</textarea>',
        admin.get(f"/jobcode?jobId={job_id}").text,
        re.DOTALL,
    )
    assert field is not None
    assert field.group(1) == "\n" + parameter  # browsers drop the first line break
