"""Envelope of the original's JSON endpoints: parameters and responses.

Source: docs/reference/console.md, sections 1.1 and 1.2. Clients depend on details: the order of the keys,
integers as integers, dates with milliseconds and ``+00:00`` (docs/reference/clients.md, section B3).
"""

import json
import re
from datetime import UTC, datetime
from typing import Any

from flask import Response, request
from werkzeug.exceptions import BadRequest

from app.clock import LATEST_MS, Millis
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.store.base.paging import Page

SUCCESS = 200
FAIL = 500
JSON_TYPE = "application/json"
INT_BITS = 32
LONG_BITS = 64


def envelope(content: Any = None, *, code: int = SUCCESS, msg: str | None = None) -> Response:
    """Return ``{"code":200,"msg":null,"content":…}`` with HTTP 200."""
    return as_json({"code": code, "msg": msg, "content": content})


def table(page: Page[Any], rows: list[dict[str, Any]]) -> Response:
    """Return one page of a list in the format of the original's tables, without an envelope."""
    return as_json({"recordsTotal": page.total, "recordsFiltered": page.total, "data": rows})


def as_json(value: Any, *, status: int = 200) -> Response:
    """Return compact JSON; keys keep their order."""
    body = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(body.encode("utf-8", "replace"), status=status, content_type=JSON_TYPE)


def date_text(ms: Millis | None) -> str | None:
    """``2024-05-01T03:04:05.000+00:00``, as Spring Boot 2.7 writes dates."""
    if ms is None:
        return None
    return datetime.fromtimestamp(min(ms, LATEST_MS) // 1000, UTC).strftime(
        f"%Y-%m-%dT%H:%M:%S.{ms % 1000:03d}+00:00"
    )


def text_parameter(name: str) -> str | None:
    """Return a query or form parameter; repeated values are joined by commas; None if absent."""
    texts = request.values.getlist(name)
    return ",".join(texts) if texts else None


def text_or_empty(name: str) -> str:
    """Return a parameter, empty if absent."""
    return text_parameter(name) or ""


def int_parameter(name: str, default: int | None = None, *, bits: int = INT_BITS) -> int:
    """Return an integer parameter, the first if repeated.

    Absent: ``default``, or InvalidInput without one. Not an integer of ``bits`` bits: HTTP 400.
    """
    text = request.values.get(name)
    if text is None:
        if default is None:
            raise InvalidInput(name, N_("Parameter %(name)s is missing", name=name))
        return default
    return read_int(name, text, bits=bits)


def read_int(name: str, text: str, *, bits: int = INT_BITS) -> int:
    """Read a whole number of ``bits`` bits; raises BadRequest (HTTP 400)."""
    text = re.sub(r"\s", "", text)
    if re.fullmatch(r"[+-]?[0-9]{1,20}", text) is None or not -(2 ** (bits - 1)) <= int(text) < 2 ** (
        bits - 1
    ):
        raise BadRequest(f"{name} is not a number of {bits} bits")
    return int(text)


def bean_int(name: str) -> int:
    """Return an integer parameter, 0 if absent, like the int member of a Java bean."""
    return int_parameter(name, 0)


def page_range() -> tuple[int, int]:
    """Return ``start`` and ``length`` of a table; a negative length is refused, as by the original."""
    start, length = int_parameter("start", 0), int_parameter("length", 10)
    if length < 0:
        raise InvalidInput("length", N_("Parameter %(name)s must not be negative", name="length"))
    return max(start, 0), length


def status_answer(status: int, error: str, *, timestamp_ms: Millis) -> Response:
    """Return the original's response with status 400, 404 or 405."""
    path = request.script_root + request.path
    return as_json(
        {"timestamp": date_text(timestamp_ms), "status": status, "error": error, "path": path}, status=status
    )
