"""Appearance: the theme, which may be that of the system."""

import re

from tests.console.pages import token_of
from tests.support.console import Console


def pressed(console: Console) -> list[str]:
    page = console.get("/account").text
    return re.findall(r'name="theme" value="(\w+)" aria-pressed="true"', page)


def test_the_theme_of_the_system_is_pressed_until_one_is_chosen(admin: Console) -> None:
    assert pressed(admin) == ["system"]
    for theme in ("dark", "system", "light"):
        admin.post("/preferences", {"csrf_token": token_of(admin), "theme": theme})
        assert pressed(admin) == [theme]
        assert ('data-bs-theme="' in admin.get("/account").text) == (theme != "system")
