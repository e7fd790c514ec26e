"""Job fields: a complete table without repetitions, within the limits of the columns."""

from enum import StrEnum

from sqlalchemy import String, Text

from app.domain.jobs.fields import FIELD_OF, JOB_FIELDS, JobDraft, plain_fields
from app.domain.jobs.job_field import JobField, Kind
from app.domain.schedules.schedule import MAX_CONF_LENGTH
from app.models.job import Job
from tests.support.truth_table import truth_table

#: columns written by the scheduler, the GLUE editor or the database
NOT_ENTERED = {
    "has_followers",
    "id",
    "add_time",
    "update_time",
    "glue_updatetime",
    "trigger_status",
    "trigger_last_time",
    "trigger_next_time",
    "last_fire_ms",
}


def test_the_table_has_a_field_for_every_column_that_users_enter() -> None:
    assert set(FIELD_OF) == {column.name for column in Job.__table__.columns} - NOT_ENTERED


def test_no_two_fields_share_a_name() -> None:
    names = [field.wire_name for field in JOB_FIELDS if field.wire_name]
    assert len(names) == len(set(names))


def test_a_new_draft_has_the_defaults_of_the_table() -> None:
    draft = JobDraft()
    assert {name: getattr(draft, name) for name in FIELD_OF} == {
        name: field.default for name, field in FIELD_OF.items()
    }


@truth_table("field", plain_fields(Kind.TEXT))
def test_the_longest_text_fits_its_column(field: JobField) -> None:
    column = Job.__table__.columns[field.attribute].type
    assert isinstance(column, String)
    # A text of any length is no VARCHAR, for which the row of an adopted table may have no room.
    assert isinstance(column, Text) or column.length == field.max_length


def test_the_other_texts_fit_their_columns() -> None:
    limits = {
        "child_jobid": FIELD_OF["child_jobid"].max_length,
        "glue_remark": FIELD_OF["glue_remark"].max_length,
        "schedule_conf": MAX_CONF_LENGTH,
    }
    columns = Job.__table__.columns
    assert limits == {name: columns[name].type.length for name in limits}  # type: ignore[attr-defined]


def test_every_choice_has_values_and_an_error_and_every_number_a_range() -> None:
    for field in JOB_FIELDS:
        if field.kind is Kind.CHOICE:
            assert field.choices is not StrEnum, field.attribute
            assert field.invalid, field.attribute
        if field.kind is Kind.NUMBER:
            assert field.low <= field.default <= field.high, field.attribute


def test_a_new_field_has_no_name_in_the_endpoints_of_the_original() -> None:
    """A script that knows neither of them adds a job with the default, and leaves others as they are."""
    new_kinds = {Kind.INSTANT, Kind.BOOLEAN, Kind.STRUCTURE}
    assert {field.kind for field in JOB_FIELDS if not field.wire_name} == new_kinds
    assert not any(field.wire_name for kind in new_kinds for field in plain_fields(kind))


def test_a_plain_field_can_be_shown_and_sent() -> None:
    for kind in (Kind.TEXT, Kind.CHOICE, Kind.NUMBER):
        for field in plain_fields(kind):
            assert field.label, field.attribute
            assert field.wire_name, field.attribute
    assert plain_fields(Kind.INSTANT) == ()


@truth_table(
    "attribute, value, is_allowed",
    [
        ("executor_param", "x" * 2_048, True),
        ("executor_param", "x" * 2_049, False),
        ("executor_timeout", 0, True),
        ("executor_timeout", -5, False),
        ("misfire_strategy", "DO_NOTHING", True),
        ("misfire_strategy", "OLD", False),
        ("not_before_ms", "2030-03-17T17:46:40.000Z", True),
    ],
)
def test_a_value_lies_within_the_limits_or_not(attribute: str, value: object, is_allowed: bool) -> None:
    assert FIELD_OF[attribute].allows(value) is is_allowed
