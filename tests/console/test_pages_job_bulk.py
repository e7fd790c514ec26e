"""Several jobs at once from the list, killing from a job's menu, and the count of runs under way."""

from collections.abc import Callable, Iterator

import pytest

from app.clock import now_ms
from app.db import read_scope, session_scope
from app.domain.permissions import Right
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from tests.browser.serving import stub_executor
from tests.console.conftest import Console, add_group, add_job
from tests.console.pages import is_at_login, submit, text_of

ACTS = ("start", "stop", "move", "delete")


@pytest.fixture
def executor() -> Iterator[str]:
    with stub_executor() as address:
        yield address


def ticked(*job_ids: int) -> str:
    return "?" + "&".join(f"id={job_id}" for job_id in job_ids)


def jobs_by_id() -> dict[int, Job]:
    with read_scope() as session:
        return {job.id: job for job in session.query(Job)}


def actions() -> list[str]:
    with read_scope() as session:
        return [entry.action for entry in session.query(AuditEntry).order_by(AuditEntry.id)]


def running_log(group_id: int, job_id: int, address: str) -> int:
    with session_scope() as session:
        log = JobLog(job_group=group_id, job_id=job_id, executor_address=address, trigger_time=now_ms(), trigger_code=200)
        session.add(log)
        session.flush()
        session.add(
            Fire(job_id=job_id, fire_key=f"manual:{log.id}", due_time=now_ms(), trigger_type="MANUAL", state="ACCEPTED", log_id=log.id)
        )
        return log.id


def test_without_a_login_nothing_is_asked(console: Console) -> None:
    for act in ACTS:
        assert is_at_login(console.get(f"/jobinfo/bulk/{act}?id=1"))
    assert is_at_login(console.get("/jobinfo/running?id=1"))


def test_the_list_has_a_tick_a_row_and_works_without_scripts(admin: Console) -> None:
    job_id = add_job(add_group())
    page = admin.get("/jobinfo").text
    assert f'form="bulk" name="id" value="{job_id}"' in page
    assert 'formaction="/xxl-job-admin/jobinfo/bulk/delete"' in page


def test_the_question_names_the_count_and_the_first_jobs(admin: Console) -> None:
    group_id = add_group()
    ids = [add_job(group_id, job_desc=f"job <{number}>") for number in range(7)]
    asked = admin.get(f"/jobinfo/bulk/delete{ticked(*ids)}")
    assert "Delete 7 jobs?" in text_of(asked)
    assert "job &lt;4&gt;" in asked.text
    assert "job &lt;5&gt;" not in asked.text
    assert "and 2 more" in text_of(asked)
    assert len(jobs_by_id()) == 7


def test_jobs_are_started_and_stopped_and_each_is_told(admin: Console) -> None:
    group_id = add_group()
    first, second, idle = add_job(group_id), add_job(group_id), add_job(group_id, schedule_type="NONE", schedule_conf="")
    path = f"/jobinfo/bulk/start{ticked(first, second, idle)}"
    assert "cannot be started: 1." in text_of(admin.get(path))
    told = text_of(submit(admin, path))
    assert "2 of 3 jobs: started." in told
    assert "A job without a schedule cannot be started" in told
    assert {job_id: job.trigger_status for job_id, job in jobs_by_id().items()} == {first: 1, second: 1, idle: 0}
    assert "2 of 2 jobs: stopped." in text_of(submit(admin, f"/jobinfo/bulk/stop{ticked(first, second)}"))
    assert actions().count("job.start") == actions().count("job.stop") == 2


def test_jobs_are_deleted(admin: Console) -> None:
    group_id = add_group()
    gone, kept = add_job(group_id), add_job(group_id)
    assert submit(admin, f"/jobinfo/bulk/delete{ticked(gone)}").status_code == 200
    assert list(jobs_by_id()) == [kept]
    assert actions()[-1] == "job.remove"


