"""Cleaning the log: asked, counted, then piece by piece; and repeating a run."""

import re
from collections.abc import Callable

import pytest
from werkzeug.test import TestResponse

from app.clock import DAY_MS, now_ms
from app.db import read_scope, session_scope
from app.domain.permissions import Right
from app.models.audit import AuditEntry
from app.models.log import JobLog
from app.services.runs import clearing
from app.store import log_lists
from tests.console.conftest import Console, add_group, add_job
from tests.console.pages import path_after, submit, text_of
from tests.plan import every_database

pytestmark = every_database

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


def clean(console: Console, **asked: object) -> TestResponse:
    """Ask, be told the count, say yes; return what comes then."""
    return submit(console, "/joblog/clean", **fields_of(submit(console, "/joblog/clean", **asked)))


def test_the_count_is_told_before_anything_goes(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    kept, gone = add_logs(group_id, add_job(group_id), 2), add_logs(group_id, job_id, 3)
    assert "nightly report" in admin.get(f"/joblog/clean?jobId={job_id}&jobGroup={group_id}").text
    asked = submit(admin, "/joblog/clean", job_group=group_id, job_id=job_id, kind=9)
    assert "3 rows will be deleted." in text_of(asked)
    assert ids_left() == sorted(kept + gone)
    assert path_after(submit(admin, "/joblog/clean", **fields_of(asked))).endswith(
        f"jobGroup={group_id}&jobId={job_id}&done=cleaned"
    )
    assert ids_left() == kept
    assert len(cleared()) == 1
    assert '"rows": 3' in cleared()[0]


def test_runs_that_come_meanwhile_stay(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    add_logs(group_id, job_id, 3)
    asked = submit(admin, "/joblog/clean", job_group=0, job_id=0, kind=9)
    later = add_logs(group_id, job_id, 2)
    submit(admin, "/joblog/clean", **fields_of(asked))
    assert ids_left() == later


def test_a_long_clearing_shows_its_progress_and_goes_on(
    admin: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    add_logs(group_id, job_id, 7)
    monkeypatch.setattr(log_lists, "DELETE_BATCH", 3)
    monkeypatch.setattr(clearing, "PIECE_S", 0)
    first = clean(admin, job_group=group_id, job_id=job_id, kind=9)
    assert "3 of 7 rows are deleted." in text_of(first)
    assert 'max="7" value="3"' in first.text
    second = submit(admin, "/joblog/clean", **fields_of(first))
    assert "6 of 7 rows are deleted." in text_of(second)
    path_after(submit(admin, "/joblog/clean", **fields_of(second)))
    assert ids_left() == []
    assert len(cleared()) == 1


def test_nobody_writes_the_trail_of_a_clearing_but_the_console(admin: Console) -> None:
    group_id = add_group()
    ids = add_logs(group_id, add_job(group_id), 4)
    fields = fields_of(submit(admin, "/joblog/clean", job_group=group_id, job_id=0, kind=4))
    others = fields_of(
        submit(admin.another().log_in(), "/joblog/clean", job_group=group_id, job_id=0, kind=9)
    )
    for change in (
        {"deleted": 1},  # as if it had begun, and been told of, before
        {"total": 1},
        {"kind": 9},
        {"before_ms": "", "up_to_id": ids[-1]},  # everything, and the trail says: older than a year
        {"up_to_id": ids[-1] + 1},
        {"seal": ""},
        {"seal": "é" * 64},
        {name: value for name, value in others.items() if name != "csrf_token"},
    ):
        refused = submit(admin, "/joblog/clean", **(fields | change))
        assert (refused.status_code, "begin again" in text_of(refused)) == (400, True), change
    assert (ids_left(), cleared()) == (ids, [])


def test_the_newest_are_kept_by_their_number(admin: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    group_id = add_group()
    ids = add_logs(group_id, add_job(group_id), 1_003)
    path_after(clean(admin, job_group=group_id, job_id=0, kind=5))
    assert ids_left() == ids[3:]
    assert "Nothing is to be deleted." in text_of(
        submit(admin, "/joblog/clean", job_group=group_id, job_id=0, kind=5)
    )


def test_only_old_rows_go_where_an_age_is_asked_for(admin: Console) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    add_logs(group_id, job_id, 2, days_ago=40)
    young = add_logs(group_id, job_id, 1, days_ago=20)
    path_after(clean(admin, job_group=0, job_id=0, kind=1))
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
        assert (
            submit(norman, "/joblog/clean", **scope, kind=9, up_to_id=10**9, total=9, deleted=3).status_code
            == 404
        )
    assert (
        submit(norman, "/joblog/clean", job_group=0, job_id=0, kind=9, up_to_id=10**9, total=9).status_code
        == 403
    )
    path_after(clean(norman, job_group=0, job_id=mine, kind=9))
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


def test_everything_goes_only_after_one_has_typed_how_much(admin: Console) -> None:
    group_id = add_group()
    add_logs(group_id, add_job(group_id), 3)
    asked = submit(admin, "/joblog/clean", job_group=0, job_id=0, kind=9)
    assert "Type delete 3 to continue" in text_of(asked)
    refused = submit(admin, "/joblog/clean", **{**fields_of(asked), "typed": "delete 2"})
    assert refused.status_code == 400
    assert 'id="typed-error"' in refused.text
    assert (len(ids_left()), cleared()) == (3, [])
    submit(admin, "/joblog/clean", **fields_of(refused))
    assert ids_left() == []


def test_other_cleanings_need_nothing_typed(admin: Console) -> None:
    group_id = add_group()
    add_logs(group_id, add_job(group_id), 2, days_ago=40)
    asked = submit(admin, "/joblog/clean", job_group=0, job_id=0, kind=1)
    assert 'name="typed"' not in asked.text
    submit(admin, "/joblog/clean", **fields_of(asked))
    assert ids_left() == []
