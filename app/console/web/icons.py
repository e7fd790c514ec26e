"""Icons: a style sheet with the used ones of Bootstrap Icons, each a mask in the colour of the text.

The font of all 2,000 icons is 134 KB, its style sheet 87 KB; the used ones are a tenth.
"""

import re
from pathlib import Path
from urllib.parse import quote

APP = Path(__file__).resolve().parents[2]
SPRITE = APP / "static" / "vendor" / "bootstrap-icons" / "bootstrap-icons.svg"
#: how sources name icons: `'play-fill'`, or the class `bi-play-fill`
SOURCES = ("templates/**/*.html", "console/**/*.py", "static/js/*.js")
_SYMBOL = re.compile(r'<symbol class="[^"]*" viewBox="([^"]*)" id="([^"]*)">(.*?)</symbol>', re.DOTALL)
_NAME = re.compile(r"['\"]([a-z0-9-]+)['\"]|\bbi-([a-z0-9-]+)")
#: characters that a data URL has unescaped; percent escapes take three characters
_PLAIN = " ='/:,();-.!*"
_RULES = """\
.bi { --icon: none; }
.bi::before { display: inline-block; width: 1em; height: 1em; vertical-align: -0.125em; content: "";
  background-color: currentcolor; -webkit-mask: var(--icon) center / contain no-repeat;
  mask: var(--icon) center / contain no-repeat; }
@media (forced-colors: active) { .bi::before { forced-color-adjust: none; } }
"""


def used_names() -> set[str]:
    """Return all names in the sources that could be icons; some are other words."""
    texts = (path.read_text(encoding="utf-8") for pattern in SOURCES for path in APP.glob(pattern))
    return {literal or plain for text in texts for literal, plain in _NAME.findall(text)}


def style_sheet() -> bytes:
    """Return the style sheet of the used icons; without the set-up's files it has none."""
    names = used_names()
    symbols = _SYMBOL.findall(SPRITE.read_text(encoding="utf-8")) if SPRITE.exists() else []
    rules = [_rule(name, box, paths) for box, name, paths in symbols if name in names]
    return (_RULES + "\n".join(rules) + "\n").encode()


def _rule(name: str, box: str, paths: str) -> str:
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='{box}'>{paths.strip()}</svg>"
    return (
        f'.bi-{name}{{--icon:url("data:image/svg+xml,{quote(svg.replace(chr(34), chr(39)), safe=_PLAIN)}")}}'
    )
