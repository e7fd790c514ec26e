"""Variables and secrets: names, lengths, and the groups that may use a secret."""

import pytest

from app.domain.jobs.variables import (
    ALLOWED_MAX,
    allowed_ids,
    allowed_text,
    check_allowed,
    check_name,
    check_secret,
    check_value,
    may_use_secret,
    placeholder,
)
from app.errors import InvalidInput
from tests.support.truth_table import truth_table


@truth_table(
    "text, is_name",
    [
        ("A", True),
        ("api_KEY2", True),
        ("a" * 64, True),
        ("a" * 65, False),
        ("", False),
        (" ", False),
        ("2a", False),
        ("_a", False),
        ("a-b", False),
        ("a.b", False),
        ("é", False),
        ("a\n", True),
        ("a\nb", False),
    ],
)
def test_a_name_is_a_letter_followed_by_letters_digits_and_underscores(text: str, is_name: bool) -> None:
    if is_name:
        assert check_name(text) == text.strip()
    else:
        with pytest.raises(InvalidInput):
            check_name(text)


@truth_table(
    "text, is_secret", [("1234567", False), ("12345678", True), (" " * 8, False), ("x" * 10_001, False)]
)
def test_a_secret_has_at_least_eight_characters(text: str, is_secret: bool) -> None:
    if is_secret:
        assert check_secret(text) == text
        return
    with pytest.raises(InvalidInput) as refused:
        check_secret(text)
    assert text.strip() == "" or text not in str(refused.value)


def test_a_variable_may_be_empty_and_is_limited() -> None:
    assert (check_value(""), check_value("x" * 10_000)) == ("", "x" * 10_000)
    for text in ("x" * 10_001, "a\x00"):
        with pytest.raises(InvalidInput):
            check_value(text)


def test_only_a_secret_of_the_installation_names_groups() -> None:
    assert check_allowed([3, 1, 3], is_secret=True, group_id=0) == [1, 3]
    for is_secret, group_id, ids in ((True, 7, [7]), (False, 0, [7]), (True, 0, range(1, ALLOWED_MAX + 2))):
        with pytest.raises(InvalidInput):
            check_allowed(list(ids), is_secret=is_secret, group_id=group_id)


@truth_table(
    "owner_id, allowed, may_use",
    [
        (7, "[]", True),
        (0, "[]", False),
        (0, "[6,7]", True),
        (0, "[6]", False),
        (8, "[7]", False),
        (0, "not JSON", False),
        (0, "7", False),
        (0, "[true]", False),
    ],
)
def test_a_group_uses_its_own_secrets_and_those_that_name_it(
    owner_id: int, allowed: str, may_use: bool
) -> None:
    assert may_use_secret(7, owner_id=owner_id, group_list=allowed) is may_use


def test_the_longest_list_of_groups_fits_into_its_column() -> None:
    text = allowed_text(range(2**31 - ALLOWED_MAX, 2**31))
    assert len(text) <= 2_000
    assert len(allowed_ids(text)) == ALLOWED_MAX


def test_placeholders() -> None:
    assert placeholder("A", is_secret=False) == "${var.A}"
    assert placeholder("A", is_secret=True) == "${secret.A}"
