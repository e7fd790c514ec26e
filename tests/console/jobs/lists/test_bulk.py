"""Bulk changes from the job list, killing from a job's menu, and the count of runs in progress."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import pytest
from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.errors import Conflict
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.task import Task
from app.services.jobs import jobs
from app.services.runs import logs
from app.store.jobs import removal
from tests.browser.serving import stub_executor
from tests.console.pages import is_at_login, path_after, submit, text_of
from tests.console.tasks import result_of, run_tasks
from tests.support.console import Console, add_group, add_job, add_user
from tests.support.factories import all_rows, only_row
from tests.support.statements import statements

ACTS = ("start", "stop", "run", "move", "delete")


@pytest.fixture
def executor() -> Iterator[str]:
    with stub_executor() as address:
        yield address


def change(console: Console, path: str, **fields: Any) -> str:
    """Send the form of a bulk change, do its task and return the text of the result."""
    return text_of(result_of(console, submit(console, path, **fields)))


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
        log = JobLog(
            job_group=group_id,
            job_id=job_id,
            executor_address=address,
            trigger_time=now_ms(),
            trigger_code=200,
        )
        session.add(log)
        session.flush()
        session.add(
            Fire(
                job_id=job_id,
                fire_key=f"manual:{log.id}",
                due_time=now_ms(),
                trigger_type="MANUAL",
                state="ACCEPTED",
                log_id=log.id,
            )
        )
        return log.id


def test_without_a_login_nothing_is_asked(console: Console) -> None:
    for act in ACTS:
        assert is_at_login(console.get(f"/jobinfo/bulk/{act}?id=1"))


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
    assert f"{ids[0]} job <0> Sample" in unescape(text_of(asked))
    assert len(jobs_by_id()) == 7


def test_jobs_are_started_and_stopped_with_a_result_for_each(admin: Console) -> None:
    group_id = add_group()
    first, second, idle = (
        add_job(group_id),
        add_job(group_id),
        add_job(group_id, schedule_type="NONE", schedule_conf=""),
    )
    path = f"/jobinfo/bulk/start{ticked(first, second, idle)}"
    assert "cannot be switched on: 1." in text_of(admin.get(path))
    result = change(admin, path)
    assert "2 of 3 jobs: switched on." in result
    assert "A job without a schedule cannot be switched on" in result
    assert {job_id: job.trigger_status for job_id, job in jobs_by_id().items()} == {
        first: 1,
        second: 1,
        idle: 0,
    }
    assert "2 of 2 jobs: switched off." in change(admin, f"/jobinfo/bulk/stop{ticked(first, second)}")
    assert actions().count("job.start") == actions().count("job.stop") == 2


def test_jobs_are_deleted(admin: Console) -> None:
    group_id = add_group()
    gone, kept = add_job(group_id), add_job(group_id)
    assert "1 of 1 jobs: deleted." in change(admin, f"/jobinfo/bulk/delete{ticked(gone)}")
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
    assert "Choose an executor" in change(norman, path, job_group=foreign)
    assert "1 of 1 jobs: moved." in change(norman, path, job_group=other)
    assert jobs_by_id()[job_id].job_group == other


def test_code_is_moved_only_where_one_may_write_code(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, other = add_group(), add_group("other-app", "Other")
    job_id = add_job(own, glue_type="GLUE_SHELL", executor_handler="", glue_source="echo one")
    norman = normal_user(own, other, rights={other: frozenset({Right.EDIT, Right.OPERATE})})
    assert "permission denied" in change(norman, f"/jobinfo/bulk/move{ticked(job_id)}", job_group=other)
    assert jobs_by_id()[job_id].job_group == own


def test_one_foreign_job_makes_the_whole_request_not_found(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, foreign = add_group(), add_group("other-app", "Other")
    mine, theirs = add_job(own), add_job(foreign)
    norman = normal_user(own)
    for act in ACTS:
        path = f"/jobinfo/bulk/{act}{ticked(mine, theirs)}"
        assert norman.get(path).status_code == submit(norman, path, job_group=own).status_code == 404
        assert norman.get(f"/jobinfo/bulk/{act}{ticked(mine, 2147483647)}").status_code == 404
    run_tasks(norman)
    assert set(jobs_by_id()) == {mine, theirs}


def test_the_right_of_the_act_is_needed_on_every_job(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    operator = normal_user(group_id, rights={group_id: frozenset({Right.OPERATE})})
    assert "1 of 1 jobs: switched on." in change(operator, f"/jobinfo/bulk/start{ticked(job_id)}")
    for act in ("move", "delete"):
        assert submit(operator, f"/jobinfo/bulk/{act}{ticked(job_id)}").status_code == 403


def test_no_tick_and_no_token_are_refused(admin: Console) -> None:
    job_id = add_job(add_group())
    assert admin.get("/jobinfo/bulk/start").status_code == 400
    assert admin.get(f"/jobinfo/bulk/explode{ticked(job_id)}").status_code == 404
    assert admin.post(f"/jobinfo/bulk/start{ticked(job_id)}").status_code == 403


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


def test_runs_are_killed_beside_those_of_an_unreachable_executor(admin: Console, executor: str) -> None:
    unreachable = "http://127.0.0.1:1"
    group_id = add_group(addresses=executor)
    job_id = add_job(group_id)
    addresses = (executor, unreachable, unreachable, executor)
    ids = [running_log(group_id, job_id, address) for address in addresses]
    page = submit(admin, f"/jobinfo/{job_id}/kill")
    assert page.status_code == 502
    assert f"{unreachable}: " in text_of(page)
    assert "Check that the executor is running, then try again." in text_of(page)
    assert "Nothing was changed" not in text_of(page)
    assert [log.handle_code for log in all_rows(JobLog)] == [500, 0, 0, 500]
    left = text_of(admin.get(f"/jobinfo/{job_id}/kill"))
    assert [f"Run {log_id} on" in left for log_id in ids] == [False, True, True, False]


def test_runs_that_another_kill_has_ended_do_not_hold_up_the_others(
    admin: Console, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill ends all runs of a job at its executor, which may report them before it answers."""
    group_id = add_group(addresses=executor)
    job_id = add_job(group_id)
    for _ in range(3):
        running_log(group_id, job_id, executor)
    kill = logs.kill_log

    def kill_first(log_id: int, **options: Any) -> str:
        killed, ended, _ = (log.id for log in all_rows(JobLog))
        if log_id == killed:
            kill(log_id, **options)
        elif log_id == ended:
            with session_scope() as session:
                session.get_one(JobLog, log_id).handle_code = 500
        return kill(log_id, **options)

    monkeypatch.setattr(logs, "kill_log", kill_first)
    path_after(submit(admin, f"/jobinfo/{job_id}/kill"))
    assert {log.handle_code for log in all_rows(JobLog)} == {500}


