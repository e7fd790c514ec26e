"""Ownership: what the page of a job reports of fields owned by code."""

from typing import Any

import pytest

from app.database.engine import read_scope, session_scope
from app.models.channel import AlarmChannel
from app.models.code import JobVersion
from app.models.group import Group
from app.models.job import Job
from app.services.code.ownership import Ownership, ownership_of
from app.services.jobs import glue
from tests.services.code.steps import ADMIN, CLOSE, NIGHTLY, apply
from tests.support.factories import T0, all_rows, make_job, only_row, remove

pytestmark = pytest.mark.usefixtures("database")


def document(**job: Any) -> dict[str, Any]:
    return {"groups": {"books": {"title": "Books"}}, "jobs": {"books/close": {**CLOSE, **NIGHTLY, **job}}}


def owned(job: Job) -> Ownership:
    with read_scope() as session:
        found = ownership_of(session, session.get_one(Job, job.id))
    assert found is not None
    return found


def change(**columns: Any) -> None:
    with session_scope() as session:
        job = session.query(Job).filter_by(job_desc=CLOSE["description"]).one()
        for name, value in columns.items():
            setattr(job, name, value)


def test_a_job_of_the_console_is_not_owned() -> None:
    job = make_job()
    with read_scope() as session:
        assert ownership_of(session, session.get_one(Job, job.id)) is None


def test_owned_fields_and_what_was_changed_elsewhere_are_named() -> None:
    apply(document(enabled=True, tags=["night"]))
    job = only_row(Job)
    found = owned(job)
    assert (found.key, found.source, found.applied_ms) == ("books/close", "infra@1a2b3c", T0)
    assert {*CLOSE, *NIGHTLY, "enabled", "tags"} <= set(found.members)
    assert "timeout_s" not in found.members
    assert found.drift == {}
    change(schedule_conf="0 0 3 * * ?", trigger_status=0, executor_timeout=9)
    assert owned(job).drift == {"schedule": ("0 0 2 * * ?", "0 0 3 * * ?"), "enabled": (True, False)}


def test_children_and_code_drift_too() -> None:
    both = document(children=["books/send"])
    both["jobs"]["books/send"] = {
        "description": "Send",
        "owner": "ann",
        "code": {"language": "GLUE_SHELL", "source": "echo 1\n"},
    }
    apply(both)
    parent, child = only_row(Job, job_desc="Close the books"), only_row(Job, job_desc="Send")
    assert (owned(parent).drift, owned(child).drift) == ({}, {})
    with session_scope() as session:
        glue.save_source(session, child.id, "echo 2\n", "two two", actor=ADMIN, now_ms=T0)
    assert set(owned(child).drift) == {"code"}
    change(child_jobid="")
    assert owned(parent).drift == {"children": ([child.id], [])}


def test_alarm_channels_drift_by_name() -> None:
    channel = {"kind": "webhook", "settings": {"url": "https://alarms.example.com/"}}
    apply(document(alarm_channels=["ops"]) | {"channels": {"ops": channel}})
    job = only_row(Job)
    assert owned(job).drift == {}
    remove(only_row(AlarmChannel))
    assert owned(job).drift == {"alarm_channels": (["ops"], [])}


def test_an_apply_makes_a_version_that_names_its_source() -> None:
    apply(document())
    apply(document(param="x"), source="infra@9f8e7d")
    assert only_row(Group).app_name == "books"
    assert [(row.number, row.source) for row in all_rows(JobVersion)] == [
        (1, "apply infra@1a2b3c"),
        (2, "apply infra@9f8e7d"),
    ]
