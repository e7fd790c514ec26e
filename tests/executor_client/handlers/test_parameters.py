"""Typed parameters: from the text of a job's parameter to the arguments of its handler."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Optional
from uuid import UUID

import pytest

from executor_client import HandlerRegistry, context
from executor_client.handlers.registry import Handler
from executor_client.testing import run_handler
from executor_client.wire.errors import HandlerConflict, InvalidParameters
from tests.executor_client import postponed_annotations
from tests.support.truth_table import truth_table

DAY = date(2026, 1, 31)


MISSING_INSTANT = "at: missing; expected YYYY-MM-DDTHH:MM:SS, with or without an offset such as Z or +02:00"


class Region(Enum):
    """Choice with values that differ from the names."""

    NORTH = "n"
    SOUTH = "s"


@dataclass
class Line:
    """Part of an order."""

    article: str
    price: Decimal


@dataclass
class Order:
    """Object in a parameter."""

    id: int
    lines: list[Line] = field(default_factory=list)
    note: Optional["str"] = None

    def __post_init__(self) -> None:
        if self.id == 0:
            raise ValueError("id must not be 0")


@dataclass
class Complaint(postponed_annotations.Note):
    """Object with a field whose annotation only the module of its base can resolve."""

    order: int = 0


Customer = NewType("Customer", int)


def sync(day: date, limit: int = 100, tags: list[str] | None = None) -> None:
    """Typed handler."""


def one_text(query: str) -> None:
    """Handler with a single text."""


def one_instant(at: datetime) -> None:
    """Handler with a single value whose text may have a blank."""


def one_list(ids: list[int]) -> None:
    """Handler with a single list."""


def one_order(order: Order) -> None:
    """Handler with a single object."""


def one_complaint(complaint: Complaint) -> None:
    """Handler with a single object that has a base."""


def spread(first: int, *others: int, **options: float) -> None:
    """Handler with a variable number of arguments."""


def untyped(day, limit=5) -> None:  # type: ignore[no-untyped-def]
    """Handler without annotations."""


def places(first: int, /, second: int = 2, *, third: int = 3) -> None:
    """Handler with every kind of argument."""


def arguments(function: Callable[..., Any], text: str) -> tuple[list[Any], dict[str, Any]]:
    return Handler("h", function).arguments(text)


@truth_table(
    "text, expected",
    [
        ('{"day": "2026-01-31", "limit": 5, "tags": ["a", "b"]}', [DAY, 5, ["a", "b"]]),
        ('["2026-01-31", 5]', [DAY, 5, None]),
        ("day=2026-01-31", [DAY, 100, None]),
        ("day=2026-01-31,limit=5", [DAY, 5, None]),
        ("limit = 5 , day = 2026-01-31 ,", [DAY, 5, None]),
        ("day=2026-01-31&limit=5&tags=a&tags=b", [DAY, 5, ["a", "b"]]),
        ("day=2026-01-31\nlimit=5\n", [DAY, 5, None]),
        ('day="2026-01-31" tags="a, b"', [DAY, 100, ["a", "b"]]),
        ('day=2026-01-31 tags=["a b", "c"]', [DAY, 100, ["a b", "c"]]),
        ("day=2026-01-31 tags='it''s'", [DAY, 100, ["it's"]]),
        ("2026-01-31", [DAY, 100, None]),
        ("2026-01-31, 5", [DAY, 5, None]),
        ("2026-01-31 5 x", [DAY, 5, ["x"]]),
        ("2026-01-31 tags=x", [DAY, 100, ["x"]]),
        ("day=2026-01-31 tags=", [DAY, 100, None]),
    ],
)
def test_text_fills_the_arguments(text: str, expected: list[Any]) -> None:
    assert arguments(sync, text) == (expected, {})


@truth_table(
    "function, text, args, kwargs",
    [
        (one_text, "SELECT a, b = c", ["SELECT a, b = c"], {}),
        (one_text, "query=SELECT a, b", ["SELECT a, b"], {}),
        (one_text, "query='SELECT a, ''b'''", ["SELECT a, 'b'"], {}),
        (one_text, "query=", [""], {}),
        (one_text, '{"query": "x"}', ["x"], {}),
        (one_text, '{"other": "x"}', ['{"other": "x"}'], {}),
        (one_text, "{not json", ["{not json"], {}),
        (one_text, "[1, 2]", ["[1, 2]"], {}),
        (one_instant, "2026-01-31 10:30", [datetime(2026, 1, 31, 10, 30)], {}),
        (one_instant, " at = '2026-01-31 10:30' ", [datetime(2026, 1, 31, 10, 30)], {}),
        (one_instant, '"2026-01-31 10:30"', [datetime(2026, 1, 31, 10, 30)], {}),
        (one_instant, '["2026-01-31 10:30"]', [datetime(2026, 1, 31, 10, 30)], {}),
        (one_list, "1, 2 3", [[1, 2, 3]], {}),
        (one_list, "1", [[1]], {}),
        (one_list, "[1, 2]", [[1, 2]], {}),
        (one_list, '{"ids": [1]}', [[1]], {}),
        (one_list, "ids=1 ids=2", [[1, 2]], {}),
        (one_order, '{"id": 3}', [Order(3)], {}),
        (one_order, '{"order": {"id": 3}}', [Order(3)], {}),
        (one_order, 'order={"id": 3, "note": null}', [Order(3)], {}),
        (
            one_order,
            '{"id": "3", "lines": [{"article": "a", "price": 1.10}]}',
            [Order(3, [Line("a", Decimal("1.1"))])],
            {},
        ),
        (spread, "1 2 3 x=4 y=.5", [1, 2, 3], {"x": 4.0, "y": 0.5}),
        (spread, "[1, 2]", [1, 2], {}),
        (spread, '{"first": 1, "x": 2}', [1], {"x": 2.0}),
        (untyped, "a 7", ["a", "7"], {}),
        (untyped, '{"day": {"a": 1}, "limit": 7}', [{"a": 1}, 7], {}),
        (places, "1 third=9", [1, 2], {"third": 9}),
        (places, "first=1 second=4", [1, 4], {"third": 3}),
        (one_complaint, '{"urgency": "high"}', [Complaint(postponed_annotations.Urgency.HIGH)], {}),
        (postponed_annotations.sync, "2026-01-31 k=1.5", [DAY, Decimal(2)], {"k": Decimal("1.5")}),
        (partial(sync, limit=7), "2026-01-31", [DAY], {"limit": 7, "tags": None}),
    ],
)
def test_forms_by_signature(
    function: Callable[..., Any], text: str, args: list[Any], kwargs: dict[str, Any]
) -> None:
    assert arguments(function, text) == (args, kwargs)


UUID_TEXT = "6f1c2ad0-5a5e-4a6e-9d3c-0d9c0b7f6f11"


@truth_table(
    "annotation, text, expected",
    [
        (int, "-5", -5),
        (int, '{"a": 5.0, "b": 0}', 5),
        (float, "1e3", 1000.0),
        (bool, "Yes", True),
        (bool, '{"a": false, "b": 0}', False),
        (date, "2026-01-31", DAY),
        (datetime, "2026-01-31T10:30Z", datetime(2026, 1, 31, 10, 30, tzinfo=timezone.utc)),
        (datetime, "a='2026-01-31 10:30:01.5'", datetime(2026, 1, 31, 10, 30, 1, 500_000)),
        (datetime, "2026-01-31", datetime(2026, 1, 31)),
        (
            datetime,
            "2026-01-31T10:30:00+0200",
            datetime(2026, 1, 31, 10, 30, tzinfo=timezone(timedelta(hours=2))),
        ),
        (time, "07:05", time(7, 5)),
        (timedelta, "90", timedelta(seconds=90)),
        (timedelta, '{"a": 0.5, "b": 0}', timedelta(seconds=0.5)),
        (timedelta, "P1DT2H30M0.5S", timedelta(days=1, hours=2, minutes=30, seconds=0.5)),
        (timedelta, "-P2W", timedelta(weeks=-2)),
        (Decimal, "12.50", Decimal("12.50")),
        (UUID, UUID_TEXT, UUID(UUID_TEXT)),
        (Path, "/srv/in", Path("/srv/in")),
        (Region, "n", Region.NORTH),
        (Region, "SOUTH", Region.SOUTH),
        (Literal["fast", 3, True], "true", True),
        (Literal["fast", 3, True], '{"a": 3, "b": 0}', 3),
        (int | None, "null", None),
        (Optional["int"], "a=", None),
        (str | None, "null", "null"),
        (str, "a=", ""),
        (Annotated[int, "rows at most"], "5", 5),
        (Customer, "5", 5),
        (tuple[str, int], "a='x,5'", ("x", 5)),
        (tuple[int, ...], "[[1, 2]]", (1, 2)),
        (set[int], "a='2,1,2'", {1, 2}),
        (list, "a=[1]", [1]),
        (dict[str, int], 'a={"x": 1}', {"x": 1}),
        (dict[date, list[int]], 'a={"2026-01-31": [1]}', {DAY: [1]}),
    ],
)
def test_types(annotation: Any, text: str, expected: Any) -> None:
    def handler(a: annotation, b: int = 0) -> None:
        """Two arguments, so that a single one takes nothing special."""

    value = arguments(handler, text)[0][0]
    assert value == expected
    assert type(value) is type(expected)


@truth_table(
    "function, text, expected",
    [
        (sync, "", "day: missing; expected YYYY-MM-DD"),
        (
            sync,
            "day=2026-13-01 limits=5",
            "limits: no such parameter; expected day, limit, tags\n"
            "day: '2026-13-01' is not a date; expected YYYY-MM-DD",
        ),
        (sync, "20260131", "day: '20260131' is not a date; expected YYYY-MM-DD"),
        (
            sync,
            "2026-01-31 1_0",
            "limit: '1_0' is not an integer; expected a whole number such as 100",
        ),
        (
            sync,
            '{"day": "2026-01-31", "limit": true}',
            "limit: true is not an integer; expected a whole number such as 100",
        ),
        (sync, "2026-01-31 1 a b", "'b': one value too many; expected day, limit, tags"),
        (
            sync,
            "day=2026-01-31 tags=a,b",
            "'b': value without a name after named ones; expected name=value,"
            " or quotes around a value with blanks or commas",
        ),
        (sync, "2026-01-31 day=2026-01-31", "day: given twice; expected one value, not '2026-01-31' as well"),
        (sync, "2026-01-31,,5", "parameter: no value before ',' at character 12; write \"\""),
        (sync, 'day="2026', 'parameter: the quote " at character 5 is not closed'),
        (sync, 'day="a"b', 'parameter: text follows the quote " at character 7; expected a comma'),
        (
            sync,
            '{"day": ',
            "parameter: not valid JSON: Expecting value at line 1, column 8;"
            " expected a JSON object or array, or name=value",
        ),
        (sync, '{"day": 1, "day": 2}', "parameter: 'day' is given twice in a JSON object"),
        (sync, '{"day": NaN}', "parameter: NaN is not valid JSON"),
        (sync, f'{{"limit": {"1" * 5_000}}}', "parameter: not valid JSON: a number has too many digits"),
        (
            one_order,
            '{"id": 1, "lines": [{"article": 5, "cost": 1}], "x": 1}',
            "order.x: no such field; expected id, lines, note\n"
            "order.lines[0].cost: no such field; expected article, price\n"
            "order.lines[0].price: missing; expected a number such as 12.50\n"
            "order.lines[0].article: 5 is not a text; expected a text",
        ),
        (one_order, '{"id": 0}', "order: id must not be 0"),
        (one_instant, '{"a b": 1}', "'a b': no such parameter; expected at\n" + MISSING_INSTANT),
        (one_list, "1,x", "ids[1]: 'x' is not an integer; expected a whole number such as 100"),
        (spread, "1 x", "*0: 'x' is not an integer; expected a whole number such as 100"),
    ],
)
def test_errors_name_parameter_value_and_remedy(
    function: Callable[..., Any], text: str, expected: str
) -> None:
    with pytest.raises(InvalidParameters) as found:
        arguments(function, text)
    assert str(found.value) == expected


@truth_table(
    "annotation, text, expected",
    [
        (float, "nan", "is not a number"),
        (bool, "maybe", "expected true or false"),
        (datetime, "2026-01-31T25:00", "is not a date and time"),
        (time, "7:05", "expected HH:MM"),
        (timedelta, "P1M", "expected seconds such as 90, or ISO 8601 such as PT1H30M"),
        (timedelta, "P", "is not a duration"),
        (timedelta, "999999999999999", "is not a duration"),
        (Decimal, "NaN", "is not a decimal number"),
        (UUID, "5", "is not a UUID"),
        (Region, "x", "expected n, s"),
        (Literal[1, True], "2", "expected 1, true"),
        (
            tuple[str, int],
            "x",
            "is not a list of 2; expected a list of 2: a text, a whole number such as 100",
        ),
        (dict, "x", "expected a JSON object"),
        (list, '{"a": 5, "b": 0}', "5 is not a list; expected a JSON array, or values separated by commas"),
        (int, "9" * 5000, "…"),
    ],
)
def test_refused_values(annotation: Any, text: str, expected: str) -> None:
    def handler(a: annotation, b: int = 0) -> None:
        """Two arguments."""

    with pytest.raises(InvalidParameters) as found:
        arguments(handler, text)
    assert str(found.value).startswith("a: ")
    assert expected in str(found.value)


class Node:
    """Class without a known form."""


@dataclass
class Tree:
    """Dataclass that contains itself."""

    children: "list[Tree]"


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Node, "argument a: Node is not supported"),
        (int | str, "a union is supported with None only"),
        ("Missing", "argument a: 'Missing' cannot be resolved: name 'Missing' is not defined"),
        (Tree, "Tree contains itself"),
        (list[Node], "Node is not supported"),
        (dict[list[int], int], "keys of a dict must be single values"),
    ],
)
def test_unsupported_annotations_are_refused(
    handlers: HandlerRegistry, annotation: Any, expected: str
) -> None:
    def handler(a: annotation) -> None:
        """Never called."""

    with pytest.raises(HandlerConflict, match="job handler 'x'") as found:
        handlers.job("x")(handler)
    assert expected in str(found.value)


def test_functions_that_take_no_parameter_are_called_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    def of_a_test(node: Node | None = None) -> str:
        return f"{node} {context.param}"

    @wraps(of_a_test)
    def wrapper(*args: Any, **kwargs: Any) -> str:
        return of_a_test(*args, **kwargs)

    for function in (lambda *args, **kwargs: f"{args}", lambda limit=5: f"{limit}"):
        assert Handler("h", function).parameters_schema() is None
        assert Handler("h", function).arguments("x") == ([], {})
    with caplog.at_level(logging.WARNING):
        assert run_handler(wrapper, "x").msg == "None x"
    assert "handler called without arguments" in caplog.text


def test_an_invalid_parameter_fails_the_run_before_the_handler(handlers: HandlerRegistry) -> None:
    called: list[date] = []
    handlers.job("h")(lambda: None)

    @handlers.job("typed")
    def typed(day: date) -> str:
        called.append(day)
        return f"{day:%d.%m.} {context.param}"

    assert run_handler("typed", "2026-01-31", handlers=handlers).msg == "31.01. 2026-01-31"
    result = run_handler("typed", "2026-02-31", handlers=handlers)
    assert (result.code, result.msg) == (500, "day: '2026-02-31' is not a date; expected YYYY-MM-DD")
    assert "Traceback" not in result.log
    assert called == [DAY]


def test_methods_have_parameters(handlers: HandlerRegistry) -> None:
    class Reports:
        @handlers.job("report")
        def report(self, day: date, limit: int = 5) -> str:
            return f"{day} {limit}"

    handlers.register(Reports())
    assert run_handler("report", "2026-01-31 7", handlers=handlers).msg == "2026-01-31 7"


def test_the_schema_of_the_parameters() -> None:
    def handler(
        day: date,
        limit: Annotated[int, "rows at most"] = 100,
        region: Region = Region.NORTH,
        pause: timedelta | None = None,
        tags: tuple[str, ...] = (),
        order: Order | None = None,
    ) -> None:
        """Never called."""

    line = {
        "type": "object",
        "properties": {
            "article": {"type": "string", "title": "article"},
            "price": {"type": ["number", "string"], "format": "decimal", "title": "price"},
        },
        "required": ["article", "price"],
        "additionalProperties": False,
    }
    assert Handler("h", handler).parameters_schema() == {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date", "title": "day"},
            "limit": {"type": "integer", "title": "rows at most", "default": 100},
            "region": {"enum": ["n", "s"], "title": "region", "default": "n"},
            "pause": {"type": ["string", "null"], "format": "duration", "title": "pause", "default": None},
            "tags": {"type": "array", "items": {"type": "string"}, "title": "tags", "default": []},
            "order": {
                "type": ["object", "null"],
                "properties": {
                    "id": {"type": "integer", "title": "id"},
                    "lines": {"type": "array", "items": line, "title": "lines"},
                    "note": {"type": ["string", "null"], "title": "note", "default": None},
                },
                "required": ["id"],
                "additionalProperties": False,
                "title": "order",
                "default": None,
            },
        },
        "required": ["day"],
        "additionalProperties": False,
    }
    schema = Handler("h", spread).parameters_schema()
    assert schema["additionalProperties"] == {"type": "number"}  # type: ignore[index]
