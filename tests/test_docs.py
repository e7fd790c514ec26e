"""docs/console.md shows every page of the console, light and dark, and nothing that is not there."""

import re
from pathlib import Path
from unittest.mock import MagicMock

from tests.browser.screenshots import PARTS, pages

DOCS = Path(__file__).parents[1] / "docs"


def test_every_page_has_its_pictures() -> None:
    text = (DOCS / "console.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"img/([\w-]+)\.png", text))
    wanted = {
        f"{name}-en-{theme}-wide"
        for name in ("login", *PARTS, *pages(MagicMock()))
        for theme in ("light", "dark")
    }
    assert wanted - shown == set()
    assert {path.stem for path in (DOCS / "img").glob("*.png")} == shown
