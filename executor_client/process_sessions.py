"""Process sessions: a child and its descendants, recognised by its start time, and signalled as a whole."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

_PROC = Path("/proc/self")
#: longest answer of ps, in seconds
_PS_S = 5


def kill_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a process group; ignore a group that no longer exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def identity_of(pid: int) -> str:
    """Return ``pid:start time``; "" for a process that has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return "" if _PROC.exists() else identity_from_ps(pid)
    return f"{pid}:{status.rpartition(')')[2].split()[19]}"


def identity_from_ps(pid: int) -> str:
    """Return the same where there is no /proc, as on macOS; the time in seconds."""
    try:
        ended = subprocess.run(  # nosec B607  # ps as the user would start it
            ["ps", "-o", "lstart=", "-p", str(pid)],
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
            capture_output=True,
            text=True,
            timeout=_PS_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    started = " ".join(ended.stdout.split())
    return f"{pid}:{started}" if started else ""


def kill_leftover(identity: str) -> bool:
    """Kill a process tree left by a previous executor; True if it was still running."""
    pid = identity.partition(":")[0]
    if not pid.isdigit() or identity_of(int(pid)) != identity:
        return False
    kill_group(int(pid), signal.SIGKILL)
    return True


def kill_leftovers(identities: str) -> bool:
    """Kill what ``RunProcesses`` has stored; True if anything was still running."""
    return sum(kill_leftover(identity) for identity in identities.splitlines()) > 0
