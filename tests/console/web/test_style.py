"""The style sheet of the console: one request, and colours in one place."""

import re

from app.console.web.style import PAGE_SHEETS, SHEETS, STATIC, style_sheet
from tests.support.console import Console

#: a colour by its digits or by a function
COLOUR = re.compile(r"#[0-9a-f]{3,8}\b(?!:)|\b(?:rgb|hsl)a?\(", re.IGNORECASE)
#: the dark values for a choice, and those for a visitor without one and without scripts
DARK = (r"\n\[data-bs-theme=dark\] \{([^}]+)\}", r":root:not\(\[data-bs-theme\]\) \{([^}]+)\}")


def test_only_the_tokens_name_a_colour() -> None:
    """Selectors such as `#range` are no colours: they have other letters."""
    for name in set(SHEETS) - {"tokens"}:
        assert COLOUR.findall((STATIC / "css" / f"{name}.css").read_text(encoding="utf-8")) == [], name


def test_every_style_sheet_is_part_of_the_one() -> None:
    assert {path.stem for path in (STATIC / "css").glob("*.css")} == {*SHEETS, *PAGE_SHEETS}
    assert SHEETS[0] == "tokens"


def test_a_page_requests_one_style_sheet_and_its_font(admin: Console) -> None:
    page = admin.get("/jobinfo").text
    assert len(re.findall(r'rel="stylesheet"', page)) == 1
    (font,) = re.findall(r'url\("\.\./(fonts/[^"]+\.woff2)"\)', style_sheet().decode())
    response = admin.get(f"/static/{font}")
    assert response.status_code == 200
    assert "immutable" in response.headers["Cache-Control"]
    assert len(response.data) < 120_000


def test_both_dark_blocks_hold_the_same_values() -> None:
    """One is for a choice, the other for a system without scripts."""
    sheet = style_sheet().decode()
    chosen, unchosen = (re.search(pattern, sheet)[1].split() for pattern in DARK)  # type: ignore[index]
    assert chosen == unchosen
