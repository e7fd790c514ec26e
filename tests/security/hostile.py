"""Hostile input: values, forms and bodies, as strategies for hypothesis."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote_plus

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MEGABYTE = 1024 * 1024
#: values of form fields and query parameters, as bytes: some are no text
VALUES: tuple[bytes, ...] = (
    b"",
    b" \t\r\n",
    b"\x00",
    b"a\x00b",
    b"\xff\xfe\x80",
    b"\xed\xa0\x80",
    "\u202egpj.exe\u2066".encode(),
    "٣".encode(),
    ("\U0001f600" * 70).encode(),
    b"x" * MEGABYTE,
    "é".encode() * 300,
    b"9" * 400,
    b"-1",
    b"0",
    b"1e999",
    b"NaN",
    b"1.5",
    b"0x10",
    b"2147483647",
    b"2147483648",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"[]",
    b"{}",
    b"null",
    b"true",
    b'{"format":1,"jobs":[{}]}',
    b'{"a":' * 2_000,
    b"\r\nX-Injected: 1",
    b"%00%0a",
    b"../../etc/passwd",
    b"<script>alert(1)</script>",
    b"' OR 1=1 --",
    b"1,2,,-3,99999999999999999999",
    b"9999-99-99 99:99:99 - 0000-00-00 00:00:00",
    b"0 0 0 1 1 ? 1970-99999999",
)
#: parameters that several pages read
MORE_NAMES = (
    b"start",
    b"length",
    b"page",
    b"order",
    b"range",
    b"from",
    b"to",
    b"filterTime",
    b"id",
    b"next",
    b"hours",
    b"date",
    b"",
    b"\xff",
    b"__proto__",
)
Pairs = list[tuple[bytes, bytes]]


def values() -> st.SearchStrategy[bytes]:
    return st.sampled_from(VALUES) | st.binary(max_size=40) | st.text(max_size=40).map(as_bytes)


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@st.composite
def pairs(draw: st.DrawFn, names: list[str]) -> Pairs:
    """Changes of a form: one to three fields replaced, at times repeated, and at times an unknown one."""
    known = st.sampled_from([name.encode() for name in names] or list(MORE_NAMES))
    names_drawn = draw(st.lists(known | st.sampled_from(MORE_NAMES), min_size=1, max_size=3))
    found = [(name, draw(values())) for name in names_drawn]
    return found + found[:1] * draw(st.integers(0, 2))


def encoded(fields: Pairs) -> bytes:
    return b"&".join(quote_plus(name).encode() + b"=" + quote_plus(value).encode() for name, value in fields)


def json_values() -> st.SearchStrategy[Any]:
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=30)
        | st.sampled_from([2**31, 2**63, -(2**63) - 1, 10**400, "\x00", "x" * MEGABYTE, "\u202e"])
    )
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
        max_leaves=8,
    )


@st.composite
def json_bodies(draw: st.DrawFn, fields: dict[str, Any], *, in_list: bool = False) -> bytes:
    """A JSON body of these fields with hostile values, with repeated keys, or no JSON at all."""
    kind = draw(st.sampled_from(["fields", "fields", "fields", "value", "broken", "repeated", "nested"]))
    if kind == "broken":
        return draw(st.binary(max_size=60) | st.sampled_from([b"\xff\xfe{", b'{"a":', b"\x00", b"[" * 5_000]))
    if kind == "nested":
        return draw(st.sampled_from([b"[" * 50_000, b'{"a":' * 5_000, b"[" * 900 + b"]" * 900]))
    if kind == "value":
        return as_bytes(dumped(draw(json_values())))
    hostile = draw(st.dictionaries(st.sampled_from(sorted(fields)), json_values(), min_size=1, max_size=3))
    text = dumped(fields | hostile)
    if kind == "repeated":
        text = (
            text[:-1]
            + "".join(f",{json.dumps(name)}:{dumped(value)}" for name, value in hostile.items())
            + "}"
        )
    return as_bytes(f"[{text}]" if in_list else text)


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def try_out(strategy: st.SearchStrategy[Any], check: Callable[[Any], None], examples: int) -> None:
    """Check examples of a strategy, the same ones in every run."""

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(example: Any) -> None:
        check(example)

    run()
