"""Sentence of the list of a backfill: "288 instants: 12 already succeeded, 273 to run"."""

from collections.abc import Callable, Mapping
from typing import Final

from app.domain.backfills.instants import RUN, Standing
from app.domain.backfills.kinds import BackfillState, Which
from app.domain.text.texts import N_, Text

#: what is said of the instants that are not run, by their standing, in this order
_NOT_RUN: Final[Mapping[Standing, Callable[[int], Text]]] = {
    Standing.SUCCEEDED: lambda count: N_("%(count)s already succeeded", count=count),
    Standing.RUNNING: lambda count: N_("%(count)s waiting or in progress", count=count),
    Standing.FAILED: lambda count: N_("%(count)s failed", count=count),
    Standing.MISSING: lambda count: N_("%(count)s without a run", count=count),
    Standing.CALENDAR: lambda count: N_("%(count)s left out by the calendar", count=count),
    Standing.BLACKOUT: lambda count: N_("%(count)s in a blackout", count=count),
}
#: what is said of a backfill to which something cannot be done in its state
STATES: Final[Mapping[BackfillState, Text]] = {
    BackfillState.RUNNING: N_("The backfill is running"),
    BackfillState.PAUSED: N_("The backfill is paused"),
    BackfillState.STOPPING: N_("A run of the backfill has failed; it stops when the others have ended"),
    BackfillState.CANCELLING: N_("The backfill is being cancelled"),
    BackfillState.DONE: N_("The backfill is done"),
    BackfillState.FAILED: N_("The backfill has stopped at a failure"),
    BackfillState.CANCELLED: N_("The backfill was cancelled"),
}


def sentence_of(summary: Mapping[str, int], which: Which) -> Text:
    """Return how many instants a list has, why some are not run, and how many are.

    ``summary``: that of ``summary_of``.
    """
    parts = [
        say(count)
        for standing, say in _NOT_RUN.items()
        if standing not in RUN[which] and (count := summary.get(standing.value, 0))
    ]
    again = summary.get(Standing.SUCCEEDED.value, 0) if Standing.SUCCEEDED in RUN[which] else 0
    to_run = summary.get("to_run", 0)
    if again:
        parts.append(
            N_("%(count)s to run, %(again)s of which have succeeded before", count=to_run, again=again)
        )
    else:
        parts.append(N_("%(count)s to run", count=to_run))
    list_text = parts[0]
    for part in parts[1:]:
        list_text = N_("%(first)s, %(next)s", first=list_text, next=part)
    if summary.get("instants", 0) == 1:
        return N_("1 instant: %(listed)s", listed=list_text)
    return N_("%(count)s instants: %(listed)s", count=summary.get("instants", 0), listed=list_text)
