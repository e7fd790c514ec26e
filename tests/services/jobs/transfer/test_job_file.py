"""Job files: invalid files, and the order in which jobs are stored."""

import json

import pytest

from app.errors import InvalidInput
from app.services.jobs.transfer.job_file import JOBS_MAX, SIZE_MAX, Entry, read_file, write_time
from app.services.jobs.transfer.plan import children_first


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1, column 1"),
        ("{", "line 1, column 2"),
        ('{\n  "format": 1,\n  "jobs": [,]\n}', "line 3, column 12"),
        ("[]", "must be an object"),
        ('{"format": 1}', "must be an object"),
        ('{"format": 1, "jobs": {}}', "must be an object"),
        ('{"format": 2, "jobs": [{}]}', '"format" must be 1'),
        ('{"format": true, "jobs": [{}]}', '"format" must be 1'),
        ('{"jobs": [{}]}', '"format" must be 1'),
        ('{"format": 1, "jobs": []}', "contains no jobs"),
        ('{"format": 1, "jobs": [NaN]}', "invalid number"),
        (f'{{"format": 1, "jobs": [{"1" * 5000}]}}', "invalid number"),
        ("[" * 100_000, "nested too deeply"),
        ('{"format": 1, "jobs": [{"jobDesc": "\\ud800"}]}', "cannot be stored"),
        (f'{{"format": 1, "jobs": [{"{}," * JOBS_MAX}{{}}]}}', "contains 2001 jobs; at most 2000"),
        (json.dumps({"format": 1, "jobs": ["x" * SIZE_MAX]}), "larger than 1048576 bytes"),
    ],
)
def test_an_invalid_file_is_refused_with_place_and_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_file(text)
    assert refused.value.field == "file"
    assert reason in refused.value.message


def test_times_are_read_as_they_were_written() -> None:
    for at_ms in (0, 1, 1_900_000_000_000, 1_900_000_000_123):
        (entry,) = read_file(json.dumps({"format": 1, "jobs": [{"notBefore": write_time(at_ms)}]}))
        assert entry.given == {"not_before_ms": at_ms}


def test_children_come_before_their_parents_and_a_circle_ends() -> None:
    chain = [Entry(number, number, children=(number + 1,)) for number in range(1, 50)]
    assert [entry.number for entry in children_first(chain)] == list(range(49, 0, -1))
    circle = [Entry(1, 1, children=(2,)), Entry(2, 2, children=(1,)), Entry(3, 3, children=(3,)), Entry(4)]
    assert [entry.number for entry in children_first(circle)] == [4, 1, 2, 3]
