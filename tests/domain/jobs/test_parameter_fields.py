"""Parameters of typed handlers as fields, and back as JSON text."""

from typing import Any

import pytest

from app.domain.jobs.parameter_fields import (
    CHOICES_MAX,
    REQUIRED,
    Kind,
    ParameterField,
    compose,
    fields_of,
    values_of,
)
from app.errors import InvalidInput
from tests.support.truth_table import truth_table

SCHEMA = {
    "type": "object",
    "properties": {
        "day": {"type": "string", "format": "date", "description": "first day"},
        "limit": {"type": "integer", "default": 100, "title": "rows at most"},
        "rate": {"type": ["number", "null"], "default": None},
        "state": {"enum": ["new", "old", 7, None]},
        "dry": {"type": "boolean", "default": True},
        "deep": {"type": ["boolean", "null"], "default": None},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "note": {"type": "string", "default": "none"},
    },
    "required": ["day"],
}
FIELDS = fields_of(SCHEMA)


def test_the_kind_of_each_field() -> None:
    assert [(each.name, each.kind) for each in FIELDS] == [
        ("day", Kind.DATE),
        ("limit", Kind.INTEGER),
        ("rate", Kind.NUMBER),
        ("state", Kind.CHOICE),
        ("dry", Kind.CHECK),
        ("deep", Kind.CHOICE),
        ("ids", Kind.JSON),
        ("note", Kind.TEXT),
    ]
    assert FIELDS[0] == ParameterField("day", Kind.DATE, True, None, (), "first day")
    assert (FIELDS[0].label, FIELDS[1].label) == ("day", "rows at most")
    assert FIELDS[3].choices == ("new", "old", 7)
    assert (FIELDS[1].default_text, FIELDS[4].default_text, FIELDS[7].default_text) == ("100", "true", "none")


@truth_table(
    "schema",
    [
        None,
        [],
        {},
        {"properties": {}},
        {"properties": []},
        {"properties": {"a": 1}},
        {"properties": {"a" * 101: {}}},
        {"properties": {"a\ud800": {}}},
        {"properties": {" ": {}}},
        {"properties": {f"p{number}": {} for number in range(31)}},
    ],
)
def test_other_schemas_have_no_fields(schema: Any) -> None:
    assert fields_of(schema) == ()


def test_fields_become_json_text_without_those_left_empty() -> None:
    texts = {"day": "2024-05-01", "rate": "1.5", "state": "7", "deep": "false", "ids": "[1,2]", "note": " é"}
    assert compose(FIELDS, texts) == (
        '{"day":"2024-05-01","rate":1.5,"state":7,"dry":false,"deep":false,"ids":[1,2],"note":" é"}'
    )
    assert compose(FIELDS[1:4], {}) == ""
    assert compose(FIELDS[6:7], {"ids": "1,2"}) == '{"ids":"1,2"}', "the handler splits it"


def test_each_error_names_its_field() -> None:
    with pytest.raises(InvalidInput) as refused:
        compose(FIELDS, {"limit": "1.5", "rate": "NaN", "state": "lost", "day": " "})
    messages = {each.field: each.message for each in refused.value.errors}
    assert messages == {
        "day": REQUIRED,
        "limit": '"1.5" is not a whole number',
        "rate": '"NaN" is not a number',
        "state": '"lost" is not one of the choices',
    }
    with pytest.raises(InvalidInput, match="is not a date such as 2024-05-01"):
        compose(FIELDS, {"day": "1.5.2024"})


def test_a_parameter_fills_the_fields() -> None:
    assert values_of(FIELDS, "") == {"dry": "true"}
    assert values_of(FIELDS, '{"day":"2024-05-01","limit":5,"dry":false,"ids":[1]}') == {
        "day": "2024-05-01",
        "limit": "5",
        "dry": "false",
        "ids": "[1]",
    }


def test_a_large_number_is_taken() -> None:
    assert compose(FIELDS, {"day": "2024-05-01", "limit": "1" + "0" * 400}).count("0") > 400


def test_what_no_page_can_hold_is_replaced() -> None:
    hostile = {"type": [{}], "default": "\ud800", "description": "a\ud800", "enum": ["\ud800"]}
    (field,) = fields_of({"properties": {"a": {**hostile, "title": "\udfff"}}})
    assert (field.default_text, field.hint, field.label) == ("?", "a?", "?")
    assert fields_of({"properties": {"a": {"type": [[]]}}})[0].kind is Kind.JSON
    assert values_of([field], '{"a":"\\ud800"}') == {"a": "?"}


def test_each_choice_is_offered_once() -> None:
    (field,) = fields_of({"properties": {"a": {"enum": ["", " ", None, 1, "1", "b\nc", "b\r\nc"]}}})
    assert field.choices == (1, "b\nc"), "an empty field is the default"
    assert compose([field], {"a": "b\r\nc"}) == '{"a":"b\\nc"}', "browsers send line ends so"


def test_a_long_list_of_choices_is_not_shown() -> None:
    texts, numbers = ([kind(each) for each in range(CHOICES_MAX + 1)] for kind in (str, int))
    fields = fields_of({"properties": {"a": {"enum": texts}, "b": {"enum": numbers}}})
    assert [each.kind for each in fields] == [Kind.TEXT, Kind.JSON]
    assert compose(fields, {"a": "007", "b": "7"}) == '{"a":"007","b":7}'


@truth_table(
    "text",
    [
        "day=2024-05-01",
        "[1]",
        '{"other":1}',
        "{",
        '{"dry":"yes"}',
        '{"state":"gone"}',
        '{"state":null}',
        '{"limit":"5"}',
        '{"rate":null}',
        '{"day":"20240501"}',
        '{"note":""}',
        '{"note":"two\\nlines"}',
        '{"ids":"7"}',
    ],
)
def test_some_parameters_are_shown_as_text_only(text: str) -> None:
    assert values_of(FIELDS, text) is None
