"""API tokens: form, stored grants, and what a token may do of what its owner may do."""

from app.domain.access import api_tokens as rules
from app.domain.access.api_tokens import Grant
from app.domain.access.permissions import ALL_RIGHTS, Actor, Right
from tests.support.truth_table import truth_table

VIEW, OPERATE, EDIT, GLUE = Right.VIEW, Right.OPERATE, Right.EDIT, Right.GLUE
ADMIN = Actor(1, "ada", True)
USER = Actor(2, "norman", False, {5: frozenset({VIEW, OPERATE}), 6: ALL_RIGHTS})


@truth_table(
    "token, is_valid",
    [
        ("xxl_" + "a" * 43, True),
        ("xxl_" + "-_9Z" + "a" * 39, True),
        ("xxl_" + "a" * 42, False),
        ("xxl_" + "a" * 44, False),
        ("xxl_" + "a" * 42 + "/", False),
        ("xxl_" + "a" * 43 + "\n", False),
        ("abc_" + "a" * 43, False),
        ("", False),
    ],
)
def test_the_form_of_a_token(token: str, is_valid: bool) -> None:
    assert rules.is_well_formed(token) == is_valid


@truth_table(
    "rights, group_ids, grant",
    [
        ("view,operate", None, Grant(frozenset({VIEW, OPERATE}))),
        ("glue", "", Grant(frozenset({VIEW, GLUE}))),
        ("admin", None, Grant(frozenset(), admin=True)),
        ("view", "5,6", Grant(frozenset({VIEW}), group_ids=frozenset({5, 6}))),
        ("view", "0", Grant(frozenset({VIEW}), group_ids=frozenset())),
        ("everything", "x", Grant(frozenset(), group_ids=frozenset())),
    ],
)
def test_what_cannot_be_read_grants_nothing(rights: str, group_ids: str | None, grant: Grant) -> None:
    assert rules.parse_grant(rights, group_ids) == grant


def test_a_stored_grant_reads_as_it_was() -> None:
    for grant in (
        Grant(frozenset({VIEW, EDIT}), group_ids=frozenset({7, 5})),
        Grant(frozenset({VIEW}), group_ids=frozenset()),
        Grant(frozenset({VIEW}), admin=True),
    ):
        assert rules.parse_grant(rules.stored_rights(grant), rules.stored_groups(grant)) == grant


@truth_table(
    "owner, grant, allowed",
    [
        (USER, Grant(frozenset({VIEW})), {5: {VIEW}, 6: {VIEW}}),
        (USER, Grant(frozenset({VIEW, EDIT})), {5: {VIEW}, 6: {VIEW, EDIT}}),
        (USER, Grant(ALL_RIGHTS, group_ids=frozenset({5, 9})), {5: {VIEW, OPERATE}}),
        (USER, Grant(frozenset(), admin=True), {5: {VIEW, OPERATE}, 6: ALL_RIGHTS}),
        (ADMIN, Grant(frozenset({VIEW})), {5: {VIEW}, 6: {VIEW}, 7: {VIEW}}),
        (ADMIN, Grant(frozenset({VIEW, GLUE}), group_ids=frozenset({7, 9})), {7: {VIEW, GLUE}}),
        (ADMIN, Grant(ALL_RIGHTS, group_ids=frozenset()), {}),
    ],
)
def test_a_token_may_do_what_both_it_and_its_owner_may(
    owner: Actor, grant: Grant, allowed: dict[int, set[Right]]
) -> None:
    assert rules.limit_actor(owner, grant, existing={5, 6, 7}) == (False, allowed)


def test_only_an_administrators_token_with_that_right_may_do_everything() -> None:
    assert rules.limit_actor(ADMIN, Grant(frozenset(), admin=True), existing=()) == (True, {})
