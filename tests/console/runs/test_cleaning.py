"""Cleaning the log: counted, confirmed, then deleted by a task; and repeating a run."""

import re
from collections.abc import Callable

import pytest
from werkzeug.test import TestResponse

from app.clock import DAY_MS, now_ms
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Right
from app.models.audit import AuditEntry
from app.models.group import Group
from app.models.log import JobLog
from app.services.runs import logs
from app.store.runs import clearing as log_clearing
from tests.console.pages import path_after, submit, text_of
from tests.console.tasks import result_of, run_tasks
from tests.support.console import Console, add_group, add_job

INPUT = re.compile(r"<input [^>]*type=\"hidden\"[^>]*>")


def fields_of(page: TestResponse) -> dict[str, str]:
    """Return what the page's form would post."""
    found = {}
    for tag in INPUT.findall(page.text.split("<main")[1]):
        name, value = (re.search(rf'{part}="([^"]*)"', tag) for part in ("name", "value"))
        found[name.group(1) if name else ""] = value.group(1) if value else ""
    phrase = re.search(r'id="typed"[^>]*placeholder="([^"]*)"', page.text)
    return {**found, "typed": phrase.group(1)} if phrase else found


def add_logs(group_id: int, job_id: int, count: int, *, days_ago: int = 0) -> list[int]:
    with session_scope() as session:
        at_ms = now_ms() - days_ago * DAY_MS
        made = [
            JobLog(job_group=group_id, job_id=job_id, trigger_time=at_ms, trigger_code=200)
            for _number in range(count)
        ]
        session.add_all(made)
        session.flush()
        return [log.id for log in made]


def ids_left() -> list[int]:
    with read_scope() as session:
        return sorted(log.id for log in session.query(JobLog))


def cleared() -> list[str]:
    with read_scope() as session:
        return [entry.changes or "" for entry in session.query(AuditEntry).filter_by(action="log.clear")]


def confirm(console: Console, counted: TestResponse) -> str:
    """Confirm the count, let the task run, return the text of its result."""
    return text_of(result_of(console, submit(console, "/joblog/clean", **fields_of(counted))))


def clean(console: Console, **asked: object) -> str:
    """Count and confirm; return the text of the result."""
    return confirm(console, submit(console, "/joblog/clean", **asked))


def test_runs_of_a_job_whose_group_was_deleted_are_cleared(admin: Console) -> None:
    """A Java admin leaves such jobs behind."""
    group_id = add_group()
    job_id = add_job(group_id)
    add_logs(group_id, job_id, 3)
    with session_scope() as session:
        session.query(Group).filter_by(id=group_id).delete()
    asked = admin.get(f"/joblog/clean?jobGroup={group_id}&jobId={job_id}")
    assert f"Executor {group_id} Job {job_id} nightly report" in text_of(asked)
    clean(admin, job_group=group_id, job_id=job_id, kind=9)
    assert ids_left() == []


