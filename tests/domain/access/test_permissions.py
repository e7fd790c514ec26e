"""Rights on groups, child ids and passwords."""

import pytest

from app.domain.access.passwords import check_new_password
from app.domain.access.permissions import (
    ALL_RIGHTS,
    Actor,
    Right,
    parse_rights,
    require_right,
    rights_by_group,
    rights_text,
    system_actor,
)
from app.domain.jobs.children import child_ids_text, parse_child_ids
from app.domain.text.texts import N_
from app.errors import InvalidInput, NotFound, PermissionDenied
from tests.support.truth_table import truth_table

NORMAL = Actor(
    user_id=2,
    username="norman",
    is_admin=False,
    rights={1: frozenset({Right.VIEW, Right.OPERATE}), 2: ALL_RIGHTS},
)


def test_an_administrator_may_do_everything() -> None:
    admin = system_actor("root")
    assert all(admin.may(group_id, right) for group_id in (1, 99) for right in Right)
    assert admin.group_ids(Right.EDIT) is None
    assert admin.has_anywhere(Right.GLUE)


def test_a_normal_user_may_do_what_the_rights_allow() -> None:
    assert NORMAL.group_ids(Right.VIEW) == {1, 2}
    assert NORMAL.group_ids(Right.EDIT) == {2}
    assert not NORMAL.may(3, Right.VIEW)
    assert not Actor(user_id=3, username="x", is_admin=False).has_anywhere(Right.VIEW)


def test_a_foreign_object_is_missing_and_a_visible_one_forbidden() -> None:
    require_right(NORMAL, 1, Right.OPERATE, missing=N_("gone"))
    with pytest.raises(NotFound, match="gone"):
        require_right(NORMAL, 3, Right.VIEW, missing=N_("gone"))
    with pytest.raises(PermissionDenied):
        require_right(NORMAL, 1, Right.EDIT, missing=N_("gone"))


@truth_table(
    "text, rights",
    [
        ("", set()),
        ("nonsense", set()),
        ("edit", {Right.VIEW, Right.EDIT}),
        (" view , operate ,x", {Right.VIEW, Right.OPERATE}),
    ],
)
def test_rights_are_read_and_written(text: str, rights: set[Right]) -> None:
    assert parse_rights(text) == rights
    assert parse_rights(rights_text(rights)) == rights


def test_a_group_without_a_row_has_all_rights() -> None:
    assert rights_by_group([1, 2, 3], {2: "view", 3: "", 4: "edit"}) == {1: ALL_RIGHTS, 2: {Right.VIEW}}


@truth_table(
    "text, ids",
    [("", []), (" ", []), ("7", [7]), ("7,8", [7, 8]), ("7,8,,", [7, 8]), (",", []), ("-1", [-1])],
)
def test_child_ids_are_parsed_as_in_java(text: str, ids: list[int]) -> None:
    assert parse_child_ids(text) == ids
    assert child_ids_text(ids) == ",".join(map(str, ids))


@truth_table(
    "text, piece",
    [("x", "x"), ("1, 2", " 2"), (",1", ""), ("1,,2", ""), ("1.5", "1.5"), ("٣", "٣"), ("9" * 11, "9" * 11)],
)
def test_an_invalid_child_id_is_named(text: str, piece: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_child_ids(text)
    assert refused.value.message == f"Child job id ({piece}) is invalid"


@truth_table("password", ["correct-horse-7", "密码很长很长很长", " blanks inside and around ", "x1y" * 42])
def test_good_passwords(password: str) -> None:
    check_new_password(password, username="norman", common={"admin123", "password"})


@truth_table(
    "password",
    [
        "",
        " " * 9,
        "short-7",
        "x" * 129,
        "Password123",
        "11111111",
        "abababab",
        "abcdefgh",
        "87654321",
        "normannorman",
        "admin123",
    ],
)
def test_bad_passwords(password: str) -> None:
    with pytest.raises(InvalidInput):
        check_new_password(password, username="norman", common={"admin123", "password"})


def test_an_error_text_keeps_its_template_and_values() -> None:
    text = N_("Child job id (%(id)s) is invalid", id=7)
    assert (text, text.msgid, text.params) == (
        "Child job id (7) is invalid",
        "Child job id (%(id)s) is invalid",
        {"id": 7},
    )
    assert N_("100 %") == "100 %"
