"""Metrics: counters of an executor, rendered in the Prometheus text format."""

import threading
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
    "callbacks_given_up": "results that an admin has refused for days",
    "registrations_failed": "failed attempts to register",
}


class Counters:
    """Counters by name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(_HELP, 0)

    def add(self, name: str, count: int = 1) -> None:
        """Increase a counter; raise KeyError for a name without a help text."""
        with self._lock:
            self._counts[name] += count

    def value(self, name: str) -> int:
        """Return the value of a counter."""
        with self._lock:
            return self._counts[name]


def render(counters: Counters, gauges: Mapping[str, int]) -> str:
    """Return counters and gauges in the Prometheus text format."""
    lines = []
    for name, text in _HELP.items():
        metric = f"xxl_job_executor_{name}_total"
        lines += [f"# HELP {metric} {text}", f"# TYPE {metric} counter", f"{metric} {counters.value(name)}"]
    for name, value in gauges.items():
        metric = f"xxl_job_executor_{name}"
        lines += [f"# TYPE {metric} gauge", f"{metric} {value}"]
    return "\n".join(lines) + "\n"
