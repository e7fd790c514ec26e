"""End of a run, shared between the process of the run and those that its handler has forked."""

import mmap
import os


class RunEnd:
    """Flag that a run has ended. Without it, the copy of the run in a forked process would never end."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._is_set = False
        #: shared byte that forked processes read; None before the first fork
        self._shared: mmap.mmap | None = None

    def share(self) -> None:
        """Create the shared flag, before a fork."""
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
