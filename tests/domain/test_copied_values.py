"""Values of SQLite, converted for the columns of a server or refused with the reason."""

from datetime import datetime
from typing import Any

import pytest

from app.domain.copied_values import ColumnKind, CopiedColumn
from tests.support.truth_table import truth_table

NUMBER = CopiedColumn("n", ColumnKind.INTEGER, bits=32)
BIG = CopiedColumn("n", ColumnKind.INTEGER)
SHORT = CopiedColumn("t", ColumnKind.TEXT, nullable=False, characters=4)
MESSAGE = CopiedColumn("t", ColumnKind.TEXT, utf8_bytes=6)
WITHOUT_NUL = CopiedColumn("t", ColumnKind.TEXT, takes_nul=False)
TIME = CopiedColumn("d", ColumnKind.TIME)


@truth_table(
    "column, value, converted",
    [
        (NUMBER, None, None),
        (NUMBER, -(2**31), -(2**31)),
        (BIG, 2**63 - 1, 2**63 - 1),
        (SHORT, "", ""),
        (SHORT, "ü🕰é ", "ü🕰é "),
        (MESSAGE, "ääa ", "ääa "),
        (MESSAGE, "a\0b", "a\0b"),
        (TIME, "2026-11-23 05:37:15.000000", datetime(2026, 11, 23, 5, 37, 15)),
        (TIME, "2026-11-23 05:37:15.999000", datetime(2026, 11, 23, 5, 37, 15)),
        (TIME, None, None),
    ],
)
def test_a_value_that_fits_is_kept(column: CopiedColumn, value: Any, converted: Any) -> None:
    assert column.convert(value) == converted


@truth_table(
    "column, value, reason",
    [
        (SHORT, None, "is null"),
        (SHORT, "12345", "has 5 characters, the column holds 4"),
        (MESSAGE, "äääa", "has 7 bytes, the column holds 6"),
        (WITHOUT_NUL, "a\0b", "contains the character NUL, which PostgreSQL does not store"),
        (MESSAGE, "a\udcff", "is not valid UTF-8"),
        (SHORT, b"abc", "is not text but bytes"),
        (NUMBER, 2**31, "is 2147483648, the column holds 32 bits"),
        (NUMBER, "one", "is not a whole number but str"),
        (NUMBER, 1.5, "is not a whole number but float"),
        (TIME, "yesterday", "is not a time: 'yesterday'"),
        (TIME, 1_700_000_000, "is not text but int"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(column: CopiedColumn, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match="^" + reason.replace("(", "\\(")):
        column.convert(value)
