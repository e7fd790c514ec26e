"""Counters of an executor, and their text for Prometheus."""

import threading
from collections import Counter
from collections.abc import Mapping

_HELP = {
    "runs_accepted": "runs put into the journal",
    "runs_duplicate": "triggers of a run that was accepted before",
    "runs_refused": "triggers refused: unknown handler, busy, journal not writable",
    "runs_succeeded": "runs that ended with code 200",
    "runs_failed": "runs that ended with any other code",
    "runs_abandoned": "handlers that could not be ended and were left behind",
    "callbacks_acknowledged": "results an admin has taken",
    "callbacks_failed": "attempts to hand over results that failed",
    "registrations_failed": "attempts to register that failed",
}


class Counters:
    """Counts events by name; any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, name: str, number: int = 1) -> None:
        """Count an event named in this module's table."""
        with self._lock:
            self._counts[name] += number

    def value(self, name: str) -> int:
        """Return how often an event happened."""
        with self._lock:
            return self._counts[name]


def render(counters: Counters, gauges: Mapping[str, int]) -> str:
    """Return counters and present values in Prometheus's text format."""
    lines = []
    for name, text in _HELP.items():
        full = f"xxl_job_executor_{name}_total"
        lines += [f"# HELP {full} {text}", f"# TYPE {full} counter", f"{full} {counters.value(name)}"]
    for name, value in gauges.items():
        full = f"xxl_job_executor_{name}"
        lines += [f"# TYPE {full} gauge", f"{full} {value}"]
    return "\n".join(lines) + "\n"
