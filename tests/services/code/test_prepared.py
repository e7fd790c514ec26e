"""Applies and undoings that are planned before their transaction, while others change something."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from app.database.engine import session_scope
from app.errors import Conflict
from app.models.channel import AlarmChannel
from app.models.code import Apply
from app.models.group import Group
from app.models.job import Job
from app.models.tag import JobTag
from tests.services.code.steps import CLOSE, NIGHTLY, apply, plan, prepare, write
from tests.support import code
from tests.support.factories import all_rows, make_group, make_job, only_row, save
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

OPS = {"kind": "mail", "settings": {"addresses": "ops@example.com"}}
STORED: dict[str, Any] = {
    "groups": {"sample": {"title": "Sample"}},
    "jobs": {"sample/close": CLOSE | NIGHTLY, "sample/mail": {**CLOSE, "description": "Mail the report"}},
    "channels": {"Ops": {**OPS, "groups": ["sample"]}},
}
WANTED: dict[str, Any] = {
    "groups": {"sample": {"title": "Samples"}},
    "jobs": {
        "sample/close": {**CLOSE, **NIGHTLY, "schedule": "0 0 3 * * ?", "children": ["mail"]},
        "sample/new": {**CLOSE, "description": "New", "tags": ["money"]},
    },
    "channels": {"Ops": {**OPS, "jobs": ["sample/close"]}},
}


def change(model: type[Any], **columns: Any) -> None:
    """Change a row, which the first column names."""
    (name, value), *changed = columns.items()
    with session_scope() as session:
        row = session.scalars(select(model).filter_by(**{name: value})).one()
        for column, new in changed:
            setattr(row, column, new)


def test_what_was_prepared_is_written_as_it_was_planned() -> None:
    apply(STORED)
    prepared = prepare(WANTED)
    change(Group, app_name="sample", address_list="http://127.0.0.1:9999/")  # registered, not entered
    change(Job, job_desc="Close the books", trigger_next_time=4_000_000_000_000)
    assert write(prepared).plan is prepared.plan
    assert plan(WANTED).is_empty


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda: change(Job, job_desc="Close the books", author="bob"),
        lambda: change(Job, job_desc="Close the books", trigger_status=1),
        lambda: change(Job, job_desc="Mail the report", child_jobid=str(only_row(Job, author="eve").id)),
        lambda: save(JobTag(job_id=only_row(Job, job_desc="Close the books").id, tag="late", tag_key="late")),
        lambda: change(Group, app_name="sample", title="Example"),
        lambda: change(AlarmChannel, name="Ops", for_all=1),
        lambda: apply({"groups": {"sample": {}}}),
        lambda: make_job(
            job_group=only_row(Group).id, job_desc="New", executor_handler=CLOSE["handler"], author="joe"
        ),
    ],
    ids=["column", "switch", "child", "tag", "group", "channel", "owner", "to adopt"],
)
def test_an_apply_is_planned_again_where_something_has_changed(meanwhile: Callable[[], object]) -> None:
    apply(STORED)
    make_job(job_group=only_row(Group).id, author="eve")
    prepared = prepare(WANTED)
    meanwhile()
    now = plan(WANTED)
    applied = write(prepared)
    assert applied.plan is not prepared.plan
    assert applied.plan.digest == now.digest
    assert plan(WANTED).is_empty


@every_database
def test_of_two_applies_at_the_same_time_one_adds_the_jobs() -> None:
    first, second = prepare(STORED), prepare(STORED)
    assert (write(first).apply_id > 0, write(second).apply_id) == (True, 0)
    assert len(all_rows(Job)) == 2


def test_an_apply_that_is_no_longer_what_was_shown_is_a_conflict() -> None:
    apply(STORED)
    prepared = prepare(WANTED, plan_hash=plan(WANTED).digest)
    change(Job, job_desc="Close the books", author="bob")
    with pytest.raises(Conflict, match="no longer what the plan showed"):
        write(prepared)
    assert len(all_rows(Apply)) == 1


def test_an_apply_is_undone_once() -> None:
    make_group(app_name="other")
    apply_id = apply(STORED).apply_id
    first, second = code.prepare(apply_id), code.prepare(apply_id)
    code.write(first)
    with pytest.raises(Conflict, match="undone already"):
        code.write(second)


@every_database
def test_an_undoing_is_refused_where_something_has_changed_meanwhile() -> None:
    apply(STORED)
    prepared = code.prepare(apply(WANTED).apply_id)
    change(Job, job_desc="Close the books", schedule_conf="0 0 4 * * ?")
    with pytest.raises(Conflict, match="job sample/close: schedule changed since"):
        code.write(prepared)
    forced = code.prepare(prepared.request.apply_id, forced=True)
    change(Job, job_desc="Close the books", author="bob")
    code.write(forced)
    job = only_row(Job, job_desc="Close the books")
    assert (job.schedule_conf, job.author) == ("0 0 2 * * ?", "bob")
