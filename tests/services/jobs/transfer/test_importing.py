"""An import checks before it writes, writes in bulk, and notices what others changed in between."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update

from app.clock import Millis
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import system_actor
from app.domain.enums import TriggerType
from app.errors import InvalidInput
from app.models.audit import AuditEntry
from app.models.base import Base
from app.models.fire import Fire
from app.models.glue import GlueVersion
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.skip import Skip
from app.models.tag import JobTag
from app.services.executors.groups import GroupDraft, add_group
from app.services.jobs import jobs
from app.services.jobs.glue import VERSIONS_MAX
from app.services.jobs.rules import CHILDREN_MAX
from app.services.jobs.transfer import importing
from app.services.jobs.transfer.importing import Finding, Kind
from app.services.jobs.transfer.job_file import JOBS_MAX, read_file
from app.services.jobs.transfer.plan import plan_import
from tests.factories import make_fire
from tests.statements import statements

pytestmark = pytest.mark.usefixtures("database")

#: 2024-05-01 10:20:00 in Shanghai
NOW: Millis = 1_714_530_000_000
ADMIN = system_actor("test")


@pytest.fixture(autouse=True)
def group_id(database: str) -> int:
    with session_scope() as session:
        return add_group(session, GroupDraft(app_name="some-app", title="Some"), actor=ADMIN, now_ms=NOW)


def one(number: int = 1, **changes: Any) -> dict[str, Any]:
    common = {
        "appname": "some-app",
        "author": "ann",
        "executorHandler": "demo",
        "scheduleType": "CRON",
        "scheduleConf": "0 * * * * ?",
    }
    return {"id": number, "jobDesc": f"job {number}", **common, **changes}


def imported(
    *objects: dict[str, Any], dry: bool = False, now_ms: Millis = NOW, planned_ms: Millis = 0
) -> list[Finding]:
    """Import jobs; ``planned_ms``: when the import was planned, if it then waited until ``now_ms``."""
    entries = read_file(json.dumps({"format": 1, "jobs": objects}))
    times = iter([planned_ms or now_ms])
    return importing.import_jobs(entries, actor=ADMIN, clock=lambda: next(times, now_ms), dry=dry)


def stored(model: type[Base] = Job) -> list[Any]:
    with read_scope() as session:
        return list(session.scalars(select(model).order_by(model.__table__.c.id)))


def test_a_dry_run_opens_no_writing_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    imported(one(1))
    monkeypatch.delattr(importing, "session_scope")
    kinds = [finding.kind for finding in imported(one(1, author="bob"), one(2), dry=True)]
    assert kinds == [Kind.CHANGED, Kind.NEW]
    assert [finding.kind for finding in imported(one(3, author=""))] == [Kind.ERROR]
    assert [job.author for job in stored()] == ["ann"]


def test_the_largest_file_takes_few_statements() -> None:
    children = [
        one(number, childJobId=str(number + 1) if number % 10 else "") for number in range(1, JOBS_MAX + 1)
    ]
    with statements() as seen:
        assert {finding.kind for finding in imported(*children)} == {Kind.NEW}
    assert len([sql for sql in seen if not sql.startswith(("INSERT", "SAVEPOINT", "RELEASE"))]) < 60
    with statements() as seen:
        assert {finding.kind for finding in imported(*[{**each, "author": "bob"} for each in children])} == {
            Kind.CHANGED
        }
    assert len(seen) < 80
    found = {job.job_desc: job for job in stored()}
    assert len(found) == JOBS_MAX
    assert found["job 1"].child_ids == [found["job 2"].id]
    assert {job.author for job in found.values()} == {"bob"}
    trail = [entry for entry in stored(AuditEntry) if entry.action.startswith("job.")]
    assert [entry.action for entry in trail] == ["job.add"] * JOBS_MAX + ["job.update"] * JOBS_MAX
    assert all(entry.object_id > 0 for entry in trail)


def changes_once(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object], *, times: int = 1) -> None:
    """Let ``change`` happen between the plan and the writing, the first ``times`` times."""
    left = [times]

    def plan(*given: Any, **named: Any) -> Any:
        made = plan_import(*given, **named)
        if left[0]:
            left[0] -= 1
            change()
        return made

    monkeypatch.setattr(importing, "plan_import", plan)


def test_a_change_in_between_is_seen_and_planned_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename() -> None:
        with session_scope() as session:
            session.execute(update(Job).values(author="carl"))

    imported(one(1))
    changes_once(monkeypatch, rename)
    (finding,) = imported(one(1, author="bob"))
    assert [(change.old, change.new) for change in finding.changes] == [("carl", "bob")]
    assert [job.author for job in stored()] == ["bob"]


def test_tags_changed_in_between_are_seen_too(monkeypatch: pytest.MonkeyPatch) -> None:
    (made,) = imported(one(1, tags=["old"]))

    def tag() -> None:
        with session_scope() as session:
            jobs.change_tag(session, made.job_id, "hurried", has_tag=True, actor=ADMIN, now_ms=NOW)

    changes_once(monkeypatch, tag)
    (finding,) = imported(one(1, tags=["new"]))
    assert [(change.old, change.new) for change in finding.changes] == [("hurried, old", "new")]
    changes_once(monkeypatch, tag)
    assert [each.kind for each in imported(one(1))] == [Kind.SAME], "a file without tags leaves them"
    assert [row.tag for row in stored(JobTag)] == ["hurried", "new"]


def test_the_same_job_added_in_between_is_not_added_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    changes_once(monkeypatch, lambda: imported(one(1)))
    assert [finding.kind for finding in imported(one(1), one(2))] == [Kind.SAME, Kind.NEW]
    assert [job.job_desc for job in stored()] == ["job 1", "job 2"]


def test_two_imports_at_once_add_a_job_once(monkeypatch: pytest.MonkeyPatch) -> None:
    write, writing, both_write = importing.write_plan, threading.Event(), threading.Event()

    def slowly(*given: Any, **named: Any) -> list[Finding]:
        (both_write if writing.is_set() else writing).set()
        both_write.wait(0.5)  # without the lock the other one comes here too, having found nothing
        return write(*given, **named)

    monkeypatch.setattr(importing, "write_plan", slowly)
    results: list[list[Kind]] = []
    threads = [
        threading.Thread(
            target=lambda: results.append([finding.kind for finding in imported(one(1), one(2))])
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(results) == [[Kind.NEW] * 2, [Kind.SAME] * 2]
    assert [job.job_desc for job in stored()] == ["job 1", "job 2"]


def test_a_circle_closed_by_two_imports_at_once_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    imported(one(1), one(2))
    first, second = stored()

    def close() -> None:
        with session_scope() as session:
            session.execute(update(Job).where(Job.id == second.id).values(child_jobid=str(first.id)))

    changes_once(monkeypatch, close)
    findings = imported(
        one(1, childJobId="2"),
        {"id": 2, **{name: one(2)[name] for name in ("appname", "jobDesc", "executorHandler")}},
    )
    assert [finding.kind for finding in findings] == [Kind.ERROR, Kind.SAME]
    assert "leads back" in findings[0].problem


def test_jobs_that_others_keep_changing_are_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter("abcdef")

    def rename() -> None:
        with session_scope() as session:
            session.execute(update(Job).values(author=next(names)))

    imported(one(1))
    changes_once(monkeypatch, rename, times=9)
    with pytest.raises(InvalidInput, match="Another user is changing these jobs"):
        imported(one(1, author="bob"))
    assert [job.author for job in stored()] == ["c"]


def test_another_schedule_voids_what_was_planned_and_owes_nothing_silently() -> None:
    imported(one(1), one(2))
    running, stopped = stored()
    with session_scope() as session:
        jobs.start_job(session, running.id, actor=ADMIN, clock=lambda: NOW)
    make_fire(running, due_time=NOW + 5_000, trigger_type=TriggerType.CRON)
    later = NOW + 90_000
    findings = imported(one(1, scheduleConf="0 0 * * * ?"), one(2, scheduleConf="0 0 * * * ?"), now_ms=later)
    assert [finding.kind for finding in findings] == [Kind.CHANGED] * 2
    running, stopped = stored()
    assert (running.trigger_status, running.trigger_next_time, running.last_fire_ms) == (
        1,
        NOW + 40 * 60_000,
        NOW + 60_000,
    )
    assert (stopped.trigger_status, stopped.trigger_next_time) == (0, 0)
    assert stored(Fire) == []
    owed = sorted((skip.from_ms - NOW, skip.reason) for skip in stored(Skip))
    assert owed == [(5_000, "edited"), (60_000, "edited")]


def test_an_import_that_had_to_wait_begins_after_its_wait() -> None:
    imported(one(1))
    with session_scope() as session:
        jobs.start_job(session, stored()[0].id, actor=ADMIN, clock=lambda: NOW)
    imported(one(1, scheduleConf="0 0/2 * * * ?"), planned_ms=NOW + 90_000, now_ms=NOW + 130_000)
    assert stored()[0].trigger_next_time == NOW + 240_000
    assert [(skip.from_ms - NOW, skip.to_ms - NOW, skip.skipped) for skip in stored(Skip)] == [
        (60_000, 120_000, 2)
    ]


def test_a_fixed_delay_whose_run_is_out_begins_after_it() -> None:
    imported(one(1))
    with session_scope() as session:
        jobs.start_job(session, stored()[0].id, actor=ADMIN, clock=lambda: NOW)
    make_fire(stored()[0], due_time=NOW - 1, trigger_type=TriggerType.CRON, state="SENDING")
    imported(one(1, scheduleType="FIX_DELAY", scheduleConf="30"))
    assert stored()[0].trigger_next_time == AFTER_THE_CURRENT_RUN


def test_a_running_job_gets_no_schedule_that_is_over() -> None:
    imported(one(1))
    with session_scope() as session:
        jobs.start_job(session, stored()[0].id, actor=ADMIN, clock=lambda: NOW)
    for dry in (True, False):
        (finding,) = imported(one(1, notAfter="2024-01-01T00:00:00Z"), dry=dry)
        assert (finding.kind, finding.field) == (Kind.ERROR, "scheduleConf")


def test_the_newest_versions_of_a_source_are_kept() -> None:
    shell = {"glueType": "GLUE_SHELL", "executorHandler": ""}
    for number in range(VERSIONS_MAX + 2):
        imported(one(1, glueSource=f"echo {number}\r\n", **shell))
    assert stored()[0].glue_source == f"echo {VERSIONS_MAX + 1}\n"
    versions = stored(GlueVersion)
    assert len(versions) == VERSIONS_MAX
    assert versions[-1].glue_source == f"echo {VERSIONS_MAX + 1}\n"
    assert [entry.action for entry in stored(AuditEntry)][-1] == "glue.save"


def test_children_that_do_not_fit_the_column_are_refused() -> None:
    many = [one(number) for number in range(2, 202)]
    parent = one(1, childJobId=",".join(str(each["id"]) for each in many))
    for dry in (True, False):
        refused = [finding for finding in imported(parent, *many, dry=dry) if finding.kind is Kind.ERROR]
        assert [(finding.field, str(CHILDREN_MAX) in finding.problem) for finding in refused] == [
            ("childJobId", True)
        ]
    assert stored() == []
