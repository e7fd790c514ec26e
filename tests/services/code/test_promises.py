"""Promises and escalations of jobs and groups as code: planned once, drifted, exported, undone, refused."""

import json
from typing import Any

import pytest

from app.database.engine import session_scope
from app.errors import InvalidInput
from app.models.group import Group
from app.models.job import Job
from executor_client.code.loading import load_text
from executor_client.code.writing import write_text
from tests.services.code.steps import CLOSE, NIGHTLY, apply, plan, shown
from tests.support.code import drift, exported, undo
from tests.support.factories import only_row
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

ESCALATION = {"channel": "On call", "after_minutes": 15}
OWED: dict[str, Any] = {
    "groups": {
        "sample": {
            "title": "Sample",
            "promises": [{"kind": "fails_at_most", "n": 0}],
            "escalation": ESCALATION,
        }
    },
    "jobs": {
        "sample/close": {
            **CLOSE,
            **NIGHTLY,
            "promises": [{"kind": "finishes_by", "at": "06:00"}, {"kind": "takes_usual_times", "times": 2.5}],
            "escalation": ESCALATION,
        }
    },
    "channels": {"On call": {"kind": "mail", "settings": {"addresses": "ops@example.com"}}},
}


@every_database
def test_what_was_applied_is_neither_planned_again_nor_drifted() -> None:
    apply(OWED)
    assert shown(plan(OWED)) == []
    assert drift() == []
    group, job = only_row(Group), only_row(Job)
    assert json.loads(group.promises or "") == [{"kind": "fails_at_most", "n": 0, "then": "alarm"}]
    assert json.loads(group.escalation or "") == ESCALATION
    assert json.loads(job.promises or "")[1] == {"kind": "takes_usual_times", "times": 2.5, "then": "alarm"}


def test_changes_elsewhere_are_drift() -> None:
    apply(OWED)
    with session_scope() as session:
        session.get_one(Group, only_row(Group).id).promises = None
        session.get_one(Job, only_row(Job).id).escalation = None
    assert [(each.key, [change.field for change in each.fields]) for each in drift()] == [
        ("sample", ["promises"]),
        ("sample/close", ["escalation"]),
    ]
    assert [item[3] for item in shown(plan(OWED))] == [["promises"], ["escalation"]]


def test_members_that_a_document_does_not_name_are_left_alone() -> None:
    apply(OWED)
    with session_scope() as session:
        session.get_one(Group, only_row(Group).id).escalation = '{"channel": "Gone", "after_minutes": 5}'
    apply({"groups": {"sample": {"title": "Other"}}})
    group = only_row(Group)
    assert (group.title, group.escalation) == ("Other", '{"channel": "Gone", "after_minutes": 5}')


def test_they_are_removed_by_empty_values_and_put_back_by_an_undo() -> None:
    apply(OWED)
    before = exported()
    none = {"promises": [], "escalation": None}
    apply_id = apply({"groups": {"sample": none}, "jobs": {"sample/close": {**CLOSE, **none}}}).apply_id
    for row in (only_row(Group), only_row(Job)):
        assert (row.promises, row.escalation) == (None, None)
    undo(apply_id)
    assert exported() == before


def test_an_exported_file_makes_the_same() -> None:
    apply(OWED)
    document = exported()
    assert document["groups"]["sample"]["escalation"] == ESCALATION
    text = write_text(document, {})
    loaded = load_text(text, "file").document
    planned = shown(plan({name: loaded[name] for name in ("groups", "jobs")}))
    assert [fields for _kind, _key, _action, fields in planned] == [[], []], "ownership alone changes"


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"promises": [{"kind": "starts_within", "s": 0}]}, "promises.0.s"),
        ({"promises": [{"kind": "ends"}]}, "promises.0"),
        ({"promises": "x"}, "promises"),
        ({"escalation": {"channel": "Other", "after_minutes": 5}}, "escalation.channel"),
        ({"escalation": {"channel": "On call"}}, "escalation.after_minutes"),
    ],
)
def test_an_error_names_its_place(members: dict[str, Any], place: str) -> None:
    for section, key, own in (
        ("groups", "sample", {"title": "Sample"}),
        ("jobs", "sample/close", {**CLOSE, **NIGHTLY}),
    ):
        document = {**OWED, section: {key: {**own, **members}}}
        with pytest.raises(InvalidInput) as caught:
            plan(document)
        assert [error.field for error in caught.value.errors] == [f"{section}.{key}.{place}"]
