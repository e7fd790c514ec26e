"""What a job runs after, as another program may have stored it: nothing of it ends a run of a predecessor."""

import pytest

from app.domain.rounds.runs_after import DEADLINE_MAX_S, RunsAfter, parse_runs_after


@pytest.mark.parametrize(
    "text",
    [
        None,
        "null",
        "[1]",
        '{"jobs": null}',
        '{"jobs": ["x"]}',
        '{"jobs": [1e999]}',
        '{"jobs": [2147483648]}',
        '{"jobs": [1], "k": -Infinity}',
        '{"jobs": [1], "deadline_s": 1e999}',
        '{"jobs": [1], "rule": ["all_ended"]}',
        "[" * 100_000,
    ],
)
def test_a_value_that_is_none_is_read_as_nothing(text: str | None) -> None:
    assert parse_runs_after(text) is None


def test_numbers_are_brought_into_their_bounds() -> None:
    text = '{"jobs": [1], "k": 0, "shards_k": -3, "deadline_s": 1e30}'
    assert parse_runs_after(text) == RunsAfter((1,), deadline_s=DEADLINE_MAX_S)
    assert parse_runs_after('{"jobs": [1], "deadline_s": -5}') == RunsAfter((1,), deadline_s=0)
