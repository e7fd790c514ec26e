"""Moved jobs: earlier runs stay in the former group, and a user of one group learns nothing of the other."""

from collections.abc import Callable
from typing import Any

import pytest

from app.clock import now_ms
from app.database.engine import session_scope
from app.models.audit import AuditEntry
from app.services.jobs import jobs
from tests.console.pages import submit
from tests.support.console import ACTOR, Console, add_group, add_job
from tests.support.console_scripting import add_log

NAME, HANDLER = "settle the payroll", "payrollHandler"
ADDRESS = "http://10.1.2.3:9999"


class Moved:
    """A job in its new group, with a run of each outcome in the former one."""

    def __init__(self) -> None:
        self.former, self.present = add_group("former-app"), add_group("present-app")
        self.job_id = add_job(self.former, job_desc=NAME, executor_handler=HANDLER)
        at_ms = now_ms()
        self.failed = add_log(
            self.job_id, self.former, handle_code=500, address=ADDRESS, at_ms=at_ms - 60_000
        )
        self.running = add_log(self.job_id, self.former, address=ADDRESS, at_ms=at_ms - 50_000)
        self.unresolved = add_log(
            self.job_id, self.former, trigger_code=504, address=ADDRESS, at_ms=at_ms - 40_000
        )
        with session_scope() as session:
            jobs.move_job(session, self.job_id, self.present, actor=ACTOR, clock=lambda: at_ms)


@pytest.fixture
def moved(console: Console) -> Moved:
    return Moved()


def test_runs_in_the_former_group_do_not_name_the_job(
    moved: Moved, normal_user: Callable[..., Console]
) -> None:
    norman = normal_user(moved.former)
    failed_run = f"/joblog/{moved.failed}"
    for path in (
        "/",
        "/?hours=24",
        "/joblog?range=all",
        f"/joblog?jobId={moved.job_id}&range=all",
        failed_run,
        f"{failed_run}/note",
        f"{failed_run}/kill",
    ):
        page = norman.get(path).text
        assert NAME not in page, path
        assert HANDLER not in page, path
    assert "(deleted or moved)" in norman.get(failed_run).text
    assert str(moved.job_id) in norman.get("/joblog?range=all").text


def test_a_user_of_both_groups_still_reads_the_name(
    moved: Moved, normal_user: Callable[..., Console]
) -> None:
    reader = normal_user(moved.former, moved.present)
    assert NAME in reader.get("/joblog?range=all").text
    assert NAME in reader.get(f"/joblog/{moved.failed}").text


def test_the_job_page_shows_no_run_of_an_invisible_group(
    moved: Moved, normal_user: Callable[..., Console]
) -> None:
    nina = normal_user(moved.present, username="nina")
    own_run = add_log(moved.job_id, moved.present, handle_code=200)
    page = nina.get(f"/jobinfo/{moved.job_id}").text
    assert f"/joblog/{own_run}" in page
    for path in (
        f"/jobinfo/{moved.job_id}",
        f"/jobinfo/{moved.job_id}?tab=runs",
        f"/jobinfo/{moved.job_id}?tab=alarms",
        f"/jobinfo?jobGroup={moved.present}",
        "/",
        f"/jobinfo/{moved.job_id}/kill",
    ):
        text = nina.get(path).text
        assert ADDRESS not in text, path
        for log_id in (moved.failed, moved.running, moved.unresolved):
            assert f'/joblog/{log_id}"' not in text, path
            assert f"Run {log_id} on" not in text, path
    assert NAME in nina.get(f"/jobinfo?jobGroup={moved.present}").text


def test_a_run_of_an_invisible_group_is_not_repeated(
    moved: Moved, normal_user: Callable[..., Console]
) -> None:
    nina = normal_user(moved.present, username="nina")
    own_run = add_log(moved.job_id, moved.present)
    assert nina.get(f"/jobinfo/{moved.job_id}/run?log={own_run}").status_code == 200
    assert nina.get(f"/jobinfo/{moved.job_id}/run?log={moved.failed}").status_code == 404


def test_a_run_before_the_move_is_killed_with_the_right_on_its_group(
    moved: Moved, normal_user: Any, admin: Console
) -> None:
    nina = normal_user(moved.present, username="nina")
    assert submit(nina, f"/jobinfo/{moved.job_id}/kill").status_code == 409
    assert str(moved.running) in admin.get(f"/jobinfo/{moved.job_id}/kill").text


def test_parents_in_invisible_groups_are_not_named_before_a_job_is_deleted(
    moved: Moved, normal_user: Any, admin: Console
) -> None:
    nina = normal_user(moved.present, username="nina")
    foreign = add_job(moved.former, child_jobid=str(moved.job_id))
    assert "It is a child of these jobs" not in nina.get(f"/jobinfo/{moved.job_id}/delete").text
    assert f"no longer do so: {foreign}" in admin.get(f"/jobinfo/{moved.job_id}/delete").text


def test_the_change_history_starts_where_the_job_left_an_invisible_group(
    console: Console, normal_user: Any, admin: Console
) -> None:
    former, present = add_group("former-app"), add_group("present-app")
    job_id = add_job(former)
    admin.call("/jobinfo/trigger", id=job_id, executorParam="theirs alone")
    with session_scope() as session:
        jobs.move_job(session, job_id, present, actor=ACTOR, clock=now_ms)
    admin.call("/jobinfo/trigger", id=job_id, executorParam="everybody here")
    path = f"/jobinfo/{job_id}?tab=history"
    nina = normal_user(present, username="nina").get(path).text
    assert ("theirs alone" in nina, "everybody here" in nina, " to another executor" in nina) == (
        False,
        True,
        True,
    )
    for reader in (admin, normal_user(former, present)):
        assert "theirs alone" in reader.get(path).text


def test_an_unreadable_long_change_ends_the_history_for_a_normal_user(
    normal_user: Any, admin: Console
) -> None:
    group_id = add_group()
    job_id = add_job(group_id)
    with session_scope() as session:
        cut = AuditEntry(
            at_ms=now_ms(),
            user_id=1,
            username="admin",
            action="job.update",
            object_type="job",
            object_id=job_id,
        )
        cut.changes, cut.address = '{"job_desc": ["', ""
        session.add(cut)
    path = f"/jobinfo/{job_id}?tab=history"
    assert "added <a" not in normal_user(group_id).get(path).text
    assert "added <a" in admin.get(path).text
