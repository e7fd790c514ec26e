"""Several jobs at once from the list, killing from a job's menu, and the count of runs under way."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import pytest
from sqlalchemy import delete
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.db import read_scope, session_scope
from app.domain.permissions import Right
from app.models.audit import AuditEntry
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.services.jobs import jobs
from tests.browser.serving import stub_executor
from tests.console.conftest import Console, add_group, add_job, add_user
from tests.console.pages import is_at_login, submit, text_of, token_of
from tests.factories import all_rows

ACTS = ("start", "stop", "run", "move", "delete")


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
    first, second, idle = (
        add_job(group_id),
        add_job(group_id),
        add_job(group_id, schedule_type="NONE", schedule_conf=""),
    )
    path = f"/jobinfo/bulk/start{ticked(first, second, idle)}"
    assert "cannot be started: 1." in text_of(admin.get(path))
    told = text_of(submit(admin, path))
    assert "2 of 3 jobs: started." in told
    assert "A job without a schedule cannot be switched on" in told
    assert {job_id: job.trigger_status for job_id, job in jobs_by_id().items()} == {
        first: 1,
        second: 1,
        idle: 0,
    }
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


def test_code_is_moved_only_where_one_may_write_code(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, other = add_group(), add_group("other-app", "Other")
    job_id = add_job(own, glue_type="GLUE_SHELL", executor_handler="", glue_source="echo one")
    norman = normal_user(own, other, rights={other: frozenset({Right.EDIT, Right.OPERATE})})
    assert "permission denied" in text_of(
        submit(norman, f"/jobinfo/bulk/move{ticked(job_id)}", job_group=other)
    )
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
    assert set(jobs_by_id()) == {mine, theirs}


def test_the_right_of_the_act_is_needed_on_every_job(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
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


def test_runs_under_way_are_counted_for_jobs_one_may_see(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
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
    page = admin.get("/jobinfo?author=lina").text
    assert "All 12 of all pages" in page
    assert '<input type="hidden" name="author" value="lina">' in page
    asked = admin.get("/jobinfo/bulk/start?matching=1&author=lina")
    assert "Start 12 jobs?" in text_of(asked)
    later = add_job(group_id, author="lina")
    told = submit(
        admin,
        "/jobinfo/bulk/start?matching=1&author=lina",
        **{**fields_of(asked.text), "csrf_token": token_of(admin)},
    )
    assert "12 of 12 jobs: started." in text_of(told)
    assert {job_id for job_id, job in jobs_by_id().items() if job.trigger_status == 1} == set(ids)
    assert {other, later} & set(ids) == set()


def test_what_one_may_not_change_is_left_out_and_told(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, seen = add_group(), add_group("other-app", "Other")
    mine, theirs = add_job(own), add_job(seen)
    norman = normal_user(own, seen, rights={seen: frozenset({Right.VIEW})})
    asked = norman.get("/jobinfo/bulk/start?matching=1")
    assert fields_of(asked.text)["ids"] == str(mine)
    assert "Left out, because you may not change them: 1." in text_of(asked)
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
    told = submit(admin, path)
    assert "2 of 2 jobs: queued." in text_of(told)
    assert f"/joblog?jobId={first}" in told.text
    with read_scope() as session:
        assert sorted(fire.job_id for fire in session.query(Fire)) == sorted((first, second))
    assert actions().count("job.trigger") == 2


def test_several_jobs_are_deleted_only_after_one_has_typed_how_many(admin: Console) -> None:
    group_id = add_group()
    path = f"/jobinfo/bulk/delete{ticked(add_job(group_id), add_job(group_id))}"
    assert "Type delete 2 to continue" in text_of(admin.get(path))
    for typed in ("", "delete 1", "delete"):
        refused = submit(admin, path, typed=typed)
        assert refused.status_code == 400
        assert 'id="typed-error"' in refused.text
    assert len(jobs_by_id()) == 2
    assert "2 of 2 jobs: deleted." in text_of(submit(admin, path, typed=" Delete  2 "))
    assert jobs_by_id() == {}


def test_many_jobs_are_changed_in_pieces_with_the_progress_in_sight(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = add_group()
    ids = [add_job(group_id), add_job(group_id, schedule_type="NONE", schedule_conf=""), add_job(group_id)]
    monkeypatch.setattr("app.services.jobs.bulk.PIECE_S", -1)
    page = submit(admin, f"/jobinfo/bulk/start{ticked(*ids)}")
    turns = 1
    while "data-goes-on" in page.text:
        assert f'max="3" value="{turns}"' in page.text
        page = submit(admin, "/jobinfo/bulk/start", **{**fields_of(page.text), "csrf_token": token_of(admin)})
        turns += 1
    assert turns == 3
    assert "2 of 3 jobs: started." in text_of(page)
    assert "A job without a schedule cannot be switched on" in text_of(page)
    assert [jobs_by_id()[job_id].trigger_status for job_id in ids] == [1, 0, 1]


def test_a_torn_or_forged_progress_changes_nothing_foreign(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, foreign = add_group(), add_group("other-app", "Other")
    theirs = add_job(foreign)
    norman = normal_user(own)
    for state in ("", "[]", "[0,[]]", "[5,[[1,2,3]]]", "[0,[[1]]]", '[0,[["x","",""]]]', "{", "[" * 10_000):
        assert submit(norman, "/jobinfo/bulk/start", state=state).status_code == 400, state
    for forged in (f'[0,[[{theirs},"",""]]]', "0" * 64 + f'["",0,[[{theirs},"",""]]]', "é" * 64 + "[]"):
        assert submit(norman, "/jobinfo/bulk/start", state=forged).status_code == 400
    assert jobs_by_id()[theirs].trigger_status == 0


def test_a_progress_goes_on_with_its_own_act_and_login_only(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = add_group()
    ids = [add_job(group_id), add_job(group_id)]
    monkeypatch.setattr("app.services.jobs.bulk.PIECE_S", -1)
    fields = fields_of(submit(admin, f"/jobinfo/bulk/start{ticked(*ids)}").text) | {
        "csrf_token": token_of(admin)
    }
    assert submit(admin, "/jobinfo/bulk/delete", **fields).status_code == 400
    other = admin.another().log_in()
    assert (
        submit(other, "/jobinfo/bulk/start", **(fields | {"csrf_token": token_of(other)})).status_code == 400
    )
    assert [jobs_by_id()[job_id].trigger_status for job_id in ids] == [1, 0]


def test_a_question_answered_twice_queues_each_job_once(admin: Console) -> None:
    group_id = add_group()
    ids = [add_job(group_id), add_job(group_id)]
    path = f"/jobinfo/bulk/run{ticked(*ids)}"
    question = admin.get(path)
    path = question.headers["Location"].removeprefix("/xxl-job-admin")
    fields = fields_of(admin.get(path).text) | {"csrf_token": token_of(admin)}
    assert "2 of 2 jobs: queued." in text_of(submit(admin, path, **fields))
    assert sorted(fire.job_id for fire in all_rows(Fire)) == ids
    for ended in (False, True):  # the back button of the browser, also long after the runs
        if ended:
            with session_scope() as session:
                session.execute(delete(Fire))
            fields = fields_of(admin.get(path).text) | {"csrf_token": token_of(admin)}
        page = submit(admin, path, **fields)
        assert page.status_code == 200
        assert "0 of 2 jobs: queued. This form was sent before" in text_of(page)
        assert text_of(page).count("queued before") == 2
    assert (all_rows(Fire), actions().count("job.trigger")) == ([], 2)
    add_user("bob", [group_id])
    colleague = admin.another().log_in("bob")
    assert "2 of 2 jobs: queued." in text_of(
        submit(colleague, path, **fields_of(colleague.get(path).text))
    ), "the address was passed on"
    another = admin.get(f"/jobinfo/bulk/run{ticked(*ids)}", follow_redirects=True)
    fields = fields_of(another.text) | {"csrf_token": token_of(admin)}
    assert "2 of 2 jobs: queued." in text_of(submit(admin, "/jobinfo/bulk/run", **fields)), (
        "another question is another run"
    )
    assert sorted(fire.job_id for fire in all_rows(Fire)) == sorted(ids * 2)


def test_a_question_that_was_left_half_answered_goes_on_with_the_others(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = add_group()
    ids = [add_job(group_id) for _ in range(3)]
    path = f"/jobinfo/bulk/run{ticked(*ids)}"
    fields = fields_of(admin.get(path, follow_redirects=True).text) | {"csrf_token": token_of(admin)}
    with monkeypatch.context() as slow:
        slow.setattr("app.services.jobs.bulk.PIECE_S", -1)
        submit(admin, path, **fields)
        page = submit(admin, path, **fields)
        assert "0 of 3 jobs: queued." in text_of(page)
        rest = fields_of(page.text) | {"csrf_token": token_of(admin)}
    page = submit(admin, "/jobinfo/bulk/run", **rest)
    assert "2 of 3 jobs: queued. This form was sent before" in text_of(page)
    assert sorted(fire.job_id for fire in all_rows(Fire)) == ids


def test_a_database_that_refuses_one_change_undoes_and_repeats_no_other(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = add_group()
    ids = [add_job(group_id), add_job(group_id), add_job(group_id)]
    trigger, calls = jobs.trigger_job, list[int]()

    def lose(session: Session, job_id: int, **given: Any) -> bool:
        calls.append(job_id)
        if job_id == ids[1]:
            raise OperationalError("INSERT", {}, Exception(1213, "deadlock"))
        return trigger(session, job_id, **given)

    monkeypatch.setattr("app.services.jobs.jobs.trigger_job", lose)
    page = submit(admin, f"/jobinfo/bulk/run{ticked(*ids)}")
    assert "2 of 3 jobs: queued." in text_of(page)
    assert "The database refused the change: try again" in text_of(page)
    assert sorted(fire.job_id for fire in all_rows(Fire)) == [ids[0], ids[2]]
    assert (calls.count(ids[0]), calls.count(ids[2])) == (1, 1)
