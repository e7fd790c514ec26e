"""Dispatch trace: plain text in `trigger_msg`, one ``Label: value`` per line, bounded in size."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from app.clock import LATEST_MS, Millis
from app.domain.runs.trace_templates import CHILDREN_HEAD, CUT, TRIGGER, TRIGGER_SEEN, find_template

#: longest trace, in characters; the column holds 65,535 bytes
TRACE_MAX = 12_000
#: longest text of an executor inside a trace, in characters
ANSWER_MAX = 2_000
#: longest result text kept (`handle_msg`), in characters and in bytes of UTF-8, lines about children included
RESULT_MAX, RESULT_BYTES = 50_000, 65_000
#: end of a result text that was cut, so that it cannot be given to another run
RESULT_CUT = f"\n{CUT}"


def clean_text(text: str, limit: int) -> str:
    """Return a text that a database can store: no NUL, no lone surrogate, at most ``limit`` characters."""
    if "\x00" in text:
        text = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    text = text[:limit]
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode()
    return text


@lru_cache(maxsize=1024)
def _second(second: int, zone: str) -> tuple[str, str]:
    moment = datetime.fromtimestamp(second, ZoneInfo(zone))
    return moment.strftime("%Y-%m-%d %H:%M:%S"), moment.strftime("%z")


def format_instant(millis: Millis, zone: str) -> str:
    """Return an instant in the local time of a zone: ``2026-11-20 08:00:00.250 +0800``."""
    text, offset = _second(min(millis, LATEST_MS) // 1000, zone)
    return f"{text}.{millis % 1000:03d} {offset}"


def parse_instant(text: str) -> Millis | None:
    """Return the instant of such a text; None if it is none."""
    try:
        return round(datetime.strptime(text, "%Y-%m-%d %H:%M:%S.%f %z").timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def due_in_trace(trace: str | None) -> Millis | None:
    """Return when a run was due, which the first line of its trace names; None if it does not."""
    first = (trace or "").partition("\n")[0]
    match = find_template(first, (TRIGGER_SEEN, TRIGGER))
    return parse_instant(match.values["instant"]) if match is not None else None


def join_lines(*parts: str | Sequence[str] | None) -> str:
    """Join lines and lists of lines into a trace; cut the middle out of one that is too long."""
    lines: list[str] = []
    for part in parts:
        if part:
            lines.extend([part] if isinstance(part, str) else part)
    trace = clean_text("\n".join(lines), TRACE_MAX * 4)
    if len(trace) <= TRACE_MAX:
        return trace
    half = TRACE_MAX // 2 - 10
    return f"{trace[:half]}\n{CUT}\n{trace[-half:]}"


def fit_result(text: str, children: str = "") -> str:
    """Return a result text with the lines about child jobs at its end; one that is too long is cut."""
    tail = f"\n{children}" if text and children else children
    characters, octets = RESULT_MAX - len(tail), RESULT_BYTES - len(tail.encode())
    if len(text) > characters or len(text.encode()) > octets:
        head = text[: characters - len(RESULT_CUT)].encode()[: octets - len(RESULT_CUT.encode())]
        text = head.decode(errors="ignore") + RESULT_CUT
    return text + tail


def result_of(handle_msg: str | None) -> str | None:
    """Return the result of a success: its message without our lines about child jobs; None if it is empty."""
    text = handle_msg or ""
    before, head, _ = text.rpartition(CHILDREN_HEAD)
    if head and (not before or before.endswith("\n")):
        text = before.removesuffix("\n")
    return text or None


def one_line(text: str) -> str:
    """Return a third-party text as part of a line: bounded, without line ends that could fake our lines."""
    return " ".join(text[: 2 * ANSWER_MAX].split())[:ANSWER_MAX]
