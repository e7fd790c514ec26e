"""Undoing of an apply: everything is as it was before, or the refusal names what was changed since."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import update

from app.database.engine import session_scope
from app.errors import Conflict, NotFound
from app.models.audit import AuditEntry
from app.models.channel import AlarmChannel, ChannelScope
from app.models.code import CodeObject
from app.models.group import Group
from app.models.job import Job
from app.services.alarms.targets import settings_of
from tests.services.code.steps import CLOSE, NIGHTLY, apply, plan
from tests.support.code import WHOLE, exported, managed, undo
from tests.support.factories import all_rows, make_group, make_job, make_log, only_row, remove
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")


def change(job: Job, **columns: Any) -> None:
    with session_scope() as session:
        stored = session.get(Job, job.id)
        for name, value in columns.items():
            setattr(stored, name, value)


def test_what_an_apply_added_is_deleted() -> None:
    make_group(app_name="other-app")
    before = exported()
    undo(apply(WHOLE).apply_id)
    assert exported() == before
    assert managed() == []
    assert [entry.action for entry in all_rows(AuditEntry)][-2:] == ["code.apply", "code.undo"]


@every_database
def test_what_an_apply_changed_is_changed_back() -> None:
    apply(WHOLE)
    before, owned = exported(), managed()
    changed = {
        "groups": {
            "sample": {"title": "Changed", "address_type": "manual", "addresses": ["http://127.0.0.1:9999/"]}
        },
        "jobs": {
            "sample/close": {**CLOSE, "tags": [], "children": [], "enabled": False, "timeout_s": 9},
            "sample/mail": {"code": {"language": "GLUE_SHELL", "source": "exit 1\n"}, "alarm_channels": []},
            "sample/new": CLOSE | {"description": "New"},
        },
        "channels": {"Ops": {"jobs": ["sample/new"], "settings": {"addresses": "dev@example.com"}}},
    }
    undo(apply(changed).apply_id)
    assert exported() == before
    assert managed() == owned


def test_an_adopted_job_is_given_back_to_the_console() -> None:
    group = make_group(app_name="sample")
    make_job(job_group=group.id, job_desc="Close the books", executor_handler="closeHandler")
    before = exported()
    undo(apply({"jobs": {"sample/close": {**CLOSE, **NIGHTLY}}}).apply_id)
    assert (exported(), managed()) == (before, [])


def test_what_an_apply_deleted_is_made_again() -> None:
    make_group(app_name="other-app")
    apply(WHOLE)
    before = exported()
    applied = apply({}, prune=["sample/close", "sample/mail", "channel:Ops", "group:sample"])
    assert all_rows(Job) == []
    undo(applied.apply_id)
    assert exported() == before
    assert plan(WHOLE).is_empty
    assert {row.object_id for row in all_rows(CodeObject, kind="job")} == {row.id for row in all_rows(Job)}
    channel = only_row(AlarmChannel)
    assert (
        only_row(ChannelScope, channel_id=channel.id).job_id == only_row(Job, job_desc="Mail the report").id
    )


def test_a_job_that_is_made_again_is_a_child_again() -> None:
    child = CLOSE | {"description": "Mail"}
    parent = CLOSE | {"children": ["mail"]}
    apply(
        {"groups": {"sample": {}}, "jobs": {"sample/mail": child, "sample/close": parent, "sample/b": parent}}
    )
    applied = apply({"jobs": {"sample/close": CLOSE}}, prune=["sample/mail"])
    undo(applied.apply_id)
    mail = only_row(Job, job_desc="Mail")
    assert [job.child_ids for job in all_rows(Job, job_desc="Close the books")] == [[mail.id], [mail.id]]
    fields = [json.loads(row.fields).get("children") for row in all_rows(CodeObject, kind="job")]
    assert fields.count([mail.id]) == 2


LINKED = {
    "groups": {"sample": {}},
    "jobs": {
        "sample/close": {**CLOSE, "children": ["mail", "send"]},
        "sample/mail": CLOSE | {"description": "Mail"},
        "sample/send": CLOSE | {"description": "Send"},
    },
}


@pytest.mark.parametrize(
    ("changed", "prune"),
    [
        ({"jobs": {"sample/close": {**CLOSE, "children": []}}}, []),
        ({"jobs": {"sample/close": {**CLOSE, "children": ["send"]}}}, []),
        ({}, ["sample/close"]),
    ],
)
def test_a_job_gets_back_the_children_that_it_lost(changed: Mapping[str, Any], prune: list[str]) -> None:
    apply(LINKED)
    before = exported()
    undo(apply(changed, prune=prune).apply_id)
    assert exported() == before


def test_children_that_were_deleted_since_are_left_out() -> None:
    apply(LINKED)
    mail, send = only_row(Job, job_desc="Mail"), only_row(Job, job_desc="Send")
    applied = apply({"jobs": {"sample/close": {**CLOSE, "children": []}}})
    remove(mail)
    undo(applied.apply_id)
    assert only_row(Job, job_desc="Close the books").child_ids == [send.id]


def test_applies_are_undone_one_after_the_other_past_a_deletion() -> None:
    make_group(app_name="other-app")
    states = [(exported(), [])]
    documents = [
        WHOLE,
        {
            "groups": {"sample": {"title": "Changed"}},
            "jobs": {"sample/close": {**CLOSE, "timeout_s": 9}, "sample/new": CLOSE | {"description": "New"}},
            "channels": {"Ops": {"settings": {"addresses": "dev@example.com"}}},
        },
        {},
    ]
    prune = ["sample/close", "sample/mail", "sample/new", "channel:Ops", "group:sample"]
    applied = []
    for document in documents:
        applied.append(apply(document, prune=() if document else prune).apply_id)
        states.append((exported(), [each[:2] for each in managed()]))
    for apply_id, (before, owned) in zip(reversed(applied), reversed(states[:-1]), strict=True):
        undo(apply_id)
        assert (exported(), [each[:2] for each in managed()]) == (before, owned)
        present = {("job", row.id) for row in all_rows(Job)} | {("group", row.id) for row in all_rows(Group)}
        assert {(kind, id) for kind, _key, id, _fields in managed() if kind != "channel"} <= present


def test_a_secret_is_put_back() -> None:
    url = "https://hooks.slack.com/services/T00000000/B00000000/{}"
    first = {"channels": {"Chat": {"kind": "slack", "settings": {"url": url.format("first")}}}}
    apply(first)
    second = apply({"channels": {"Chat": {"kind": "slack", "settings": {"url": url.format("second")}}}})
    assert "second" not in str(second.plan.as_json())
    undo(second.apply_id)
    assert json.loads(only_row(AlarmChannel).settings)["url"] == url.format("first")
    assert plan(first).is_empty


#: values of a job that a Java admin stored and a new one may not have, and such that it may have
UNUSUAL: dict[str, tuple[Any, str, Any]] = {
    "alarm_email": ("not a mail; foo", "alarm_email", "a@example.com"),
    "author": ("", "owner", "ann"),
    "executor_handler": ("", "handler", "close"),
    "executor_timeout": (-5, "timeout_s", 5),
    "misfire_strategy": ("OLD", "misfire_strategy", "FIRE_ONCE_NOW"),
    "executor_route_strategy": ("OLD", "route_strategy", "LAST"),
}


@pytest.mark.parametrize("prune", [[], ["sample/close"]])
def test_values_that_no_new_job_may_have_are_put_back(prune: list[str]) -> None:
    unusual = {column: value for column, (value, _member, _new) in UNUSUAL.items()}
    make_group(app_name="other-app")
    make_job(job_group=make_group(app_name="sample").id, job_desc="Close", **unusual)
    apply({"jobs": {"sample/close": {"description": "Close"}}})
    usual = {member: new for _value, member, new in UNUSUAL.values()}
    document = {} if prune else {"jobs": {"sample/close": {"description": "Close", **usual}}}
    undo(apply(document, prune=prune).apply_id)
    job = only_row(Job)
    assert {column: getattr(job, column) for column in UNUSUAL} == unusual


def test_code_with_a_short_remark_is_put_back() -> None:
    code = {"language": "GLUE_SHELL", "source": "echo 1\n", "remark": "v1"}
    apply({"groups": {"sample": {}}, "jobs": {"sample/close": {"code": code}}})
    changed = {**code, "source": "echo 2\n", "remark": "second version"}
    undo(apply({"jobs": {"sample/close": {"code": changed}}}).apply_id)
    assert (only_row(Job).glue_source, only_row(Job).glue_remark) == ("echo 1\n", "v1")


def test_a_field_that_was_changed_since_is_not_overwritten() -> None:
    apply(WHOLE)
    applied = apply({"jobs": {"sample/close": {**CLOSE, "timeout_s": 9, "owner": "bob"}}})
    job = only_row(Job, job_desc="Close the books")
    change(job, executor_timeout=10)
    with pytest.raises(Conflict, match="job sample/close: timeout_s changed since"):
        undo(applied.apply_id)
    assert only_row(Job, id=job.id).author == "bob"
    undo(applied.apply_id, forced=True)
    assert (only_row(Job, id=job.id).executor_timeout, only_row(Job, id=job.id).author) == (0, "ann")


def test_other_fields_may_have_been_changed_since() -> None:
    apply(WHOLE)
    applied = apply({"jobs": {"sample/close": {**CLOSE, "timeout_s": 9}}})
    change(only_row(Job, job_desc="Close the books"), executor_param="x")
    undo(applied.apply_id)
    assert only_row(Job, job_desc="Close the books").executor_timeout == 0


def test_an_apply_is_undone_once() -> None:
    make_group(app_name="other-app")
    apply_id = apply(WHOLE).apply_id
    undo(apply_id)
    with pytest.raises(Conflict, match="was undone already"):
        undo(apply_id)
    with pytest.raises(NotFound):
        undo(99)
    assert [group.app_name for group in all_rows(Group)] == ["other-app"]


@every_database
def test_jobs_with_very_many_runs_are_not_deleted_in_one_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.code.deletions.DELETED_RUNS_MAX", 1)
    applied = apply({"groups": {"sample": {}}, "jobs": {"sample/close": CLOSE, "sample/other": CLOSE}})
    close, other = all_rows(Job)
    make_log(close)
    assert [each.key for each in plan({}, prune=["sample/close"]).objects] == ["sample/close"]
    make_log(other)
    with pytest.raises(Conflict, match="more than 1 runs"):
        plan({}, prune=["sample/close", "sample/other"])
    with pytest.raises(Conflict, match="more than 1 runs"):
        undo(applied.apply_id)
    assert len(all_rows(Job)) == 2


def test_what_was_renamed_since_is_changed_back_under_its_new_name() -> None:
    ops = {"kind": "mail", "settings": {"addresses": "ops@example.com"}, "for_all": True}
    apply({"groups": {"sample": {"title": "Sample"}}, "channels": {"Ops": ops}})
    changed = {**ops, "settings": {"addresses": "night@example.com"}}
    applied = apply({"groups": {"sample": {"title": "Other"}}, "channels": {"Ops": changed}})
    with session_scope() as session:
        session.execute(update(Group).where(Group.app_name == "sample").values(app_name="sample-2"))
        session.execute(update(AlarmChannel).values(name="Night"))
    undo(applied.apply_id)
    assert only_row(Group, app_name="sample-2").title == "Sample"
    assert all_rows(Group, app_name="sample") == []
    channel = only_row(AlarmChannel, name="Night")
    assert settings_of(channel)["addresses"] == "ops@example.com"
