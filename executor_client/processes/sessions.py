"""Process sessions: a child and its descendants, identified by the child's start time, signalled together."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

_PROC = Path("/proc/self")
#: longest answer of ps, in seconds
_PS_S = 5


def signal_session(leader: int, number: signal.Signals) -> None:
    """Send a signal to each group of a session: ``timeout`` and ``set -m`` begin groups of their own.

    The leader's group first, the others by the pid of their first process: a shell that outlived the command
    it waits for would run the next one.
    """
    _signal_group(leader, number)
    groups: dict[int, None] = {}
    for pid in sorted(members_of(leader)):
        with contextlib.suppress(ProcessLookupError):
            groups[os.getpgid(pid)] = None
    groups.pop(leader, None)
    for group in groups:
        _signal_group(group, number)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def members_of(leader: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    if not _PROC.exists():
        return members_from_ps(leader)
    pids = [int(entry.name) for entry in _PROC.parent.iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if _is_member(pid, leader) and _status_of(pid)[:1] not in ([], ["Z"], ["X"])]


def members_from_ps(leader: int) -> list[int]:
    """Return the same where there is no /proc, as on macOS."""
    processes = (line.split() for line in _ps("-A", "-o", "pid=,stat=").splitlines())
    return [int(pid) for pid, state in processes if state[0] != "Z" and _is_member(int(pid), leader)]


def identity_of(pid: int) -> str:
    """Return ``pid:start time``; "" for a process that has ended."""
    status = _status_of(pid)
    if not status:
        return "" if _PROC.exists() else identity_from_ps(pid)
    return f"{pid}:{status[19]}"


def identity_from_ps(pid: int) -> str:
    """Return the same where there is no /proc, as on macOS; the time in seconds."""
    start_time = " ".join(_ps("-o", "lstart=", "-p", str(pid)).split())
    return f"{pid}:{start_time}" if start_time else ""


def kill_leftover(identity: str) -> bool:
    """Kill a process tree left by a previous executor; True if it was still running."""
    pid = identity.partition(":")[0]
    if not pid.isdigit() or identity_of(int(pid)) != identity:
        return False
    signal_session(int(pid), signal.SIGKILL)
    return True


def kill_leftovers(identities: str) -> bool:
    """Kill the processes that ``RunProcesses`` has stored; True if any was still running."""
    return sum(kill_leftover(identity) for identity in identities.splitlines()) > 0


def _is_member(pid: int, leader: int) -> bool:
    try:
        return os.getsid(pid) == leader
    except OSError:  # it has ended
        return False


def _status_of(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; empty if the process has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    return status.rpartition(")")[2].split()


def _ps(*options: str) -> str:
    """Return the output of ps, "" if it fails."""
    try:
        process = subprocess.run(  # nosec B607  # ps as the user would start it
            ["ps", *options],
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},
            capture_output=True,
            text=True,
            timeout=_PS_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout
