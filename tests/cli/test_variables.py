"""Commands ``variables``: set by value or standard input, listed without secrets, deleted."""

from typing import Any

import pytest

from tests.cli.fake_api import FakeApi
from tests.support.cli import Run

GROUP = {"id": 3, "app_name": "shop", "title": "Shop"}
CHANGED = {"updated_at": "2030-01-31T08:00:00.000Z", "username": "ann", "allowed": []}
REGION = {
    "id": 7,
    "name": "REGION",
    "kind": "variable",
    "group_id": 3,
    "value": "eu-1",
    "version": 1,
} | CHANGED
KEY = {"id": 8, "name": "KEY", "kind": "secret", "group_id": None, "value": None, "version": 4} | CHANGED


@pytest.mark.parametrize(
    ("arguments", "text", "body"),
    [
        (("REGION", "--group", "shop", "--value", ""), "", {"name": "REGION", "group_id": 3, "value": ""}),
        (
            ("KEY", "--secret-stdin", "--allow", "shop"),
            "line 1\nline 2\n",
            {"name": "KEY", "group_id": None, "secret": "line 1\nline 2", "allowed": [3]},
        ),
    ],
)
def test_a_new_one_is_added(
    api: FakeApi, run: Run, arguments: tuple[str, ...], text: str, body: dict[str, Any]
) -> None:
    api.page("/groups", GROUP)
    api.page("/variables")
    api.on("POST", "/variables", {**KEY, "kind": "secret", "version": 1})
    ended = run("variables", "set", *arguments, text=text)
    assert ended.stdout == f"secret {arguments[0]}: set, version 1\n"
    assert api.seen[-1].body == body


def test_one_that_exists_is_changed(api: FakeApi, run: Run) -> None:
    api.page("/groups", GROUP)
    api.page("/variables", REGION)
    api.on("PATCH", "/variables/7", {**REGION, "version": 2})
    assert run("variables", "set", "REGION", "--group", "shop", "--value", "x").stdout == (
        "variable REGION: set, version 2\n"
    )
    assert api.seen[-1].body == {"value": "x"}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ((), "give --value"),
        (("--value", "x", "--secret-stdin"), "exclude each other"),
        (("--secret-stdin",), "standard input has no secret"),
    ],
)
def test_what_cannot_be_set_is_refused(api: FakeApi, run: Run, options: tuple[str, ...], error: str) -> None:
    ended = run("variables", "set", "KEY", *options, text="\n")
    assert (ended.exit_code, error in ended.stderr) == (2, True)


def test_the_list_shows_no_secret(api: FakeApi, run: Run) -> None:
    api.page("/groups", GROUP)
    api.page("/variables", REGION, KEY)
    lines = run("variables", "list").stdout.splitlines()
    assert "shop" in lines[1]
    assert "eu-1" in lines[1]
    assert "(installation)" in lines[2]
    assert "(secret)" in lines[2]


def test_one_is_deleted_by_its_name(api: FakeApi, run: Run) -> None:
    api.page("/variables", KEY)
    api.on("DELETE", "/variables/8", {})
    assert run("variables", "delete", "KEY").stdout == "secret KEY: deleted\n"
    assert "there is no variable or secret OTHER" in run("variables", "delete", "OTHER").stderr
