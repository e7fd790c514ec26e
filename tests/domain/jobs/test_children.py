"""Child jobs: how they are entered."""

import pytest

from app.domain.jobs.children import child_ids_text, parse_child_ids
from app.errors import InvalidInput
from tests.support.truth_table import truth_table


@truth_table(
    "text, ids",
    [("", []), (" ", []), (",,", []), ("12,15", [12, 15]), ("12,", [12]), ("-1,3,,", [-1, 3])],
)
def test_child_ids_are_parsed(text: str, ids: list[int]) -> None:
    assert parse_child_ids(text) == ids
    assert child_ids_text(ids) == ",".join(map(str, ids))


@truth_table("text", ["a", "1, 2", "1,,2", "1;2", "12345678901", "１"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_child_ids(text)
    assert refused.value.field == "childJobId"
