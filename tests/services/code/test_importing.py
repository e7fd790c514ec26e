"""An import of the console changes values as its pages do: no owners, no deletions, switches only by wish."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import Actor, Right
from app.domain.enums import TriggerType
from app.errors import Conflict, InvalidInput, PermissionDenied
from app.models.audit import AuditEntry
from app.models.code import Apply, JobVersion
from app.models.fire import Fire
from app.models.glue import GlueVersion
from app.models.group import Group
from app.models.job import Job
from app.models.skip import Skip
from app.services.code.drift import find_drift
from app.services.code.export import export_document
from app.services.code.job_file import write_file
from app.services.jobs import jobs
from app.services.jobs.glue import VERSIONS_MAX
from app.store.jobs.managed_objects import list_managed
from tests.services.code.imports import imported, outcomes, planned, prepare, write
from tests.services.code.steps import ADMIN, CLOSE, NIGHTLY, apply
from tests.support.factories import T0, all_rows, make_fire, make_group, make_job, only_row
from tests.support.statements import statements

pytestmark = pytest.mark.usefixtures("database")

GOLDEN = Path(__file__).parents[2] / "data" / "former_jobs.json"
KEY = "books/close"
DOCUMENT = {"groups": {"books": {"title": "Books"}}, "jobs": {KEY: {**CLOSE, **NIGHTLY, "enabled": True}}}
LARGE = 2_000


def job(**members: Any) -> dict[str, Any]:
    return {"jobs": {KEY: {**CLOSE, **members}}}


def only_job() -> Job:
    return only_row(Job)


def only_job_of(description: str) -> Job:
    return only_row(Job, job_desc=description)


def owners() -> list[tuple[str, Mapping[str, Any]]]:
    """Return what code owns: keys and fields."""
    with read_scope() as session:
        return [(each.key, each.fields) for each in list_managed(session)]


def test_an_empty_installation_gets_groups_and_jobs_which_are_off() -> None:
    assert outcomes(imported(DOCUMENT)) == [("books", "new"), (KEY, "new")]
    assert only_row(Group).title == "Books"
    made = only_job()
    assert (made.job_desc, made.trigger_status, made.delivery) == ("Close the books", 0, "auto")
    assert planned(DOCUMENT) == []


def test_schedules_are_switched_by_wish() -> None:
    imported(DOCUMENT)
    (line,) = imported(DOCUMENT, with_switches=True)
    assert isinstance(line.detail, dict)
    assert line.detail["changes"] == [["enabled", "no", "yes", []]]
    assert only_job().trigger_status == 1
    imported(DOCUMENT | job(owner="bob", enabled=False))
    assert only_job().trigger_status == 1


def test_nothing_becomes_owned_by_code_and_each_change_is_on_record() -> None:
    imported(DOCUMENT)
    imported(job(owner="bob"))
    assert owners() == all_rows(Apply) == []
    assert [entry.action for entry in all_rows(AuditEntry)] == ["group.add", "job.add", "job.update"]
    assert [version.source for version in all_rows(JobVersion)] == ["import jobs.yaml"] * 2


def test_what_code_owns_it_still_owns_and_the_change_is_drift() -> None:
    code = {KEY: {**CLOSE, "param": "a"}, "books/other": {**CLOSE, "description": "Other"}}
    apply({"groups": {"books": {}}, "jobs": code})
    owned = owners()
    # under a key that an export without owners would have made
    (line,) = imported({"jobs": {"books/close-the-books": {**CLOSE, "owner": "bob"}}})
    assert (line.outcome, only_job_of("Close the books").author) == ("changed", "bob")
    assert owners() == owned
    assert len(all_rows(Job)) == 2
    with read_scope() as session:
        (drift,) = find_drift(session, actor=ADMIN)
    assert [(each.field, each.old, each.new) for each in drift.fields] == [("owner", "ann", "bob")]


def test_a_job_is_recognised_by_description_and_handler_and_not_by_its_handler_alone() -> None:
    group = make_group(app_name="books")
    stored = make_job(job_group=group.id, job_desc="Close the books", executor_handler="closeHandler")
    imported({"jobs": {"books/closeHandler": {**CLOSE, "description": "Another"}}})
    assert stored.id < only_job_of("Another").id
    (line,) = imported(job(owner="bob"))
    assert (line.outcome, line.object_id) == ("changed", stored.id)


def test_a_member_that_a_file_omits_stays() -> None:
    imported(DOCUMENT | job(param="kept", tags=["old"]))
    imported({"jobs": {KEY: {**CLOSE, "timeout_s": 9}}})
    made = only_job()
    assert (made.executor_param, made.executor_timeout) == ("kept", 9)
    assert planned({"jobs": {KEY: {**CLOSE, "tags": ["old"]}}}) == []


def actor_with(*rights: Right) -> Actor:
    group_id = only_row(Group).id
    return Actor(7, "norman", is_admin=False, rights={group_id: frozenset(rights)})


@pytest.mark.parametrize(
    ("members", "rights", "problem"),
    [
        ({"owner": "bob"}, [Right.VIEW], "no permission to edit jobs"),
        ({"description": "new"}, [Right.VIEW], "no permission to edit jobs"),
        (
            {"description": "new", "handler": "", "code": {"language": "GLUE_PHP", "source": "1"}},
            [Right.VIEW, Right.EDIT],
            "no permission to write code",
        ),
        ({"enabled": True, **NIGHTLY}, [Right.VIEW, Right.EDIT], "no permission to start and stop jobs"),
    ],
)
def test_a_right_that_is_missing_is_an_error_of_the_job(
    members: Mapping[str, Any], rights: list[Right], problem: str
) -> None:
    imported(DOCUMENT | job())
    wrong = {"jobs": {KEY: {**CLOSE, **members}, "books/second": {**CLOSE, "timeout_s": -5, "delivery": "x"}}}
    with pytest.raises(InvalidInput) as refused:
        prepare(wrong, actor=actor_with(*rights), with_switches=True)
    problems = {each.field: each.message for each in refused.value.errors}
    assert problem in problems[f"jobs.{KEY}"]
    assert len(problems) > 1


def test_groups_of_the_file_concern_administrators_only() -> None:
    imported(DOCUMENT)
    renamed = DOCUMENT | {"groups": {"books": {"title": "Ledger"}}}
    editor = actor_with(Right.VIEW, Right.EDIT)
    assert planned(renamed, actor=editor) == []
    assert planned(DOCUMENT, actor=actor_with(Right.VIEW)) == [], "what is unchanged needs no right"
    assert outcomes(planned(renamed)) == [("books", "changed")]
    routed = {"jobs": {KEY: {**CLOSE, "alarm_channels": ["Ops"]}}}
    with pytest.raises(PermissionDenied, match="only administrators route alarms"):
        prepare(routed, actor=editor)


def test_a_plan_that_is_another_by_now_is_not_written() -> None:
    imported(DOCUMENT)
    prepared = prepare(job(owner="bob"))
    with session_scope() as session:
        session.execute(update(Job).values(author="carl"))
    with pytest.raises(Conflict, match="no longer what the plan showed"):
        write(prepared)
    assert only_job().author == "carl"


def test_a_former_file_is_imported_and_then_changes_nothing() -> None:
    for app_name in ("sample-app", "other-app"):
        make_group(app_name=app_name)
    former = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert [line.outcome for line in imported(former)] == ["new"] * 3
    report, script, daily = (only_job_of(name) for name in ("nightly report", "nightly: report", "日报"))
    assert (report.child_ids, report.not_before_ms) == ([script.id, daily.id], 1_900_000_000_123)
    assert (script.glue_type, script.glue_remark, daily.schedule_conf) == ("GLUE_SHELL", "first one", "30")
    assert planned(former) == []


def test_an_export_makes_the_same_jobs_on_an_empty_installation() -> None:
    former = json.loads(GOLDEN.read_text(encoding="utf-8"))
    for app_name in ("sample-app", "other-app"):
        make_group(app_name=app_name, title=app_name.title())
    imported(former)
    with session_scope() as session:
        jobs.start_job(session, only_job_of("日报").id, actor=ADMIN, clock=lambda: T0)
        text = write_file(session, [each.id for each in all_rows(Job)], actor=ADMIN)
        before = export_document(session, actor=ADMIN).document
        jobs.remove_jobs(session, [each.id for each in all_rows(Job)], actor=ADMIN, now_ms=T0)
        for group in all_rows(Group):
            session.delete(session.get_one(Group, group.id))
    assert all_rows(Job) == all_rows(Group) == []
    imported(text, with_switches=True)
    with read_scope() as session:
        assert export_document(session, actor=ADMIN).document == before


def test_a_large_file_takes_few_statements() -> None:
    members = {"handler": "demo", "owner": "ann"}
    many = {
        f"books/{number}": {
            **members,
            "description": f"job {number}",
            "children": [str(number + 1)] if number % 10 else [],
        }
        for number in range(1, LARGE + 1)
    }
    make_group(app_name="books")
    with statements() as seen:
        imported({"jobs": many})
    assert len([sql for sql in seen if not sql.startswith(("INSERT", "SAVEPOINT", "RELEASE"))]) < 60
    with statements() as seen:
        imported({"jobs": {key: {**each, "owner": "bob"} for key, each in many.items()}})
    assert len(seen) < 80
    assert {each.author for each in all_rows(Job)} == {"bob"}
    assert only_job_of("job 1").child_ids == [only_job_of("job 2").id]


def test_another_schedule_voids_what_was_planned_and_records_it() -> None:
    imported(DOCUMENT, with_switches=True)
    make_fire(only_job(), due_time=T0 + 5_000, trigger_type=TriggerType.CRON)
    imported(job(schedule_type="CRON", schedule="0 0 5 * * ?"), now_ms=T0 + 90_000)
    assert all_rows(Fire) == []
    assert [skip.reason for skip in all_rows(Skip)] == ["edited"]


def test_the_newest_versions_of_a_source_are_kept() -> None:
    make_group(app_name="books")
    for number in range(VERSIONS_MAX + 2):
        code = {"language": "GLUE_SHELL", "source": f"echo {number}\r\n"}
        imported({"jobs": {KEY: {"description": "x", "owner": "ann", "code": code}}})
    assert only_job().glue_source == f"echo {VERSIONS_MAX + 1}\n"
    kept: list[GlueVersion] = all_rows(GlueVersion)
    assert (len(kept), kept[-1].glue_remark) == (VERSIONS_MAX, "imported from a file")
