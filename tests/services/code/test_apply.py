"""Apply of jobs as code: what is written, once, and what the second plan finds."""

import json
from typing import Any

import pytest

from app.errors import InvalidInput
from app.models.audit import AuditEntry
from app.models.channel import AlarmChannel, ChannelScope
from app.models.code import Apply, CodeObject, JobVersion
from app.models.glue import GlueVersion
from app.models.group import Group
from app.models.job import Job
from app.models.tag import JobTag
from tests.services.code.steps import CLOSE, apply, plan, shown
from tests.support.code import WHOLE
from tests.support.factories import T0, all_rows, make_group, make_job, only_row

pytestmark = pytest.mark.usefixtures("database")


def test_an_empty_installation_gets_groups_jobs_and_channels() -> None:
    applied = apply(WHOLE)
    assert shown(applied.plan)[0] == ("group", "sample", "create", ["title", "address_type"])
    group = only_row(Group, app_name="sample")
    close, mail = only_row(Job, job_desc="Close the books"), only_row(Job, job_desc="Mail the report")
    assert (close.job_group, close.child_ids, close.trigger_status) == (group.id, [mail.id], 1)
    assert close.trigger_next_time > T0
    assert (mail.glue_type, mail.glue_source, mail.trigger_status) == ("GLUE_SHELL", "echo mail\n", 0)
    assert [row.tag for row in all_rows(JobTag, job_id=close.id)] == ["money"]
    channel = only_row(AlarmChannel, name="Ops")
    assert [row.job_id for row in all_rows(ChannelScope, channel_id=channel.id)] == [mail.id]
    assert {row.source for row in all_rows(JobVersion)} == {"apply infra@1a2b3c"}
    owned = json.loads(only_row(CodeObject, managed_key="sample/close").fields)
    assert owned["children"] == [mail.id]
    assert owned["group_id"] == group.id


def test_the_second_plan_is_empty_and_its_apply_writes_nothing() -> None:
    apply(WHOLE)
    second = plan(WHOLE)
    assert (second.is_empty, second.unchanged) == (True, 4)
    assert apply(WHOLE).apply_id == 0
    assert len(all_rows(Apply)) == 1


def test_an_apply_has_one_entry_in_the_audit() -> None:
    before = len(all_rows(AuditEntry))
    applied = apply(WHOLE)
    entries = all_rows(AuditEntry)[before:]
    assert [(entry.action, entry.via) for entry in entries] == [("code.apply", "token ci")]
    changes = json.loads(entries[0].changes or "")
    assert changes["apply"] == applied.apply_id
    assert changes["source"] == "infra@1a2b3c"
    assert "job sample/close" in changes["create"]


def test_only_named_fields_are_changed() -> None:
    apply(WHOLE)
    changed = {**WHOLE["jobs"]["sample/close"], "schedule": "0 0 3 * * ?"}
    del changed["tags"]
    applied = apply({"jobs": {"sample/close": changed}})
    assert shown(applied.plan) == [("job", "sample/close", "update", ["schedule"])]
    job = only_row(Job, job_desc="Close the books")
    assert job.schedule_conf == "0 0 3 * * ?"
    assert [row.tag for row in all_rows(JobTag, job_id=job.id)] == ["money"]
    assert "tags" not in json.loads(only_row(CodeObject, managed_key="sample/close").fields)


def test_code_is_saved_as_a_version() -> None:
    apply(WHOLE)
    code = {"language": "GLUE_SHELL", "source": "echo mail\necho again\n"}
    applied = apply({"jobs": {"sample/mail": {**WHOLE["jobs"]["sample/mail"], "code": code}}})
    change = applied.plan.objects[0].fields[0]
    assert (change.field, change.diff) == ("code", ("@@ -1 +1,2 @@", " echo mail", "+echo again"))
    assert [row.glue_source for row in all_rows(GlueVersion)] == ["echo mail\n", code["source"]]


@pytest.mark.parametrize(
    ("stored", "members", "outcome"),
    [
        (["Close the books"], {}, ("adopt", ["timeout_s"])),
        (["Close the books"], {"description": "Close them"}, ("adopt", ["description", "timeout_s"])),
        (["Close the books", "Close by hand"], {"description": "Close by hand"}, ("adopt", ["timeout_s"])),
        (["Close the books", "Close by hand"], {"description": "Close it"}, ("create", None)),
    ],
)
def test_a_job_under_the_name_of_its_handler_is_adopted(
    stored: list[str], members: dict[str, Any], outcome: tuple[str, list[str] | None]
) -> None:
    """As those declared in code are: a second job of the handler would be a surprise."""
    group = make_group(app_name="sample")
    for description in stored:
        make_job(job_group=group.id, job_desc=description, executor_handler="close")
    (found,) = plan({"jobs": {"sample/close": {"handler": "close", "timeout_s": 30, **members}}}).objects
    action, fields = outcome
    assert found.action == action
    assert fields is None or sorted(each.field for each in found.fields) == fields


def test_several_jobs_of_a_handler_are_not_adopted_by_chance() -> None:
    group = make_group(app_name="sample")
    jobs = [make_job(job_group=group.id, executor_handler="close") for _ in range(2)]
    with pytest.raises(InvalidInput, match=f"handler: {jobs[0].id}, {jobs[1].id}. Name the description"):
        plan({"jobs": {"sample/close": {"handler": "close"}}})


def test_an_existing_job_is_adopted() -> None:
    group = make_group(app_name="sample")
    job = make_job(job_group=group.id, job_desc="Close the books", executor_handler="closeHandler")
    applied = apply({"jobs": {"sample/close": {**CLOSE, "timeout_s": 30}}})
    assert shown(applied.plan) == [("job", "sample/close", "adopt", ["owner", "timeout_s"])]
    assert only_row(Job).id == job.id
    assert only_row(Job).executor_timeout == 30
    assert plan({"jobs": {"sample/close": {**CLOSE, "timeout_s": 30}}}).is_empty
