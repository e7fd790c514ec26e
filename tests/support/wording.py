"""Words that the glossary bans, searched in code, tests and documentation; and long lines of code."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
FOLDERS = ("app", "bench", "docs", "executor_client", "migrations", "tests", "workers")
SUFFIXES = {".py", ".html", ".js", ".css", ".md"}
#: characters of the longest line of code
MAX_LINE = 110
#: third-party files, and those that list the words
LEFT_OUT = ("app/static/vendor/", "docs/glossary.md", "executor_client/build/", "tests/test_wording.py")


def banned_words(glossary: str) -> list[str]:
    """Return the words in the last section of the glossary."""
    return re.findall(r"`([^`]+)`", glossary.partition("## Words that are not used")[2])


def files() -> Iterator[Path]:
    """Yield the files that are searched."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("*.py"), *found]):
        if path.suffix in SUFFIXES and not str(path.relative_to(ROOT)).startswith(LEFT_OUT):
            yield path


def wording_problems(name: str, text: str, words: list[str]) -> list[str]:
    """Return the lines with a banned word, except where it begins a quoted text: there it is data."""
    each = "|".join(re.escape(word) + ("" if word.endswith("_") else r"\b") for word in words)
    pattern = re.compile(rf'(?<![^"]")\b(?:{each})', re.IGNORECASE)
    return [
        f"{name}:{number}: {found.group()!r} is banned by docs/glossary.md"
        for number, line in enumerate(text.splitlines(), 1)
        for found in pattern.finditer(line)
    ]


def long_lines(name: str, text: str) -> list[str]:
    """Return the lines that are too long, with their lengths."""
    return [
        f"{name}:{number}: {len(line)} characters"
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > MAX_LINE
    ]
