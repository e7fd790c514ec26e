"""A document of a file: every member is known and has a value of its type."""

from typing import Any

import pytest

from app.domain.code.value_types import check_document
from app.errors import InvalidInput
from tests.support.truth_table import truth_table


def job(**members: Any) -> dict[str, Any]:
    return {"jobs": {"a/b": members}}


@truth_table(
    "content, field, problem",
    [
        ([], "file", "must be a document"),
        ({"format": 2}, "file", "must be a document"),
        ({"format": True}, "file", "must be a document"),
        ({"job": {}}, "job", "known members: format, groups"),
        ({"jobs": "a/b"}, "jobs", "mapping of keys"),
        ({"jobs": {"a/b": "x"}}, "jobs.a/b", "mapping of members"),
        (job(jobDesc="x"), "jobs.a/b.jobDesc", "There is no such member"),
        (job(description=7), "jobs.a/b.description", "Must be text"),
        (job(timeout_s="5"), "jobs.a/b.timeout_s", "whole number"),
        (job(timeout_s=True), "jobs.a/b.timeout_s", "whole number"),
        (job(enabled=1), "jobs.a/b.enabled", "true or false"),
        (job(not_after=5), "jobs.a/b.not_after", "empty or a time"),
        (job(not_after="2030-01-31 08:00:00"), "jobs.a/b.not_after", "a time with an offset"),
        (job(tags="a"), "jobs.a/b.tags", "list of strings"),
        (job(children=[1]), "jobs.a/b.children", "list of strings"),
        (job(code="echo"), "jobs.a/b.code", "mapping of names"),
        (job(code={"language": "GLUE_PHP", "file": "x"}), "jobs.a/b.code.file", "no such member"),
        ({"groups": {"a": {"address_type": "both"}}}, "groups.a.address_type", "automatic, manual"),
        ({"channels": {"Ops": {"kind": "webhook"}}}, "file", "Alarm channels are not imported"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(content: Any, field: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_document(content)
    assert refused.value.field == field
    assert problem in refused.value.message


def test_the_errors_of_all_objects_are_raised_together() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_document({"groups": {"a": 1}, **job(timeout_s="5", enabled=0)})
    assert [each.field for each in refused.value.errors] == [
        "groups.a",
        "jobs.a/b.timeout_s",
        "jobs.a/b.enabled",
    ]


def test_a_document_of_every_member_is_read() -> None:
    members = {"description": "x", "timeout_s": 5, "not_after": None, "tags": [], "enabled": True}
    document = check_document({"format": 1, **job(**members), "groups": None})
    assert document.jobs == {"a/b": members}
    assert (document.groups, document.channels) == ({}, {})
