"""Instants as people write them."""

import pytest

from executor_client.cli.output.times import readable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2030-01-31 18:00", "2030-01-31 18:00"),
        ("2030-01-31", "2030-01-31"),
        ("2030-01-31T07:05:00Z", "2030-01-31T07:05:00+00:00"),
        ("2030-01-31T07:05:00.5z", "2030-01-31T07:05:00.500000+00:00"),
        ("2030-01-31T07:05:00,123456789+08:00", "2030-01-31T07:05:00.123456+08:00"),
        ("2030-01-31T07:05:00.25-0330", "2030-01-31T07:05:00.250000-03:30"),
        ("2030-01-31 07:05+0100", "2030-01-31 07:05+01:00"),
    ],
)
def test_an_instant_is_written_as_python_3_10_reads_it(text: str, expected: str) -> None:
    """Newer ones read both forms."""
    assert readable(text) == expected
