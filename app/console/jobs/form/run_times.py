"""Times of a run by hand, as its form has them: when it starts, and what it stands for."""

from app.clock import Millis, now_ms
from app.console.jobs.form.forms import RunForm
from app.console.ui.filters import reader_zone
from app.console.ui.lists.ranges import read_local, write_local
from app.domain.text.texts import N_
from app.errors import InvalidInput

#: digits of the latest instant in milliseconds
MS_DIGITS = 15


def requested_start(form: RunForm) -> Millis | None:
    """Return when the run shall start, None for now; raises InvalidInput."""
    if form.when.data != "at":
        return None
    text = (form.at.data or "").strip()
    at_ms = read_local(text, reader_zone())
    if at_ms is None:
        raise InvalidInput("at", N_('"%(value)s" is not a time such as 2030-01-31 08:00:00', value=text[:40]))
    if at_ms <= now_ms():
        raise InvalidInput("at", N_("This time has passed; choose a later one"))
    return at_ms


def requested_logical(form: RunForm) -> Millis | None:
    """Return the logical time that is given, None without one; raises InvalidInput."""
    text, ms_text = (form.logical_time.data or "").strip(), form.repeated_ms.data or ""
    if not text:
        return None
    if ms_text.isascii() and ms_text.isdecimal() and len(ms_text) <= MS_DIGITS:
        repeated_ms = int(ms_text)
        # The field has neither the milliseconds nor which of two equal hours is meant.
        if text.replace("T", " ") == write_local(repeated_ms, reader_zone()):
            return repeated_ms
    at_ms = read_local(text, reader_zone())
    if at_ms is None:
        raise InvalidInput(
            "logicalTime", N_('"%(value)s" is not a time such as 2030-01-31 08:00:00', value=text[:40])
        )
    return at_ms


def input_text(at_ms: Millis | None) -> str:
    """Return the text of a ``datetime-local`` input."""
    return write_local(at_ms or 0, reader_zone()).replace(" ", "T")
