"""docs/parameters.md: every example of its tables is filled in as the page says."""

import re
from pathlib import Path

from app.domain.parameters.civil_time import FIRST_YEAR, LAST_YEAR
from app.domain.parameters.date_patterns import LETTERS
from app.domain.parameters.marked_text import FILLED_MAX
from app.domain.parameters.scanner import DIGITS_MAX, NAME_MAX, PATH_MAX
from app.domain.parameters.template import PLACEHOLDERS_MAX, TEMPLATE_MAX, parse
from app.domain.parameters.time_scanner import STEPS_MAX
from app.domain.parameters.values import GivenRun
from tests.domain.parameters.values import AT_MS, filled
from tests.support.truth_table import truth_table

PAGE = (Path(__file__).parents[3] / "docs" / "parameters.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)
EXAMPLES = ROW.findall(PAGE)
RESULT = '{"rows": [{"id": 17}, {"id": 18.50}], "a b": true, "said": "\\"no\\""}'


@truth_table("text, expected", EXAMPLES)
def test_an_example_is_filled_in(text: str, expected: str) -> None:
    parent = GivenRun(41, RESULT, "region=eu")
    at_ms = AT_MS // 1_000 * 1_000
    assert filled(text, logical_ms=at_ms, parent=parent, variables={"REGION": "eu"}) == expected


def test_the_page_has_examples_of_each_kind() -> None:
    assert len(EXAMPLES) > 25
    assert f"`{RESULT}`" in PAGE


def test_recipes_are_templates() -> None:
    recipes = PAGE.partition("## Times")[0]
    texts = re.findall(r"`([^`\n]*\$\{[^`\n]*)`", recipes)
    texts += [line for line in recipes.splitlines() if "${" in line and "`" not in line]
    kept = [text for text in texts if text != "${HOME}"]
    assert [parse(text) for text in kept]
    assert len(kept) > 5


def test_the_letters_are_those_of_the_language() -> None:
    table = PAGE.partition("| letters |")[2].partition("\n\n")[0]
    cells = [cell for line in table.splitlines()[1:] for cell in line.split("|")[1::2]]
    assert set(re.findall(r"`(\w+)`", " ".join(cells))) == LETTERS


def test_the_limits_are_those_of_the_language() -> None:
    limits = (
        TEMPLATE_MAX,
        PLACEHOLDERS_MAX,
        STEPS_MAX,
        DIGITS_MAX,
        PATH_MAX,
        FILLED_MAX,
        FIRST_YEAR,
        LAST_YEAR,
    )
    text = " ".join(PAGE.partition("A template has at most")[2].partition("- `NAME`")[0].split())
    assert re.findall(r"\d[\d,]*", text.replace("UTF-8", "")) == [
        f"{number:,}" if number not in (FIRST_YEAR, LAST_YEAR) else str(number) for number in limits
    ]
    assert f"at most {NAME_MAX} characters" in PAGE
