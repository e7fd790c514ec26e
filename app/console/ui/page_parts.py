"""Cached macros: parts of a page that a list renders hundreds of times."""

import secrets
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from flask import Flask, g
from markupsafe import Markup

#: cached results per macro
PARTS_KEPT = 4_096
#: ids with which a macro is rendered for the cache; random, so that no text from users contains them
_FIRST = secrets.randbelow(100_000_000) + 2_000_000_000
PLACEHOLDER_IDS = (_FIRST, _FIRST + 1)


def kept(macro: Callable[..., str]) -> Callable[..., str]:
    """Cache a macro whose text depends only on its arguments, not on reader or time."""
    return lru_cache(PARTS_KEPT, typed=True)(macro)  # typed: plain text differs from equal Markup


def filled(macro: Callable[..., str], ids: int = 1) -> Callable[..., Markup]:
    """Cache a macro of ids and flags per request; only the ids, its first arguments, are filled in.

    Halves the time of a list of 100 jobs. The flags should have few different values.
    """
    placeholders = PLACEHOLDER_IDS[:ids]

    def part(*arguments: int | bool | str) -> Markup:
        rendered, flags = _rendered(), arguments[ids:]
        key = (part, flags)
        if key not in rendered:
            rendered[key] = str(macro(*placeholders, *flags))
        # the macro has escaped its text, and a number needs no escaping
        markup = rendered[key]
        for placeholder, row_id in zip(placeholders, arguments, strict=False):
            markup = markup.replace(str(placeholder), str(int(row_id)))
        return Markup(markup)  # nosec B704

    return part


def _rendered() -> dict[Any, str]:
    """Return the cache of this request."""
    if "rendered_parts" not in g:
        g.rendered_parts = {}
    return cast(dict[Any, str], g.rendered_parts)


def init_app(app: Flask) -> None:
    """Make both available to the templates."""
    app.jinja_env.globals.update(kept=kept, filled=filled)
