"""Incidents: their keys, and the promises that were broken."""

from enum import StrEnum

from app.clock import Millis
from app.domain.promises.promise import Promise, promise_of, read_kinds


class Subject(StrEnum):
    """What an incident is about: the first part of its key."""

    INSTANT = "i"
    #: time without a success
    WINDOW = "w"
    #: failures in a row
    SERIES = "r"


def key_of_instant(job_id: int, logical_ms: Millis) -> str:
    """Return the key of the incident of an instant."""
    return f"{Subject.INSTANT}:{job_id}:{logical_ms}"


def key_of_window(job_id: int, number: int, start_ms: Millis) -> str:
    """Return the key of the incident of a window without a success; ``number``: of its promise."""
    return f"{Subject.WINDOW}:{job_id}:{number}:{start_ms}"


def key_of_series(job_id: int, first_log_id: int) -> str:
    """Return the key of the incident of a series of failures."""
    return f"{Subject.SERIES}:{job_id}:{first_log_id}"


def subject_of(key: str) -> Subject:
    """Return what the incident with this key is about."""
    return Subject(key.partition(":")[0])


def broken_promises(kinds: str) -> dict[int, Promise]:
    """Return number -> broken promise of an incident, from its stored JSON text."""
    return {int(number): promise_of(members) for number, members in read_kinds(kinds).items()}
