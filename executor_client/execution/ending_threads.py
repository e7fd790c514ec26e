"""Ending threads: job threads that take no more runs, until they have ended or were abandoned."""

import threading

from executor_client.execution.job_thread import JobThread


class EndingThreads:
    """Ending threads of all jobs. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: job id -> its ending threads; each waits for the one before
        self._threads: dict[int, list[JobThread]] = {}

    def add(self, thread: JobThread) -> None:
        """Add a thread that is about to be stopped, unless it has ended: then it was removed already."""
        with self._lock:
            if not thread.end_event.is_set():
                self._threads.setdefault(thread.job_id, []).append(thread)

    def remove(self, thread: JobThread) -> None:
        """Remove a thread that has ended; does nothing if it is not there."""
        with self._lock:
            remaining = [other for other in self._threads.pop(thread.job_id, []) if other is not thread]
            if remaining:
                self._threads[thread.job_id] = remaining

    def last_of(self, job_id: int) -> JobThread | None:
        """Return the thread of a job that a new one has to wait for."""
        with self._lock:
            return self._threads.get(job_id, [None])[-1]

    def all(self) -> list[JobThread]:
        """Return all of them."""
        with self._lock:
            return [thread for threads in self._threads.values() for thread in threads]