def test_a_kill_of_runs_that_have_all_ended_says_so(
    admin: Console, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = add_group(addresses=executor)
    job_id = add_job(group_id)
    running_log(group_id, job_id, executor)

    def has_ended(_log_id: int, **_options: Any) -> str:
        raise Conflict("ended")

    monkeypatch.setattr(logs, "kill_log", has_ended)
    answer = submit(admin, f"/jobinfo/{job_id}/kill")
    assert answer.status_code == 409
    assert "This job has no run in progress" in answer.text


def fields_of(page: str) -> dict[str, str]:
    """Return the hidden fields of the form of a page."""
    return {
        name: unescape(value)
        for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)
    }


def test_all_that_match_the_filters_are_changed_and_no_other(admin: Console) -> None:
    group_id = add_group()
    ids = [add_job(group_id, author="lina") for _ in range(12)]
    other = add_job(group_id, author="marco")
    page = admin.get("/jobinfo?author=lina&length=10").text
    assert "All 12 of all pages" in page
    assert '<input type="hidden" name="author" value="lina">' in page
    asked = admin.get("/jobinfo/bulk/start?matching=1&author=lina")
    assert "Switch on the schedules of 12 jobs?" in text_of(asked)
    later = add_job(group_id, author="lina")
    path = "/jobinfo/bulk/start?matching=1&author=lina"
    assert "12 of 12 jobs: switched on." in change(admin, path, **fields_of(asked.text))
    assert {job_id for job_id, job in jobs_by_id().items() if job.trigger_status == 1} == set(ids)
    assert {other, later} & set(ids) == set()


