"""Metrics: counters of an executor, rendered in the Prometheus text format."""

import threading
from collections import Counter
from collections.abc import Mapping

_HELP = {
    "runs_accepted": "runs accepted into the journal",
    "runs_duplicate": "triggers of a run that had been accepted before",
    "runs_refused": "triggers rejected: unknown handler, busy, journal not writable",
    "runs_succeeded": "runs that ended with code 200",
    "runs_failed": "runs that ended with another code",
    "runs_abandoned": "handlers that could not be ended and were abandoned",
    "callbacks_acknowledged": "results acknowledged by an admin",
    "callbacks_failed": "failed attempts to report results",
    "registrations_failed": "failed attempts to register",
}


class Counters:
    """Counters by name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, name: str, number: int = 1) -> None:
        """Increase a counter listed in ``_HELP``."""
        with self._lock:
            self._counts[name] += number

    def value(self, name: str) -> int:
        """Return the value of a counter."""
        with self._lock:
            return self._counts[name]


def render(counters: Counters, gauges: Mapping[str, int]) -> str:
    """Return counters and gauges in the Prometheus text format."""
    lines = []
    for name, text in _HELP.items():
        full = f"xxl_job_executor_{name}_total"
        lines += [f"# HELP {full} {text}", f"# TYPE {full} counter", f"{full} {counters.value(name)}"]
    for name, value in gauges.items():
        full = f"xxl_job_executor_{name}"
        lines += [f"# TYPE {full} gauge", f"{full} {value}"]
    return "\n".join(lines) + "\n"
