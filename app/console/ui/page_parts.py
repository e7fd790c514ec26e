"""What a page asks for hundreds of times, made cheap: links to things by their ids, and parts that are the same for the same words."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from flask import Flask, g, url_for
from markupsafe import Markup

#: parts of each kept macro
PARTS_KEPT = 4_096
#: numbers that stand in a link for the ids it is to hold
STAND_IN = 2_000_000_011


def link(endpoint: str, **values: Any) -> str:
    """Return the same as ``url_for``: with nothing but ids the address is built once a request, and the ids are filled in."""
    if not values or any(type(value) is not int for value in values.values()):
        return url_for(endpoint, **values)
    shapes, form = _shapes(), (endpoint, *values)
    if form not in shapes:
        shapes[form] = _shape(endpoint, list(values))
    return shapes[form] % values


def kept(macro: Callable[..., str]) -> Callable[..., str]:
    """Return a macro that remembers what it made; only for one whose text depends on its arguments alone, not on reader or time."""
    return lru_cache(PARTS_KEPT, typed=True)(
        macro
    )  # typed: text to be escaped is not the same as an equal text that is marked


def filled(macro: Callable[..., str]) -> Callable[..., Markup]:
    """Return a macro of an id and flags that is asked once a request for the same flags; afterwards only the id is filled in.

    Only for one that shows nothing else of its row: what else is handed in are truths and counts, never a text of users.
    """

    def part(number: int, *flags: bool | int) -> Markup:
        parts, form = _parts(), (part, flags)
        if form not in parts:
            parts[form] = macro(STAND_IN, *flags).split(str(STAND_IN))
        return Markup(
            str(int(number)).join(parts[form])
        )  # the macro has escaped the pieces, and a number needs no escaping

    return part


def init_app(app: Flask) -> None:
    """Make them known to the templates."""
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
    """Return the address as a text to be filled in: ``/joblog/%(log_id)d``."""
    stand_ins: dict[str, Any] = {name: STAND_IN + number for number, name in enumerate(names)}
    shape = url_for(endpoint, **stand_ins).replace("%", "%%")
    for name, number in stand_ins.items():
        shape = shape.replace(str(number), f"%({name})d")
    return shape