def test_the_count_is_shown_before_anything_goes(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    kept, gone = add_logs(group_id, add_job(group_id), 2), add_logs(group_id, job_id, 3)
    form = text_of(admin.get(f"/joblog/clean?jobId={job_id}&jobGroup={group_id}"))
    assert "nightly report" in form
    assert "The runs are deleted permanently" in form
    assert "Count the runs" in form
    asked = submit(admin, "/joblog/clean", job_group=group_id, job_id=job_id, kind=9)
    assert "3 runs will be deleted." in text_of(asked)
    assert ids_left() == sorted(kept + gone)
    result = result_of(admin, submit(admin, "/joblog/clean", **fields_of(asked)))
    assert "3 of 3 runs are deleted." in text_of(result)
    assert f'href="/xxl-job-admin/joblog?jobGroup={group_id}&amp;jobId={job_id}"' in result.text
    assert ids_left() == kept
    assert len(cleared()) == 1
    assert '"rows": 3' in cleared()[0]


def test_runs_that_come_meanwhile_stay(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    add_logs(group_id, job_id, 3)
    asked = submit(admin, "/joblog/clean", job_group=0, job_id=0, kind=9)
    later = add_logs(group_id, job_id, 2)
    confirm(admin, asked)
    assert ids_left() == later


def test_the_newest_of_the_count_are_kept_whatever_comes_meanwhile(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(logs.KEPT, logs.ClearType.KEEP_1000, 2)
    group_id = add_group()
    ids = add_logs(group_id, add_job(group_id), 3)
    asked = submit(admin, "/joblog/clean", job_group=group_id, job_id=0, kind=5)
    later = add_logs(group_id, add_job(group_id), 2)
    confirm(admin, asked)
    assert ids_left() == ids[1:] + later


def test_a_long_clearing_shows_its_progress_and_one_audit_entry(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    add_logs(group_id, job_id, 7)
    monkeypatch.setattr(log_clearing, "DELETE_BATCH", 3)
    asked = submit(admin, "/joblog/clean", job_group=group_id, job_id=job_id, kind=9)
    path = path_after(submit(admin, "/joblog/clean", **fields_of(asked)))
    with monkeypatch.context() as short:
        short.setattr("app.services.tasks.runner.TURN_S", 0)
        run_tasks(admin)
    page = admin.get(path)
    assert "3 of 7 runs are deleted." in text_of(page)
    assert 'max="7" value="3"' in page.text
    run_tasks(admin)
    assert "7 of 7 runs are deleted." in text_of(admin.get(path))
    assert ids_left() == []
    assert len(cleared()) == 1


def test_a_clearing_that_is_cancelled_is_audited_with_the_rows_it_deleted(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = add_group()
    add_logs(group_id, add_job(group_id), 7)
    monkeypatch.setattr(log_clearing, "DELETE_BATCH", 3)
    asked = submit(admin, "/joblog/clean", job_group=group_id, job_id=0, kind=9)
    path = path_after(submit(admin, "/joblog/clean", **fields_of(asked)))
    with monkeypatch.context() as short:
        short.setattr("app.services.tasks.runner.TURN_S", 0)
        run_tasks(admin)
    assert cleared() == []
    assert submit(admin, path.split("?")[0] + "/cancel").status_code == 303
    run_tasks(admin)
    assert len(ids_left()) == 4
    assert ['"rows": 3' in entry for entry in cleared()] == [True]


def test_a_forged_form_deletes_fewer_rows_at_most_and_the_audit_is_true(admin: Console) -> None:
    group_id = add_group()
    ids = add_logs(group_id, add_job(group_id), 4)
    asked = submit(admin, "/joblog/clean", job_group=group_id, job_id=0, kind=9)
    fields = fields_of(asked)
    wider = submit(admin, "/joblog/clean", **(fields | {"up_to_id": 10**17, "before_ms": 1, "total": 9}))
    assert "4 of 4 runs" in text_of(result_of(admin, wider))
    assert ids_left() == []
    young = add_logs(group_id, add_job(group_id), 2)
    nothing = submit(admin, "/joblog/clean", **(fields | {"kind": 4, "up_to_id": young[-1]}))
    assert "Nothing to delete." in text_of(nothing)
    fewer = submit(admin, "/joblog/clean", **(fields | {"up_to_id": young[0], "typed": "delete 1"}))
    result_of(admin, fewer)
    assert ids_left() == young[1:]
    assert [
        (f'"rows": {rows}' in entry, '"ALL"' in entry) for rows, entry in zip((4, 1), cleared(), strict=True)
    ]
    assert ids[0] > 0


def test_the_newest_are_kept_by_their_number(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    group_id = add_group()
    ids = add_logs(group_id, add_job(group_id), 1_003)
    clean(admin, job_group=group_id, job_id=0, kind=5)
    assert ids_left() == ids[3:]
    assert "Nothing to delete." in text_of(
        submit(admin, "/joblog/clean", job_group=group_id, job_id=0, kind=5)
    )


def test_only_old_rows_go_where_an_age_is_asked_for(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    add_logs(group_id, job_id, 2, days_ago=40)
    young = add_logs(group_id, job_id, 1, days_ago=20)
    clean(admin, job_group=0, job_id=0, kind=1)
    assert ids_left() == young


def test_a_normal_user_clears_what_they_operate_only(
    admin: Console, normal_user: Callable[..., Console]
) -> None:
    own, foreign = add_group(), add_group("other-app", "Other")
    mine, theirs = add_job(own), add_job(foreign)
    moved = add_logs(foreign, mine, 1)  # of my job, from when it belonged to the other group
    add_logs(own, mine, 2)
    kept = add_logs(foreign, theirs, 1)
    norman = normal_user(own, rights={own: frozenset({Right.OPERATE})})
    for scope in ({"job_group": foreign, "job_id": 0}, {"job_group": 0, "job_id": theirs}):
        assert submit(norman, "/joblog/clean", **scope, kind=9).status_code == 404
        assert submit(norman, "/joblog/clean", **scope, kind=9, up_to_id=10**9).status_code == 404
    assert submit(norman, "/joblog/clean", job_group=0, job_id=0, kind=9, up_to_id=10**9).status_code == 403
    clean(norman, job_group=0, job_id=mine, kind=9)
    assert ids_left() == sorted(moved + kept)


def test_a_shard_is_repeated_on_its_own_executor(admin: Console) -> None:
    group_id = add_group(addresses="http://127.0.0.1:9999")
    job_id = add_job(group_id, executor_param="the usual")
    with session_scope() as session:
        log = JobLog(
            job_group=group_id,
            job_id=job_id,
            executor_param="once <more>",
            executor_address="http://127.0.0.1:9999",
        )
        log.trigger_time, log.executor_sharding_param = now_ms(), "0/1"
        session.add(log)
        session.flush()
        log_id = log.id
    page = admin.get(f"/jobinfo/{job_id}/run?log={log_id}").text
    assert "once &lt;more&gt;" in page
    assert 'value="http://127.0.0.1:9999"' in page.split('id="address_list"')[1].split(">")[0]


def test_everything_goes_only_after_its_number_was_typed(admin: Console) -> None:
    group_id = add_group()
    add_logs(group_id, add_job(group_id), 3)
    asked = submit(admin, "/joblog/clean", job_group=0, job_id=0, kind=9)
    assert "Type delete 3 to continue" in text_of(asked)
    refused = submit(admin, "/joblog/clean", **{**fields_of(asked), "typed": "delete 2"})
    assert refused.status_code == 400
    assert 'id="typed-error"' in refused.text
    assert (len(ids_left()), cleared()) == (3, [])
    confirm(admin, refused)
    assert ids_left() == []


def test_the_same_form_sent_again_shows_the_task_it_made(admin: Console) -> None:
    group_id = add_group()
    for kind, count in ((9, 3), (1, 2)):
        add_logs(group_id, add_job(group_id), count, days_ago=40)
        fields = fields_of(submit(admin, "/joblog/clean", job_group=group_id, job_id=0, kind=kind))
        first = submit(admin, "/joblog/clean", **fields)
        task = path_after(first).split("?")[0]
        assert path_after(submit(admin, "/joblog/clean", **fields)).startswith(task + "?"), "bounds move on"
        result_of(admin, first)
        assert path_after(submit(admin, "/joblog/clean", **fields)).startswith(task + "?"), "nothing is left"


def test_other_cleanings_need_nothing_typed(admin: Console) -> None:
    group_id = add_group()
    add_logs(group_id, add_job(group_id), 2, days_ago=40)
    asked = submit(admin, "/joblog/clean", job_group=0, job_id=0, kind=1)
    assert 'name="typed"' not in asked.text
    confirm(admin, asked)
    assert ids_left() == []


def test_the_form_says_what_is_deleted_without_it(admin: Console) -> None:
    assert "Runs older than 30 days are deleted automatically." in text_of(admin.get("/joblog/clean"))
