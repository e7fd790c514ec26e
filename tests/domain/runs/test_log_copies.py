"""Copies of texts in the log: whole where they fit, else their beginning, recognised as such."""

from app.domain.runs.log_copies import ELLIPSIS, UNLIMITED, Width
from tests.support.truth_table import truth_table

#: as VARCHAR(8) and TEXT of utf8mb4 are described, the second one much shorter
VARCHAR, TEXT = Width(8, 32), Width(24, 24)


@truth_table(
    "width, text, copy",
    [
        (VARCHAR, "", ""),
        (VARCHAR, "12345678", "12345678"),
        (VARCHAR, "123456789", "1234567…"),
        (VARCHAR, "\U0001f600" * 8, "\U0001f600" * 8),
        (VARCHAR, "\U0001f600" * 9, "\U0001f600" * 7 + "…"),
        (TEXT, "é" * 12, "é" * 12),
        (TEXT, "é" * 13, "é" * 10 + "…"),
        (TEXT, "\U0001f600" * 7, "\U0001f600" * 5 + "…"),
        (UNLIMITED, "x" * 100_000, "x" * 100_000),
    ],
)
def test_a_copy_fits_and_is_recognised_if_it_is_cut(width: Width, text: str, copy: str) -> None:
    assert width.copy_of(text) == copy
    assert width.holds(copy)
    assert width.is_cut(copy) == (copy != text)


def test_a_short_text_that_ends_with_an_ellipsis_is_whole() -> None:
    assert not VARCHAR.is_cut(f"more{ELLIPSIS}")
