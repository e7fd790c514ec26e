"""Result messages as tables."""

import json

from app.domain.runs.result_tables import CELL_MAX, COLUMNS_MAX, ROWS_MAX, table_of
from tests.support.truth_table import truth_table


def test_an_object_has_a_row_for_each_member() -> None:
    table = table_of('{"rows":3,"name":"é","none":null,"list":[1,{"a":true}]}')
    assert table is not None
    assert table.headings == ()
    assert list(table.rows) == [("rows", "3"), ("name", "é"), ("none", ""), ("list", '[1, {"a": true}]')]


def test_a_list_of_objects_has_a_column_for_each_name() -> None:
    table = table_of('[{"id":1,"state":"new"},{"id":2,"amount":1.5}]')
    assert table is not None
    assert table.headings == ["id", "state", "amount"]
    assert table.rows == [["1", "new", ""], ["2", "", "1.5"]]


def test_lines_about_child_jobs_follow_the_table() -> None:
    table = table_of('{"rows":3}\n>>> child jobs <<<\n1/1 job 7: triggered')
    assert table is not None
    assert table.rest == ">>> child jobs <<<\n1/1 job 7: triggered"


def test_a_large_table_is_limited() -> None:
    names = {f"column {number}": "x" * 999 for number in range(COLUMNS_MAX + 3)}
    table = table_of(json.dumps([names] * (ROWS_MAX + 7)))
    assert table is not None
    assert (len(table.rows), len(table.headings)) == (ROWS_MAX, COLUMNS_MAX)
    assert (table.more_rows, table.more_columns) == (7, 3)
    assert len(table.rows[0][0]) == CELL_MAX + 1
    members = table_of(json.dumps({str(number): 1 for number in range(ROWS_MAX + 1)}))
    assert members is not None
    assert members.more_rows == 1


def test_what_no_page_can_hold_is_replaced() -> None:
    table = table_of('[{"a\\ud800":"\\udfff"}]')
    assert table is not None
    assert (table.headings, table.rows) == (["a?"], [["?"]])


@truth_table(
    "message",
    [
        None,
        "",
        "42 rows",
        "{}",
        "[]",
        "[1,2]",
        '[{"a":1},2]',
        '{"a":1',
        '{"a":1} and more',
        "[" * 9_000,
        '{"a":' * 9_000,
        "[INFO] done",
    ],
)
def test_other_messages_have_no_table(message: str | None) -> None:
    assert table_of(message) is None
