"""Helpers of the tests of executor runs, for all that need them."""

from pathlib import Path


def sleepers() -> list[int]:
    """Return the ids of ``sleep 60`` processes."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cmdline").read_bytes() == b"sleep\x0060\x00":
                found.append(int(entry.name))
        except OSError:
            continue
    return found