def test_jobs_the_user_may_not_change_are_left_out_and_counted(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, seen = add_group(), add_group("other-app", "Other")
    mine, theirs = add_job(own), add_job(seen)
    norman = normal_user(own, seen, rights={seen: frozenset({Right.VIEW})})
    asked = norman.get("/jobinfo/bulk/start?matching=1")
    assert fields_of(asked.text)["ids"] == str(mine)
    assert "Skipped, because you may not change them: 1." in text_of(asked)
    assert submit(norman, "/jobinfo/bulk/start", ids=f"{mine},{theirs}").status_code == 403


def test_too_many_that_match_are_refused(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    group_id = add_group()
    for _ in range(3):
        add_job(group_id)
    monkeypatch.setattr("app.services.jobs.bulk.MATCHING_MAX", 2)
    answer = admin.get("/jobinfo/bulk/start?matching=1")
    assert answer.status_code == 400
    assert "At most 2 jobs at a time" in text_of(answer)


def test_jobs_are_run_once_with_their_own_parameters(admin: Console) -> None:
    group_id = add_group()
    first, second = add_job(group_id, executor_param="a"), add_job(group_id, executor_param="b")
    path = f"/jobinfo/bulk/run{ticked(first, second)}"
    assert "Run 2 jobs once?" in text_of(admin.get(path, follow_redirects=True))
    result = result_of(admin, submit(admin, path))
    assert "2 of 2 jobs: queued." in text_of(result)
    assert f"/joblog?jobId={first}" in result.text
    with read_scope() as session:
        assert sorted(fire.job_id for fire in session.query(Fire)) == sorted((first, second))
    started_ms = only_row(Task).created_ms // 1_000 * 1_000
    assert [fire.logical_ms for fire in all_rows(Fire)] == [started_ms, started_ms]
    assert actions().count("job.trigger") == 2


def test_several_jobs_are_deleted_only_after_their_number_was_typed(admin: Console) -> None:
    group_id = add_group()
    path = f"/jobinfo/bulk/delete{ticked(add_job(group_id), add_job(group_id))}"
    assert "Type delete 2 to continue" in text_of(admin.get(path))
    for typed in ("", "delete 1", "delete"):
        refused = submit(admin, path, typed=typed)
        assert refused.status_code == 400
        assert 'id="typed-error"' in refused.text
    assert len(jobs_by_id()) == 2
    assert "2 of 2 jobs: deleted." in change(admin, path, typed=" Delete  2 ")
    assert jobs_by_id() == {}


def test_the_same_form_sent_again_shows_the_task_it_made(admin: Console) -> None:
    group_id = add_group()
    ids = [add_job(group_id), add_job(group_id)]
    question = admin.get(f"/jobinfo/bulk/run{ticked(*ids)}")
    path = question.headers["Location"].removeprefix("/xxl-job-admin")
    fields = fields_of(admin.get(path).text)
    first = submit(admin, path, **fields)
    assert path_after(submit(admin, path, **fields)).startswith(path_after(first)), "a double click"
    assert "2 of 2 jobs: queued." in text_of(result_of(admin, first))
    for ended in (False, True):  # the back button of the browser, also long after the runs
        if ended:
            with session_scope() as session:
                session.execute(delete(Fire))
        result = change(admin, path, **fields_of(admin.get(path).text))
        assert "This form was already submitted, so nothing was done again." in result
        assert "2 of 2 jobs: queued." in result
    assert (all_rows(Fire), actions().count("job.trigger")) == ([], 2)


def test_the_form_of_a_deletion_sent_again_shows_its_task(admin: Console) -> None:
    group_id = add_group()
    path = f"/jobinfo/bulk/delete{ticked(add_job(group_id), add_job(group_id))}"
    fields = fields_of(admin.get(path).text) | {"typed": "delete 2"}
    first = submit(admin, path, **fields)
    assert "2 of 2 jobs: deleted." in text_of(result_of(admin, first))
    for again in (fields, fields | {"typed": ""}):
        assert path_after(submit(admin, path, **again)).startswith(path_after(first).split("?")[0])


def test_another_form_or_another_user_makes_another_task(admin: Console) -> None:
    group_id = add_group()
    ids = [add_job(group_id), add_job(group_id)]
    path = path_after(admin.get(f"/jobinfo/bulk/run{ticked(*ids)}"))
    assert "2 of 2 jobs: queued." in change(admin, path, **fields_of(admin.get(path).text))
    add_user("bob", [group_id])
    colleague = admin.another().log_in("bob")
    result = change(colleague, path, **fields_of(colleague.get(path).text))
    assert "sent before" not in result, "the address was passed on"
    another = fields_of(admin.get(f"/jobinfo/bulk/run{ticked(*ids)}", follow_redirects=True).text)
    assert "sent before" not in change(admin, "/jobinfo/bulk/run", **another)
    assert "sent before" not in change(admin, "/jobinfo/bulk/run", **(another | {"ids": str(ids[0])}))
    assert sorted(fire.job_id for fire in all_rows(Fire)) == sorted(ids * 3 + ids[:1])


def test_a_database_that_refuses_one_change_undoes_and_repeats_no_other(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = add_group()
    ids = [add_job(group_id), add_job(group_id), add_job(group_id)]
    trigger, calls = jobs.trigger_job, list[int]()

    def lose(session: Session, job_id: int, **given: Any) -> None:
        calls.append(job_id)
        if job_id == ids[1]:
            raise IntegrityError("INSERT", {}, Exception(1062, "duplicate"))
        trigger(session, job_id, **given)

    monkeypatch.setattr("app.services.jobs.jobs.trigger_job", lose)
    result = change(admin, f"/jobinfo/bulk/run{ticked(*ids)}")
    assert "2 of 3 jobs: queued." in result
    assert "The database rejected the change; try again" in result
    assert sorted(fire.job_id for fire in all_rows(Fire)) == [ids[0], ids[2]]
    assert (calls.count(ids[0]), calls.count(ids[2])) == (1, 1)


@pytest.mark.parametrize("started", [False, True], ids=["off", "on"])
def test_a_long_log_goes_in_pieces_before_its_job(
    admin: Console, monkeypatch: pytest.MonkeyPatch, started: bool
) -> None:
    monkeypatch.setattr(removal, "DELETE_BATCH", 2)
    group_id = add_group()
    job_id = add_job(group_id)
    for _ in range(5):
        running_log(group_id, job_id, "http://127.0.0.1:1")
    if started:
        change(admin, f"/jobinfo/bulk/start{ticked(job_id)}")
    with statements() as seen:
        assert "1 of 1 jobs: deleted." in change(admin, f"/jobinfo/bulk/delete{ticked(job_id)}")
    assert (jobs_by_id(), all_rows(JobLog)) == ({}, [])
    commits = [number for number, sql in enumerate(seen) if sql.startswith("UPDATE xxl_job_task SET updated")]
    assert len(commits) >= 3 + started
    assert (actions().count("job.stop"), actions()[-1]) == (started, "job.remove")
