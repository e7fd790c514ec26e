"""Cron fields: allowed values and errors."""

import pytest

from app.domain.schedules.cron.days import mask_of
from app.domain.schedules.cron.expression import CronExpression
from app.domain.schedules.cron.fields import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    YEAR,
    AllowedValues,
    Field,
    InvalidCronExpression,
    parse_field,
)
from tests.support.truth_table import truth_table


@truth_table(
    "field, text, values",
    [
        (SECOND, "5", {5}),
        (SECOND, "0/20", {0, 20, 40}),
        (SECOND, "/20", {0, 20, 40}),
        (SECOND, "*/20", {0, 20, 40}),
        (MINUTE, "10-30/10", {10, 20, 30}),
        (MINUTE, "58-1", {58, 59, 0, 1}),
        (HOUR, "22-2", {22, 23, 0, 1, 2}),
        (HOUR, "1,3,,5", {1, 3, 5}),
        (HOUR, "99", set(range(24))),
        (HOUR, "8PM", {8}),
        (HOUR, "6/0", {6}),
        (DAY_OF_MONTH, "30-2", {30, 31, 1, 2}),
        (DAY_OF_MONTH, "*/10", {1, 11, 21, 31}),
        (MONTH, "NOV-FEB", {11, 12, 1, 2}),
        (MONTH, "JANUARY", {1}),
        (DAY_OF_WEEK, "FRI-MON", {6, 7, 1, 2}),
        (DAY_OF_WEEK, "L", {7}),
        (DAY_OF_WEEK, "2-4,SAT", {2, 3, 4, 7}),
    ],
)
def test_a_field_allows_these_values(field: Field, text: str, values: set[int]) -> None:
    mask = mask_of(field, parse_field(field, text))
    assert {value for value in range(100) if mask >> value & 1} == values


@truth_table(
    "field, text, allowed",
    [
        (DAY_OF_MONTH, "?", AllowedValues(no_value=True)),
        (DAY_OF_MONTH, "98", AllowedValues(no_value=True)),
        (DAY_OF_MONTH, "L", AllowedValues(last=True)),
        (DAY_OF_MONTH, "L-3W", AllowedValues(last=True, last_offset=3, workday=True)),
        (DAY_OF_MONTH, "15W", AllowedValues((range(15, 16),), workday=True)),
        (DAY_OF_WEEK, "6L", AllowedValues((range(6, 7),), last=True)),
        (DAY_OF_WEEK, "FRI#3", AllowedValues((range(6, 7),), nth=3)),
        (YEAR, "1970-99999999", AllowedValues((range(1970, 100_000_000),))),
    ],
)
def test_a_field_keeps_its_option(field: Field, text: str, allowed: AllowedValues) -> None:
    assert parse_field(field, text) == allowed


@truth_table(
    "expression, field, text, hint",
    [
        ("60 * * * * ?", "second", "60", "0-59"),
        ("0 0 24 * * ?", "hour", "24", "0-23"),
        ("0 0 0 32 * ?", "day of month", "32", "1-31"),
        ("0 0 0 1 13 ?", "month", "13", "1-12"),
        ("0 0 0 1 FOO ?", "month", "FOO", "JAN-DEC"),
        ("0 0 0 ? * 8", "day of week", "8", "1-7"),
        ("0 0 0 ? * MON-XYZ", "day of week", "MON-XYZ", "SUN-SAT"),
        ("0 0/60 * * * ?", "minute", "0/60", "at most 59"),
        ("0 0/ * * * ?", "minute", "0/", "whole number"),
        ("0 5- * * * ?", "minute", "5-", "a number must follow"),
        ("0 * ? * * ?", "hour", "?", "day of month or the day of week"),
        ("0 0 15W * * ?", "hour", "15W", "day of month"),
        ("0 0 0 6L * ?", "day of month", "6L", "day of week"),
        ("0 0 0 0W * ?", "day of month", "0W", "1-31"),
        ("0 0 0 L-31 * ?", "day of month", "L-31", "30"),
        ("0 0 0 ? * 2L,3L", "day of week", "2L,3L", "alone"),
        ("0 0 0 ? * 6#6", "day of week", "6#6", "1 to 5"),
        ("0 0 0 ? * 6#3,2#1", "day of week", "6#3,2#1", "one #"),
        ("0 0 0 1 1 ? 2030-2020", "year", "2030-2020", "not be after"),
        ("L 0 0 1 1 ?", "second", "L", "0-59"),
        ("99999999999 0 0 1 1 ?", "second", "99999999999", "too large"),
        ("0 0 0 * * *", "expression", "0 0 0 * * *", "exactly one"),
        ("0 0 0 ? * ?", "expression", "0 0 0 ? * ?", "exactly one"),
        ("0 0 0 *", "expression", "0 0 0 *", "5, 6 or 7 fields"),
        ("", "expression", "", "5, 6 or 7 fields"),
    ],
)
def test_an_error_names_the_field_the_text_and_the_allowed_values(
    expression: str, field: str, text: str, hint: str
) -> None:
    with pytest.raises(InvalidCronExpression) as caught:
        CronExpression.parse(expression)
    assert (caught.value.field, caught.value.text) == (field, text)
    assert field in str(caught.value)
    assert text in str(caught.value)
    assert hint in str(caught.value)


@truth_table("text", ["9" * 5000, "0 " * 5000, "1," * 3000 + "1 * * * * ?"])
def test_a_very_long_text_is_refused_at_once(text: str) -> None:
    with pytest.raises(InvalidCronExpression, match="at most 1000 characters"):
        CronExpression.parse(text)
