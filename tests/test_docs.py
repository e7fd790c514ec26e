"""Documentation: references from code and pages exist, and every picture is used."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from executor_client.wire.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
TEMPLATES = sorted((ROOT / "app" / "templates").rglob("*.html"))
CITING = ("app", "workers", "executor_client", "migrations", "bench", "tests")
PAGES = sorted(
    path for path in ROOT.rglob("*.md") if ".venv" not in path.parts and "node_modules" not in path.parts
)
#: ``docs/reference/protocol.md, sections 2 and 9.3``; the sections may be missing
CITATION = re.compile(
    r"docs/reference/([\w-]+\.md)"
    r"(?:, sections? ((?:[A-Z]?\d[\d.]*|[A-Z])(?:(?:, | and | to )[A-Z]?\d[\d.]*)*))?"
)
COMMENT = re.compile(r"{#.*?#}", re.DOTALL)
#: of shields.io, without a service that is asked for the value
BADGE = re.compile(r"https://img\.shields\.io/badge/([\w-]+?)-((?:[^-\s]|--)+)-\w+\)")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def citations() -> Iterator[tuple[str, str, str]]:
    """Yield the citing file, the cited file of docs/reference, and the section ("" for the whole file)."""
    for folder in CITING:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path == Path(__file__):
                continue
            text = re.sub(r"\s+(?:#:? )?", " ", path.read_text(encoding="utf-8"))
            for file, sections in CITATION.findall(text):
                for section in re.split(r", | and | to ", sections):
                    yield str(path.relative_to(ROOT)), file, section.rstrip(".")


def sections_of(text: str) -> set[str]:
    """Return the numbers of the headings of a page and of rules in bold (``- **P9 Output.**``)."""
    headings = re.findall(r"^#+ ([A-Z]?\d+(?:\.\d+)*|[A-Z])\.? ", text, re.MULTILINE)
    return {*headings, *re.findall(r"^- \*\*([A-Z]\d+) ", text, re.MULTILINE), ""}


def test_references_in_docstrings_exist() -> None:
    found = list(citations())
    known = {path.name: sections_of(path.read_text(encoding="utf-8")) for path in REFERENCE.glob("*.md")}
    assert [citation for citation in found if citation[2] not in known.get(citation[1], ())] == []
    assert len(found) > 40


def test_modules_that_templates_name_exist() -> None:
    comments = [text for path in TEMPLATES for text in COMMENT.findall(path.read_text(encoding="utf-8"))]
    named = re.findall(r"\bapp((?:[./][a-z_]+){2,})", "\n".join(comments))
    places = [ROOT / "app" / name.removesuffix(".py").replace(".", "/").strip("/") for name in named]
    assert [place for place in places if not (place.is_dir() or place.with_suffix(".py").is_file())] == []
    assert places


def test_headings_of_all_kinds_are_found() -> None:
    text = "# Title\n## 2. Paths\n### 2.4 Errors\n### A4. Requests\n## B. Consoles\n- **P9 Output.** Text\n"
    assert sections_of(text) == {"2", "2.4", "A4", "B", "P9", ""}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_have_targets(page: Path) -> None:
    def exists(link: str) -> bool:
        name, _, anchor = unquote(link).partition("#")
        target = (page.parent / name).resolve() if name else page
        return target.exists() and (not anchor or anchor in anchors(target))

    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not link.startswith(("http://", "https://")) and not exists(link)] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors GitHub generates for the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_picture_is_shown_and_every_shown_picture_exists() -> None:
    shown = {
        name for page in PAGES for name in re.findall(r"img/([\w-]+\.png)", page.read_text(encoding="utf-8"))
    }
    assert {path.name for path in (DOCS / "img").glob("*.png")} == shown


def test_the_changelog_names_the_version() -> None:
    newest = re.search(
        r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert newest is not None
    assert newest[1] == VERSION


def test_the_security_policy_supports_the_minor_release() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| ([\d.]+) \| yes \|$", text, re.MULTILINE) == [VERSION.rpartition(".")[0]]


def test_the_badges_are_true() -> None:
    badges = dict(BADGE.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    releases = re.search(r"XXL-JOB ([\d.]+ to [\d.]+)", project["description"])
    assert releases is not None
    assert {name: unquote(value).replace("--", "-") for name, value in badges.items()} == {
        "python": project["requires-python"].removeprefix(">=") + "+",
        "license": project["license"],
        "XXL--JOB": releases[1],
    }


#: pages that name files of the program
INTERNALS = ("console", "locks", "operators", "pipeline", "time")
NAMING = (
    *(DOCS / f"internals/{name}.md" for name in INTERNALS),
    DOCS / "architecture.md",
    ROOT / "CONTRIBUTING.md",
)


@pytest.mark.parametrize("page", NAMING, ids=lambda page: page.name)
def test_named_files_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./]+/[\w.]+\.\w+)`", text))
    folders = (ROOT, ROOT / "app")
    assert [name for name in sorted(named) if not any((folder / name).exists() for folder in folders)] == []
    assert named


PROSE_MAX = 100


def long_lines(text: str) -> list[int]:
    """Return the numbers of lines of prose that could be wrapped; tables, code and headings are not prose."""
    numbers, fence = [], ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark:
            fence = "" if fence else mark[1]
        is_prose = not fence and not mark and not line.startswith(("|", "#", "<", "[", "    "))
        if is_prose and len(line) > PROSE_MAX and " " in line[:PROSE_MAX].lstrip(" -*0123456789."):
            numbers.append(number)
    return numbers


def test_prose_is_wrapped() -> None:
    """So that a change of a sentence is a readable diff."""
    pages = [
        *DOCS.rglob("*.md"),
        *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
    ]
    texts = {path: path.read_text(encoding="utf-8") for path in pages}
    assert {str(path): long_lines(text) for path, text in texts.items() if long_lines(text)} == {}
    assert long_lines("word " * 21) == [1]
