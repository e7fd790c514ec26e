"""Job members: one name for every attribute that users set, and values that survive JSON and back."""

from dataclasses import fields

import pytest

from app.domain.jobs.fields import JOB_FIELDS, JobDraft
from app.domain.jobs.members import (
    MEMBER_OF_ERROR,
    MEMBERS,
    PLAIN_MEMBERS,
    draft_values,
    read_members,
    with_member_names,
)
from app.domain.text.texts import N_
from app.errors import ForeignValue, InvalidInput
from tests.support.truth_table import truth_table

#: attributes of a draft that users do not set
NOT_SET = {"readable_by_java", "unreadable"}
AT_MS = 1_714_532_645_123


def test_every_attribute_of_a_draft_has_one_member() -> None:
    attributes = [member.attribute for member in MEMBERS]
    assert sorted(attributes) == sorted({each.name for each in fields(JobDraft)} - NOT_SET)
    assert len({member.name for member in MEMBERS}) == len(MEMBERS)


def test_a_draft_survives_the_way_to_json_and_back() -> None:
    draft = JobDraft(
        job_group=7,
        job_desc="night",
        child_jobid="3,5",
        not_before_ms=AT_MS,
        tags=("a",),
        executor_timeout=9,
        fill_parameter=1,
    )
    members = read_members(draft, draft.tags or ())
    assert (members["children"], members["tags"], members["timeout_s"]) == ([3, 5], ["a"], 9)
    assert members["fill_parameter"] is True
    assert (members["not_before"], members["not_after"]) == ("2024-05-01T03:04:05.123Z", None)
    assert JobDraft(**draft_values(members)) == draft


def test_a_version_has_no_code() -> None:
    assert {each.attribute for each in MEMBERS} - {each.attribute for each in PLAIN_MEMBERS} == {
        "glue_source",
        "glue_remark",
    }


@truth_table("field", JOB_FIELDS)
def test_an_error_names_the_member_of_its_field(field) -> None:
    member = next(each for each in MEMBERS if each.attribute == field.attribute)
    assert MEMBER_OF_ERROR[field.error_name] == member.name


def test_all_errors_of_an_input_are_renamed() -> None:
    error = InvalidInput("jobDesc", N_("%(field)s is too long", field="jobDesc"))
    error.further_errors = (
        ForeignValue("childJobId", "was not found"),
        InvalidInput("notAfter", "too early"),
    )
    renamed = with_member_names(error)
    assert renamed.message == "description is too long"
    assert [(each.field, type(each)) for each in renamed.errors] == [
        ("description", InvalidInput),
        ("children", ForeignValue),
        ("not_after", InvalidInput),
    ]


def test_new_jobs_have_the_defaults_of_the_fields_or_the_first_choice() -> None:
    defaults = {member.name: member.default for member in MEMBERS}
    assert [name for name, member in ((each.name, each) for each in MEMBERS) if member.is_required] == [
        "group_id",
        "description",
        "owner",
    ]
    assert (defaults["schedule_type"], defaults["run_mode"], defaults["route_strategy"]) == (
        "NONE",
        "BEAN",
        "FIRST",
    )
    assert (defaults["delivery"], defaults["retry_backoff_percent"]) == ("auto", 100)


@truth_table("text", ["soon", "2024-05-01", "1970-01-01T00:00:00Z"])
def test_an_invalid_bound_names_its_member(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        draft_values({"not_before": text})
    assert caught.value.field == "not_before"
