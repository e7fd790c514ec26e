"""Instants as texts of RFC 3339: ``2030-01-31T00:00:00.000Z``."""

from datetime import UTC, datetime, timedelta

from app.clock import LATEST_MS, Millis

_EPOCH = datetime.fromtimestamp(0, UTC)


def write_instant(at_ms: Millis) -> str:
    """Return an instant in UTC, with milliseconds."""
    moment = _EPOCH + timedelta(milliseconds=min(at_ms, LATEST_MS))
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def read_instant(text: object) -> Millis:
    """Return the instant of a text with any offset, ``2030-01-31T08:00:00+08:00``; raises ValueError."""
    refusal = ValueError("must be a time with an offset, such as 2030-01-31T08:00:00Z")
    if not isinstance(text, str):
        raise refusal
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        raise refusal from exc
    if moment.tzinfo is None:
        raise refusal
    at_ms = (moment - _EPOCH) // timedelta(milliseconds=1)
    if not 0 <= at_ms <= LATEST_MS:
        raise ValueError("must be a time from 1970 to 9998")
    return at_ms
