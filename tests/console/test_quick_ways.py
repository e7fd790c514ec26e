"""What spares a step: taking a switch back from the toast, a first job in three fields, parameters used before."""

from collections.abc import Callable

from app.db import read_scope
from app.models.job import Job
from tests.console.conftest import Console, add_group, add_job
from tests.console.pages import path_after, submit, text_of


def test_a_switched_schedule_can_be_switched_back_at_once(admin: Console) -> None:
    job_id = add_job(add_group())
    after = path_after(submit(admin, f"/jobinfo/{job_id}/start", next="/xxl-job-admin/jobinfo"))
    page = admin.get(after)
    assert f'action="/xxl-job-admin/jobinfo/{job_id}/stop"' in page.text
    assert "Undo" in text_of(page)


def test_a_link_from_elsewhere_offers_no_undo(admin: Console, normal_user: Callable[..., Console]) -> None:
    job_id = add_job(group_id := add_group())
    after = path_after(submit(admin, f"/jobinfo/{job_id}/start", next="/xxl-job-admin/jobinfo"))
    assert "Undo" not in normal_user(group_id).get(after).text
    for mark in ("", "&mark=", "&mark=0123456789abcdef", "&mark=ä"):
        assert "Undo" not in admin.get(f"/jobinfo?done=started&at={job_id}{mark}").text


def test_the_first_job_takes_three_fields(admin: Console) -> None:
    group_id = add_group()
    assert 'name="quick"' in admin.get("/jobinfo").text
    made = submit(admin, "/jobinfo/new", quick=1, job_group=group_id, executor_handler="demoJobHandler", job_desc="first")
    path_after(made)
    with read_scope() as session:
        job = session.query(Job).one()
    assert (job.job_desc, job.executor_handler, job.author, job.schedule_type) == ("first", "demoJobHandler", "admin", "NONE")
    assert (job.executor_route_strategy, job.executor_block_strategy, job.misfire_strategy) == ("FIRST", "SERIAL_EXECUTION", "DO_NOTHING")
    refused = submit(admin, "/jobinfo/new", quick=1, job_group=group_id, executor_handler="", job_desc="second")
    assert refused.status_code == 400
    assert 'value="second"' in refused.text
    assert 'name="quick"' not in admin.get("/jobinfo").text
