"""Bootstrap: its style sheet without the rules for classes that no page has.

The whole one is 31 KB compressed, and most of it is utilities and components that the console does not use.
"""

import re
from collections.abc import Iterator

from app.console.web.icons import APP, SOURCES

SHEET = APP / "static" / "vendor" / "bootstrap" / "bootstrap.min.css"
_WORD = re.compile(r"[\w-]+")
_CLASS = re.compile(r"\.([a-zA-Z_][\w-]*)")
#: what an element must not be
_NOT = re.compile(r":not\([^()]*\)")
#: rules that are groups of rules
_GROUPS = ("@media", "@supports")


def style_sheet() -> bytes:
    """Return the style sheet with the rules that can apply; empty without the set-up's files."""
    if not SHEET.exists():
        return b""
    texts = (path.read_text(encoding="utf-8") for pattern in SOURCES for path in APP.glob(pattern))
    words = {word for text in texts for word in _WORD.findall(text)}
    return reduce_sheet(SHEET.read_text(encoding="utf-8"), words).encode()


def reduce_sheet(sheet: str, words: set[str]) -> str:
    """Return a minified style sheet without the selectors whose classes are not among ``words``.

    A word that ends with a hyphen is the beginning of a class: ``btn-`` of ``btn-{{ kind }}``.
    """
    beginnings = tuple(word for word in words if word.endswith("-") and word.strip("-"))

    def is_used(selector: str) -> bool:
        names = _CLASS.findall(_NOT.sub("", selector))
        return all(name in words or name.startswith(beginnings) for name in names)

    rules = []
    for head, body in _rules(sheet):
        if head.startswith(_GROUPS):
            body = reduce_sheet(body, words)
        elif not head.startswith("@"):
            # A comma in brackets separates no selectors.
            head = ",".join(selector for selector in re.split(r",(?![^()]*\))", head) if is_used(selector))
        if head and body:
            rules.append(f"{head}{{{body}}}")
    return "".join(rules)


def _rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Yield head and body of each outer rule of a minified style sheet."""
    sheet = re.sub(r"/\*.*?\*/", "", re.sub(r"@charset[^;]*;", "", sheet), flags=re.DOTALL)
    head_start, body_start, depth = 0, 0, 0
    for match in re.finditer(r'"[^"]*"|\'[^\']*\'|url\([^)]*\)|[{}]', sheet):
        if match[0] == "{":
            depth += 1
            body_start = match.end() if depth == 1 else body_start
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                yield sheet[head_start : body_start - 1].strip(), sheet[body_start : match.start()]
                head_start = match.end()
