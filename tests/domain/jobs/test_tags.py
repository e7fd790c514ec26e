"""Tags: valid tags, and which are equal."""

import pytest

from app.domain.jobs.tags import TAG_MAX, TAGS_MAX, check_tags, split_tags, tags_text
from app.domain.text.texts import fold
from app.errors import InvalidInput
from tests.support.truth_table import truth_table


@truth_table(
    "typed, stored",
    [
        ("", ()),
        (" , ,", ()),
        ("nightly", ("nightly",)),
        ("night run, Money", ("Money", "night run")),
        ("夜间，财务", ("夜间", "财务")),
        ("b,B,a", ("a", "b")),
        ("two   blanks", ("two blanks",)),
        ("全角\u3000空格", ("全角 空格",)),
        ("Straße,STRASSE", ("Straße",)),
        ("cafe\u0301,café,cafe", ("cafe", "café")),
        ("#1 <b>", ("#1 <b>",)),
        ("x" * TAG_MAX, ("x" * TAG_MAX,)),
    ],
)
def test_tags_are_trimmed_and_each_is_kept_once(typed: str, stored: tuple[str, ...]) -> None:
    assert check_tags(split_tags(typed)) == stored
    assert check_tags(split_tags(tags_text(stored))) == stored


@truth_table(
    "tag", ["", "  ", "x" * (TAG_MAX + 1), "a,b", "a，b", "a\nb", "a\tb", "a\x00b", "a\u202eb", "\ud800"]
)
def test_an_invalid_tag_is_refused_at_the_field(tag: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_tags(["fine", tag])
    assert refused.value.field == "tags"


def test_tags_per_job_are_limited() -> None:
    all_tags = [f"tag {number}" for number in range(TAGS_MAX)]
    assert len(check_tags([*all_tags, "TAG 0"])) == TAGS_MAX
    with pytest.raises(InvalidInput, match="at most 8 tags; these are 9"):
        check_tags([*all_tags, "one more"])


def test_the_key_of_the_longest_tag_fits_its_column() -> None:
    widest = max(range(0x110000), key=lambda code: len(fold(chr(code))))
    assert len(fold(chr(widest) * TAG_MAX)) <= 90