def test_jobs_are_moved_to_a_group_one_may_edit(admin: Console, normal_user: Callable[..., Console]) -> None:
    own, other, foreign = add_group(), add_group("other-app", "Other"), add_group("foreign-app", "Foreign")
    job_id = add_job(own)
    norman = normal_user(own, other)
    path = f"/jobinfo/bulk/move{ticked(job_id)}"
    offered = norman.get(path).text
    assert "other-app" in offered
    assert "foreign-app" not in offered
    assert "Choose an executor" in text_of(submit(norman, path, job_group=foreign))
    assert "1 of 1 jobs: moved." in text_of(submit(norman, path, job_group=other))
    assert jobs_by_id()[job_id].job_group == other


def test_code_is_moved_only_where_one_may_write_code(admin: Console, normal_user: Callable[..., Console]) -> None:
    own, other = add_group(), add_group("other-app", "Other")
    job_id = add_job(own, glue_type="GLUE_SHELL", executor_handler="", glue_source="echo one")
    norman = normal_user(own, other, rights={other: frozenset({Right.EDIT, Right.OPERATE})})
    assert "permission denied" in text_of(submit(norman, f"/jobinfo/bulk/move{ticked(job_id)}", job_group=other))
    assert jobs_by_id()[job_id].job_group == own


def test_one_foreign_job_makes_the_whole_request_not_found(admin: Console, normal_user: Callable[..., Console]) -> None:
    own, foreign = add_group(), add_group("other-app", "Other")
    mine, theirs = add_job(own), add_job(foreign)
    norman = normal_user(own)
    for act in ACTS:
        path = f"/jobinfo/bulk/{act}{ticked(mine, theirs)}"
        assert norman.get(path).status_code == submit(norman, path, job_group=own).status_code == 404
        assert norman.get(f"/jobinfo/bulk/{act}{ticked(mine, 2147483647)}").status_code == 404
    assert set(jobs_by_id()) == {mine, theirs}


def test_the_right_of_the_act_is_needed_on_every_job(admin: Console, normal_user: Callable[..., Console]) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    operator = normal_user(group_id, rights={group_id: frozenset({Right.OPERATE})})
    assert submit(operator, f"/jobinfo/bulk/start{ticked(job_id)}").status_code == 200
    for act in ("move", "delete"):
        assert submit(operator, f"/jobinfo/bulk/{act}{ticked(job_id)}").status_code == 403


def test_no_tick_and_no_token_are_refused(admin: Console) -> None:
    job_id = add_job(add_group())
    assert admin.get("/jobinfo/bulk/start").status_code == 400
    assert admin.get(f"/jobinfo/bulk/explode{ticked(job_id)}").status_code == 404
    assert admin.post(f"/jobinfo/bulk/start{ticked(job_id)}").status_code == 403


def test_runs_under_way_are_counted_for_jobs_one_may_see(admin: Console, normal_user: Callable[..., Console]) -> None:
    own, foreign = add_group(), add_group("other-app", "Other")
    mine, theirs = add_job(own), add_job(foreign)
    running_log(own, mine, "http://127.0.0.1:1")
    running_log(foreign, theirs, "http://127.0.0.1:1")
    assert normal_user(own).get(f"/jobinfo/running{ticked(mine, theirs)}").get_json() == {str(mine): 1}
    assert "1 running now" in text_of(admin.get("/jobinfo"))


def test_the_run_under_way_is_killed_from_the_job(admin: Console, executor: str) -> None:
    group_id = add_group(addresses=executor)
    job_id = add_job(group_id)
    assert submit(admin, f"/jobinfo/{job_id}/kill").status_code == 409
    log_id = running_log(group_id, job_id, executor)
    assert f"/jobinfo/{job_id}/kill" in admin.get("/jobinfo").text
    assert f"Run {log_id} on {executor}" in text_of(admin.get(f"/jobinfo/{job_id}/kill"))
    assert submit(admin, f"/jobinfo/{job_id}/kill").status_code == 303
    with read_scope() as session:
        log = session.get(JobLog, log_id)
        assert log is not None
        assert log.handle_code == 500
