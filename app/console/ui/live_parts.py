"""Live parts: a page refreshes itself and gets only the parts that changed.

A template wraps what changes, `{% call live_part('tiles', class='tiles') %}…{% endcall %}` (a div) or
`{% call live_row('run-%d' % log.id) %}<td>…{% endcall %}` (a tr), and puts `live_tools()` of macros/live.html
into its heading. No include is needed for the two functions, and no view changes.

- Ids are letters, digits, `-` and `_`, unique in the page. A part may contain parts: rows go into
  `{% call live_part('rows', tag='tbody') %}`; then new, gone and moved rows are live too. A changed tr or li
  is marked for two seconds. A part that comes and goes needs one around it that stays.
- More arguments are attributes of the element: `class='grid'`, `data_id=7`; None and False leave one out.
- Text of `<time>` (`instant()`, `elapsed_time()`, `age_time()`) and CSRF tokens are no change; js/live.js
  lets times tick.
- What a script added to a part may be gone after a change: listen to `live-refreshed` on the document; its
  `detail.changed` lists the elements. Children of an element with `data-live-keep` belong to the script;
  `live_data('d7', marks=…)` is data for it. Focus, ticked boxes, open menus and details stay.

The browser repeats the request with the hashes it holds in `X-Parts`; the view runs as always, and the answer
is JSON, ``{"parts": {"run-7": "<tr …"}}``, or 204. Nested parts are slots in the text of the outer one. The
frame of the page is not rendered then; a template leaves out more with `{% if not is_refresh() %}`.
"""

import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from flask import Flask, Response, g, json, request
from markupsafe import Markup, escape

from app.clock import Millis, now_ms
from app.console.ui.filters import absolute, age, duration, iso

#: header with the hashes of the parts that the browser shows, one after the other
HEADER = "X-Parts"
#: characters of a hash; a page of 1,000 parts fits into one header of 8 KB
HASH_LENGTH = 6
#: stands for a nested part until the outermost one is written; random, so that no stored text contains it
_MARK = f"\x02{secrets.token_hex(8)}:"
_PLACE = re.compile(_MARK + r"([\w-]+)\x03")
_TIME = re.compile(r'(<time\b[^>]*?datetime="[^"]*")[^>]*>[^<]*')
_TOKEN = re.compile(r'(name="csrf_token"\s+value=")[^"]*')
_ID = re.compile(r"[\w-]+")
#: text that needs no escaping
_PLAIN = re.compile(r"[\w .:,-]*")


@dataclass(slots=True)
class _Page:
    """Parts of one response, and how many are being rendered around the present one."""

    #: id -> hash, text with places of nested parts
    parts: dict[str, tuple[str, str]] = field(default_factory=dict)
    depth: int = 0


def live_part(part_id: str, *, tag: str = "div", caller: Callable[[], str], **attributes: object) -> Markup:
    """Render a part, in a `{% call %}`; raises ValueError for an id that is invalid or used twice."""
    page = _page()
    page.depth += 1
    try:
        content = str(caller())
    finally:
        page.depth -= 1
    return _part(page, part_id, f"<{tag}{_format_attributes(attributes)}", f"{content}</{tag}>")


def live_row(part_id: str, *, caller: Callable[[], str], **attributes: object) -> Markup:
    """Render a row of a table as a part."""
    return live_part(part_id, tag="tr", caller=caller, **attributes)


def live_data(part_id: str, **data: object) -> Markup:
    """Render data for a script as a part that is not shown, in ``data-`` attributes."""
    attributes = "".join(f' data-{name}="{_quote(value)}"' for name, value in data.items())
    return _part(_page(), part_id, f"<i hidden{attributes}", "</i>")


def is_refresh() -> bool:
    """Return whether the browser has the page and asks for its changed parts."""
    return HEADER in request.headers


def elapsed_time(since_ms: Millis) -> Markup:
    """Render the time since an instant as a duration that counts up: ``12 s``."""
    return Markup('<time datetime="{}" data-elapsed>{}</time>').format(
        iso(since_ms), duration(now_ms() - since_ms)
    )


def age_time(since_ms: Millis) -> Markup:
    """Render the time since an instant in one unit, which counts up: ``3 days``."""
    return Markup('<time datetime="{}" title="{}" data-age>{}</time>').format(
        iso(since_ms), absolute(since_ms), age(since_ms)
    )


def _part(page: _Page, part_id: str, start: str, remainder: str) -> Markup:
    if not _ID.fullmatch(part_id) or part_id in page.parts:
        raise ValueError(f"live part {part_id!r}: use letters, digits, - and _, each id once in a page")
    start += f' data-part="{part_id}"'
    digest = _hash_of(f"{start}>{remainder}")
    text = f'{start} data-hash="{digest}">{remainder}'
    page.parts[part_id] = digest, text
    if page.depth:
        return Markup(f"{_MARK}{part_id}\x03")  # nosec B704  # an id
    # Rendered by the template; the answer to a refresh has the parts alone.
    return Markup("" if is_refresh() else _fill(text, page))  # nosec B704


def _page() -> _Page:
    page = g.setdefault("live_page", _Page())
    assert isinstance(page, _Page)
    return page


def _format_attributes(attributes: dict[str, object]) -> str:
    return "".join(
        f" {name.replace('_', '-')}" + ("" if value is True else f'="{_quote(value)}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )


def _quote(value: object) -> str:
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    return str(escape(value)).replace('"', "&#34;")  # the markup of tojson has quotes


def _hash_of(text: str) -> str:
    """Return the hash of a part: the same while only tokens and the text of times differ."""
    plain = text.replace(_MARK, "\x02")
    if "<time" in plain:
        plain = _TIME.sub(r"\1", plain)
    if "csrf_token" in plain:
        plain = _TOKEN.sub(r"\1", plain)
    digest = blake2b(plain.encode("utf-8", "replace"), digest_size=6).digest()
    return urlsafe_b64encode(digest).decode()[:HASH_LENGTH]


def _fill(text: str, page: _Page) -> str:
    return _PLACE.sub(lambda place: _fill(page.parts[place[1]][1], page), text)


def _with_slots(text: str) -> str:
    return _PLACE.sub(r'<template data-slot="\1"></template>', text)


def _answer(response: Response) -> Response:
    """Replace a page by its changed parts, if the browser says which ones it has."""
    header = request.headers.get(HEADER)
    if header is None or response.status_code != 200 or response.mimetype != "text/html":
        return response
    hashes = {header[at : at + HASH_LENGTH] for at in range(0, len(header), HASH_LENGTH)}
    parts = _page().parts.items()
    changes = {part_id: _with_slots(text) for part_id, (digest, text) in parts if digest not in hashes}
    if changes:
        response.set_data(json.dumps({"parts": changes}))
        response.mimetype = "application/json"
    else:
        response.set_data(b"")
        response.status_code = 204
        del response.headers["Content-Type"]
    return response


def init_app(app: Flask) -> None:
    """Make the parts available to the templates, and answer refreshes."""
    for function in (live_part, live_row, live_data, is_refresh, elapsed_time, age_time):
        app.add_template_global(function)
    app.add_template_global(now_ms)
    app.after_request(_answer)
