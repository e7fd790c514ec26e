"""Instants and durations: parsing of options, and formatting for people."""

import re
from datetime import datetime
from typing import Any

import click

UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_PARTS = re.compile(r"(\d+)([smhd])")
#: fraction of a second, ``:05.5``, and an offset without a colon, ``:05+0100``
_FRACTION = re.compile(r"(?<=:\d\d)[.,](\d+)")
_OFFSET = re.compile(r"(?<=:\d\d)(\.\d+)?([+-]\d\d)(\d\d)$")


class Duration(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has no parameters
    """``90``, ``90s``, ``10m``, ``1h30m``: seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the seconds."""
        if isinstance(value, int):
            return value
        text = str(value).strip().lower()
        if text.isascii() and text.isdigit():
            return int(text)
        parts = _PARTS.findall(text)
        if not parts or "".join(map("".join, parts)) != text:
            self.fail(f"{value!r} is not a duration such as 90s, 10m or 1h30m", param, ctx)
        return sum(int(number) * UNITS_S[unit] for number, unit in parts)


class Instant(click.ParamType):  # type: ignore[type-arg]
    """``2026-12-24 18:00``, local time, or with an offset: RFC 3339."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the instant in the API's format."""
        text = str(value).strip()
        try:
            return moment(text).astimezone().isoformat(timespec="milliseconds")
        except (ValueError, OverflowError):
            self.fail(
                f"{text!r} is not a time such as '2026-12-24 18:00' or 2026-12-24T18:00:00+08:00", param, ctx
            )


def readable(text: str) -> str:
    """Rewrite an RFC 3339 instant for Python 3.10: no ``Z``, six digits of a second, ``+01:00``."""
    text = re.sub("[zZ]$", "+00:00", text)
    text = _FRACTION.sub(lambda digits: f".{digits[1][:6]:0<6}", text)
    return _OFFSET.sub(r"\1\2:\3", text)


def local_time(instant: Any) -> str:
    """Return an instant of the API as local time, ``2026-12-24 18:00:00``; nothing for null."""
    if not instant:
        return ""
    return moment(instant).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def moment(instant: Any) -> datetime:
    """Return an instant of the API."""
    return datetime.fromisoformat(readable(str(instant)))


def duration_text(duration_ms: Any) -> str:
    """Return a duration as ``240 ms``, ``12.3 s``, ``4 min 10 s`` or ``2 h 5 min``; nothing for null."""
    if duration_ms is None:
        return ""
    if duration_ms < 1_000:
        return f"{duration_ms} ms"
    if duration_ms < 60_000:
        return f"{duration_ms / 1_000:.1f} s"
    minutes, seconds = divmod(duration_ms // 1_000, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"
