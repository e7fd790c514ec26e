"""The style sheet of the console: one file, put together once from Bootstrap, the icons and ``static/css``.

The tokens come first: nothing after them names a colour. Comments and indents are left out.
"""

import re
from hashlib import sha256

from app.console.web import bootstrap, icons

STATIC = icons.APP / "static"
#: the order of the files under static/; a later rule goes before an earlier one
SHEETS = (
    *("tokens", "app", "frame", "narrow-menu", "boxes", "lists", "search", "menus", "forms", "jobs"),
    *("picker", "charts", "report", "dashboard", "runs", "api", "media"),
)
#: sheets of few pages, which load them after that of all pages
PAGE_SHEETS = (
    "alarms",
    "backfills",
    "calendars",
    "completeness",
    "executors",
    "glue",
    "graph",
    "help",
    "limits",
    "promises",
)
#: characters of the hash in an address, see static_files.py
HASH_LENGTH = 12
#: as css/app.css names it
FONT = "../fonts/inter.woff2"
#: values of the dark theme, once it is chosen
_DARK = re.compile(r"\[data-bs-theme=dark\] (\{[^}]+\})")
#: the same for a visitor without a choice and without JavaScript
_UNCHOSEN = r"\g<0>\n@media (prefers-color-scheme: dark) { :root:not([data-bs-theme]) \1 }"
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SPACE = re.compile(r"\s*\n\s*")


def style_sheet() -> bytes:
    """Return the style sheet; without the set-up's files it has the console's own part only."""
    parts = [bootstrap.style_sheet().decode(), icons.style_sheet().decode()]
    tokens, *others = ((STATIC / "css" / f"{name}.css").read_text(encoding="utf-8") for name in SHEETS)
    parts += [_DARK.sub(_UNCHOSEN, tokens), *others]
    text = "\n".join(parts).replace(FONT, _font_address())
    return _SPACE.sub("\n", _COMMENT.sub("", text)).encode()


def _font_address() -> str:
    """Return the address of the font with its hash: browsers keep it for a year."""
    digest = sha256((STATIC / "css" / FONT).read_bytes()).hexdigest()[:HASH_LENGTH]
    return FONT.replace(".woff2", f".{digest}.woff2")
