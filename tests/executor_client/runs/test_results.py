"""Results: from the value that a handler returns to the message of its run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

from executor_client.runs.context import MESSAGE_MAX
from executor_client.runs.results import DEPTH_MAX, message_of
from tests.support.truth_table import truth_table


class Colour(str, Enum):
    """Enum of text."""

    RED = "r"


@dataclass
class Row:
    """Result with fields."""

    day: date
    amount: Decimal


class Silent:
    """Object without a text."""

    def __str__(self) -> str:
        raise KeyError


class Unreadable(Mapping[str, Any]):
    """Mapping that cannot be read."""

    def __getitem__(self, key: str) -> Any:
        raise OSError(key)

    def __iter__(self) -> Iterator[str]:
        raise OSError

    def __len__(self) -> int:
        return 1


@dataclass
class Node:
    """Result that refers back to its owner."""

    name: str
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)


itself: list[Any] = []
itself.append(itself)
root = Node("root")
root.children += [Node("a", root), Node("b", root)]
shared = [1]
HUGE = 10**5_000


@truth_table(
    "value, expected",
    [
        (None, None),
        (True, None),
        ("", ""),
        ("42 rows", "42 rows"),
        (5, "5"),
        (0.5, "0.5"),
        (date(2026, 1, 31), "2026-01-31"),
        (Path("/srv/out"), "/srv/out"),
        (Colour.RED, "r"),
        (Silent(), "<Silent>"),
        ({}, "{}"),
        ({"größe": 1, 2: None, "path": Path("a")}, '{"größe":1,"2":null,"path":"a"}'),
        ([Row(date(2026, 1, 31), Decimal("1.10"))], '[{"day":"2026-01-31","amount":"1.10"}]'),
        ((1, float("nan"), timedelta(minutes=1), Colour.RED), '[1,null,60.0,"r"]'),
        ({"rows": HUGE, HUGE: 1}, '{"rows":"<int>","<int>":1}'),
        (Unreadable(), "<Unreadable>"),
        ([Unreadable()], '["<Unreadable>"]'),
        (itself, '["<list>"]'),
        ([shared, shared], "[[1],[1]]"),
        (
            root,
            '{"name":"root","parent":null,"children":[{"name":"a","parent":"<Node>","children":[]},'
            '{"name":"b","parent":"<Node>","children":[]}]}',
        ),
    ],
)
def test_the_message_of_a_value(value: object, expected: str | None) -> None:
    assert message_of(value) == expected


def test_a_number_with_too_many_digits_is_named_by_its_type() -> None:
    assert message_of(HUGE) == "<int>"


def test_a_value_that_repeats_its_parts_without_end_has_a_message() -> None:
    value: list[Any] = []
    for _ in range(DEPTH_MAX * 2):
        value = [value, value]
    message = message_of(value)
    assert message is not None
    assert len(message) > MESSAGE_MAX
