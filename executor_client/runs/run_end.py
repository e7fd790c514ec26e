"""End of a run: known to the process of the run, and to those that its handler has forked."""

import mmap
import os


class RunEnd:
    """Whether a run has ended. A forked process has a copy of the run, which would go on for ever."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._is_set = False
        #: a byte that forked processes see change; None before the first fork
        self._shared: mmap.mmap | None = None

    def share(self) -> None:
        """Let the process that is about to be forked learn of the end."""
        if self._shared is None:
            self._shared = mmap.mmap(-1, 1)

    def set(self) -> None:
        """End the run; in a forked process, which ends before the run does, for that process only."""
        self._is_set = True
        if self._shared is not None and os.getpid() == self._process:
            self._shared[0] = 1

    def is_set(self) -> bool:
        """Return whether the run has ended."""
        return self._is_set or (self._shared is not None and self._shared[0] == 1)
