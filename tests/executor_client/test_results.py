"""Results: from the value that a handler returns to the message of its run."""

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from executor_client.results import message_of


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


itself: list[Any] = []
itself.append(itself)


@pytest.mark.parametrize(
    ("value", "expected"),
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
    ],
)
def test_the_message_of_a_value(value: object, expected: str | None) -> None:
    assert message_of(value) == expected


def test_a_list_that_contains_itself_has_a_message() -> None:
    assert str(message_of(itself)).startswith("[[[")
