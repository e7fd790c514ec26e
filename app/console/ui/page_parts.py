"""Cached page parts: links by id and macros that a list renders hundreds of times."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from flask import Flask, g, url_for
from markupsafe import Markup

#: cached results per macro
PARTS_KEPT = 4_096
#: placeholder ids in a cached link
STAND_IN = 2_000_000_011


def link(endpoint: str, **values: Any) -> str:
    """Like ``url_for``, but a link with ids only is built once per request and the ids are filled in."""
    if not values or any(type(value) is not int for value in values.values()):
        return url_for(endpoint, **values)
    shapes, form = _shapes(), (endpoint, *values)
    if form not in shapes:
        shapes[form] = _shape(endpoint, list(values))
    return shapes[form] % values


def kept(macro: Callable[..., str]) -> Callable[..., str]:
    """Cache a macro whose text depends on its arguments alone, not on reader or time."""
    return lru_cache(PARTS_KEPT, typed=True)(macro)  # typed: plain text differs from equal Markup


def filled(macro: Callable[..., str]) -> Callable[..., Markup]:
    """Cache a macro of an id and flags: rendered once per request and flags, then only the id is filled in.

    Only for macros whose other arguments are flags and counts, never text from users.
    """

    def part(number: int, *flags: bool | int) -> Markup:
        parts, form = _parts(), (part, flags)
        if form not in parts:
            parts[form] = macro(STAND_IN, *flags).split(str(STAND_IN))
        return Markup(
            str(int(number)).join(parts[form])
        )  # the macro escaped the pieces; a number needs no escaping

    return part


def init_app(app: Flask) -> None:
    """Register them with the templates."""
    app.jinja_env.globals.update(url_for=link, kept=kept, filled=filled)


def _shapes() -> dict[tuple[str, ...], str]:
    try:
        return cast(dict[tuple[str, ...], str], g.link_shapes)
    except AttributeError:
        g.link_shapes = {}
        return cast(dict[tuple[str, ...], str], g.link_shapes)


def _parts() -> dict[Any, list[str]]:
    try:
        return cast(dict[Any, list[str]], g.filled_parts)
    except AttributeError:
        g.filled_parts = {}
        return cast(dict[Any, list[str]], g.filled_parts)


def _shape(endpoint: str, names: list[str]) -> str:
    """Return the URL as a format: ``/joblog/%(log_id)d``."""
    stand_ins: dict[str, Any] = {name: STAND_IN + number for number, name in enumerate(names)}
    shape = url_for(endpoint, **stand_ins).replace("%", "%%")
    for name, number in stand_ins.items():
        shape = shape.replace(str(number), f"%({name})d")
    return shape
