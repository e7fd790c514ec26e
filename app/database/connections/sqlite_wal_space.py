"""WAL space: early checkpoints while SQLite's write-ahead log takes too much of a disk.

A checkpoint copies the pages of the WAL to the file, which grows by those that are new. On a full disk it
fails, and then the WAL, which alone may have filled the disk, can never be emptied. So on a short disk the
checkpoint comes before that, and truncates the WAL, which otherwise keeps its size.
"""

import os
from pathlib import Path

#: free bytes that transactions do not use up between two looks at the disk
PLENTY = 256 * 1024 * 1024
#: seconds between two looks while there is plenty; each costs 3 % of the CPU of a small transaction
LOOK_S = 1.0
#: size of the WAL as a share of the free space: the file grows by as much at most, and the next transaction
#: needs space too
SHARE = 0.5


class WalSpace:
    """Space that the WAL of one SQLite file may take."""

    def __init__(self, file: str) -> None:
        self._file, self._wal = file, Path(f"{file}-wal")
        #: when the disk is looked at next, by the monotonic clock
        self._look_at = 0.0

    def is_short(self, now_s: float) -> bool:
        """Whether the WAL has more than its share of the disk."""
        if now_s < self._look_at:
            return False
        try:
            disk, size = os.statvfs(self._file), self._wal.stat().st_size
        except OSError:  # The database is in memory, or its file is gone.
            self._look_at = now_s + LOOK_S
            return False
        free = disk.f_bavail * disk.f_frsize
        self._look_at = now_s + LOOK_S if free > PLENTY else 0.0
        return size > free * SHARE
