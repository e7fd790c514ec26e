"""Words that docs/glossary.md bans are not used, and no line is too long; and the checks can fail."""

import pytest

from tests.support.wording import GLOSSARY, ROOT, banned_words, files, long_lines, wording_problems

WORDS = banned_words(GLOSSARY.read_text(encoding="utf-8"))


def test_the_glossary_bans_words() -> None:
    assert {"whoever", "as far as", "asked_"} <= set(WORDS)


def test_no_banned_word_is_used() -> None:
    searched = list(files())
    assert len(searched) > 500
    found = [
        problem
        for path in searched
        for problem in wording_problems(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"), WORDS)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "# Whoever asks first wins",
        '"""Nobody is there."""',
        "asked_length = 3",
        "is TOLD of it",
        "lets go of the lock",
    ],
)
def test_a_banned_word_is_found(text: str) -> None:
    assert len(wording_problems("x.py", f"good = 1\n{text}\n", WORDS)) == 1


@pytest.mark.parametrize(
    "text", ['username="nobody"', "skinned, kinds and airborne", "asked once", "is bold"]
)
def test_data_and_other_words_are_allowed(text: str) -> None:
    assert wording_problems("x.py", text, WORDS) == []


def test_no_line_of_code_is_too_long() -> None:
    """Ruff allows a longer one that ends in a comment for a tool."""
    code = [path for path in files() if path.suffix == ".py"]
    long = [
        line for path in code for line in long_lines(str(path.relative_to(ROOT)), path.read_text("utf-8"))
    ]
    assert long == []


def test_a_long_line_is_found() -> None:
    assert long_lines("x.py", f"{'x' * 110}\n{'x' * 111}\n") == ["x.py:2: 111 characters"]
