"""Run logs over API v1: in pieces, or as a stream that survives broken connections."""

import json
from collections.abc import Iterator

from executor_client.api.errors import ApiUnreachable
from executor_client.api.session import ApiSession, Item
from executor_client.api.transport import ANSWER_S, Request
from executor_client.wire.clock import monotonic_s

#: lines of one answer, the API's maximum: for each answer the console reads up to 512 KiB from the executor,
#: and reads again for the next answer what exceeded the limit
LINES_MAX = 10_000
#: seconds without an event after which a stream counts as broken; the console sends one every 15 s
SILENCE_S = 40.0
#: consecutive connections without an event after which to give up
FRUITLESS = 3


def read_lines(session: ApiSession, path: str, *, from_line: int) -> Iterator[Item]:
    """Yield the current log at ``path`` in pieces: ``lines``, ``end``, ``message``."""
    while True:
        piece = session.get(path, {"from_line": from_line, "limit": LINES_MAX})
        yield piece
        if piece["end"] or not piece["lines"]:
            return
        from_line = piece["next_line"]


def follow(session: ApiSession, path: str, *, from_line: int, timeout_s: float | None) -> Iterator[Item]:
    """Yield the events of a log: ``{"line": 1, "text": …}``, ``{"error": …}``, last ``{"end": true, …}``.

    Continues after a broken connection where it was; ends without a last event when ``timeout_s`` have
    passed. Raises ApiUnreachable if the console does not come back, or a proxy ends each stream at once.
    """
    until_s = None if timeout_s is None else monotonic_s() + timeout_s
    fruitless = 0
    while until_s is None or monotonic_s() < until_s:
        fruitless += 1
        try:
            for event in _stream(session, path, from_line, until_s):
                fruitless = 0
                from_line = max(from_line, event.get("next_line", event.get("line", 0) + 1))
                if event.get("end"):
                    yield event
                    return
                if "heartbeat" not in event and "end" not in event:
                    yield event
                if until_s is not None and monotonic_s() >= until_s:
                    return
        except ApiUnreachable:
            if fruitless == FRUITLESS:
                raise
        if fruitless == FRUITLESS:
            raise ApiUnreachable(session.address, "the stream of the log ends at once")


def _stream(session: ApiSession, path: str, from_line: int, until_s: float | None) -> Iterator[Item]:
    """Yield the events of one request, at most until ``until_s``."""
    left_s = SILENCE_S if until_s is None else max(0.1, until_s - monotonic_s())
    query = {"from_line": from_line, "follow": True}
    headers = {"Accept": "application/x-ndjson"}
    wait_s = max(ANSWER_S, SILENCE_S) if until_s is None else min(SILENCE_S, left_s)
    request = Request("GET", path, query, headers=headers, timeout_s=wait_s)
    try:
        for text in session.open(request).lines():
            if text.strip():
                yield json.loads(text)
    except ApiUnreachable:
        if until_s is None or monotonic_s() < until_s:
            raise
