"""Command ``users``: a lost password."""

import pytest

from tests.cli.fake_api import FakeApi
from tests.support.cli import Run

ANN = {"id": 7, "username": "ann", "role": "normal", "disabled": True}


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ((), {"must_change_password": True}),
        (("--permanent", "--enable"), {"must_change_password": False, "disabled": False}),
    ],
)
def test_a_password_is_reset(
    api: FakeApi, run: Run, options: tuple[str, ...], changes: dict[str, bool]
) -> None:
    api.page("/users", ANN)
    api.on("PATCH", "/users/7", ANN)
    ended = run("users", "reset-password", "ann", *options, "--password-stdin", text="battery-staple-9\n")
    assert ended.stdout == "user ann: password reset\n"
    assert api.seen[-1].body == {"password": "battery-staple-9", **changes}
