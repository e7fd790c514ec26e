"""Times in callbacks: the trigger time of the reported run, which distinguishes two runs with one log id.

A database that has lost its last commits gives their log ids again, and the results of the earlier runs may
still come. Most clients repeat the `logDateTime` of `/run`, which is a whole second here; some send the time
of the callback instead, in milliseconds or in seconds (docs/reference/clients.md, section A1).
"""

from app.clock import SECOND_MS, Millis

#: a smaller number is a time in seconds: it would be one of 1973
MILLIS_MIN = 10**11
#: clocks of executors may be behind by so much, so ids that are given again sooner look like the same run
BEHIND_MS: Millis = 5_000


def is_of_earlier_run(report_time: int, triggered_ms: Millis) -> bool:
    """Whether a callback with this time reports another run than the one that was triggered then.

    Only earlier times show that: an id is given again after its first run, and the time of a callback is
    later than that of its run. Others than whole seconds were never sent, so they are times of callbacks, by
    a clock that may be behind. So may be whole ones, hence BEHIND_MS: to drop the only result of a run is
    worse. Of two equal local times the row has the first, which is what was sent.
    """
    is_as_sent = report_time >= MILLIS_MIN and report_time % SECOND_MS == 0
    return is_as_sent and report_time < triggered_ms // SECOND_MS * SECOND_MS - BEHIND_MS
