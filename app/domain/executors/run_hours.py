"""Run hours: runs and failures of each instance in each of the last hours."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from app.clock import HOUR_MS, Millis
from app.domain.executors.draining import bare_address

#: hours that are drawn, the last one until now
HOURS = 24


@dataclass(slots=True)
class Hour:
    """Runs of an instance in an hour, and those of them that failed."""

    runs: int = 0
    failures: int = 0


def run_hours(runs: Iterable[tuple[str | None, Millis, int]], *, now_ms: Millis) -> dict[str, list[Hour]]:
    """Return bare address -> its HOURS hours, the oldest first, from address, instant and 0 or 1 for failed.

    Runs without an address, and those of another time, count nowhere.
    """
    hours: dict[str, list[Hour]] = defaultdict(lambda: [Hour() for _number in range(HOURS)])
    from_ms = now_ms - HOURS * HOUR_MS
    bare: dict[str | None, str] = {}
    for address, at_ms, failed in runs:
        if not address or not from_ms < at_ms <= now_ms:
            continue
        if address not in bare:
            bare[address] = bare_address(address)
        hour = hours[bare[address]][-(-(at_ms - from_ms) // HOUR_MS) - 1]
        hour.runs += 1
        hour.failures += failed
    return dict(hours)
