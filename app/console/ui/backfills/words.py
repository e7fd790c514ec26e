"""Backfills in words: what is asked for, what is known of instants, and what became of them."""

from collections.abc import Mapping
from typing import NamedTuple

from app.console.web.language import _
from app.console.web.language import lazy_gettext as _l
from app.domain.backfills.instants import Standing
from app.domain.backfills.kinds import (
    BackfillState,
    Children,
    InstantState,
    OnFailure,
    Order,
    Which,
)

#: what is asked for -> its label
LABELS: Mapping[str, str] = {
    "which": _l("Which"),
    "order": _l("Order"),
    "max_running": _l("At once"),
    "children": _l("What follows"),
    "on_failure": _l("At a failure"),
}
WHICH: Mapping[Which, str] = {
    Which.ALL: _l("All, even those that have succeeded"),
    Which.MISSING: _l("Those without a run"),
    Which.FAILED: _l("Those whose runs have failed"),
}
ORDERS: Mapping[Order, str] = {
    Order.OLDEST_FIRST: _l("Oldest first"),
    Order.NEWEST_FIRST: _l("Newest first"),
}
CHILDREN: Mapping[Children, str] = {
    Children.NONE: _l("Nothing: no child job, no job that runs after it"),
    Children.AS_CONFIGURED: _l("As configured: its child jobs, and the rounds that its runs belong to"),
    Children.CHAIN: _l("The whole chain: all that follows it, with the same logical time"),
}
ON_FAILURES: Mapping[OnFailure, str] = {
    OnFailure.STOP: _l("Stop; it can be resumed"),
    OnFailure.GO_ON: _l("Go on with the others"),
}


class Look(NamedTuple):
    """How a state is shown."""

    title: str
    tone: str
    glyph: str


STATES: Mapping[BackfillState, Look] = {
    BackfillState.RUNNING: Look(_l("Running"), "info", "arrow-repeat"),
    BackfillState.PAUSED: Look(_l("Paused"), "warning", "pause-circle-fill"),
    BackfillState.STOPPING: Look(_l("Stopping"), "warning", "hourglass-split"),
    BackfillState.CANCELLING: Look(_l("Being cancelled"), "warning", "hourglass-split"),
    BackfillState.DONE: Look(_l("Done"), "success", "check-circle-fill"),
    BackfillState.FAILED: Look(_l("Stopped at a failure"), "danger", "x-circle-fill"),
    BackfillState.CANCELLED: Look(_l("Cancelled"), "none", "slash-circle-fill"),
}
#: what happens next, and what can be done; a state without it is an end
HINTS: Mapping[BackfillState, str] = {
    BackfillState.RUNNING: _l(
        "You can leave this page: the backfill goes on. All live runs go before its own."
    ),
    BackfillState.PAUSED: _l("Nothing further starts until it is resumed; what is in progress ends."),
    BackfillState.STOPPING: _l("A run has failed: nothing further starts, and what is in progress ends."),
    BackfillState.FAILED: _l(
        "A run has failed, and nothing further starts. Mend the cause, then resume: what has failed runs"
        " again, then the rest."
    ),
    BackfillState.CANCELLING: _l(
        "Nothing further starts. It is cancelled when the last of its runs has ended."
    ),
}
INSTANT_STATES: Mapping[InstantState, Look] = {
    InstantState.SUCCEEDED: Look(_l("Succeeded"), "success", "check-circle-fill"),
    InstantState.FAILED: Look(_l("Failed"), "danger", "x-circle-fill"),
    InstantState.RUNNING: Look(_l("Running"), "info", "arrow-repeat"),
    InstantState.WAITING: Look(_l("To come"), "none", "circle"),
    InstantState.WITHDRAWN: Look(_l("Withdrawn"), "none", "slash-circle"),
}
STANDINGS: Mapping[Standing, Look] = {
    Standing.SUCCEEDED: Look(_l("Succeeded"), "success", "check-circle-fill"),
    Standing.RUNNING: Look(_l("Running"), "info", "arrow-repeat"),
    Standing.FAILED: Look(_l("Failed"), "danger", "x-circle-fill"),
    Standing.MISSING: Look(_l("No run"), "none", "circle"),
    Standing.CALENDAR: Look(_l("Left out by the calendar"), "none", "calendar-week"),
    Standing.BLACKOUT: Look(_l("Blackout"), "none", "calendar-x"),
}


def look_of(state: str, failed: int) -> Look:
    """Return how the state of a backfill is shown; one that is done may have failed instants."""
    if state == BackfillState.DONE and failed:
        return Look(_("Done, with failures"), "warning", "exclamation-triangle-fill")
    return STATES[BackfillState(state)]
