"""Git source of a folder: repository and commit, ``infra@1a2b3c4d5e6f``; ``dirty``: uncommitted changes."""

import subprocess
from pathlib import Path

GIT_S = 20


def source_of(folder: Path) -> str:
    """Return repository and commit of a folder, or its name if it is in no repository."""
    path = folder.resolve()
    commit = _git(path, "rev-parse", "--short=12", "HEAD")
    root = _git(path, "rev-parse", "--show-toplevel")
    if not commit or not root:
        return path.name
    is_dirty = _git(path, "status", "--porcelain", "--", ".") != ""
    return f"{Path(root).name}@{commit}" + (" dirty" if is_dirty else "")


def _git(path: Path, *arguments: str) -> str | None:
    """Return the output of git; None if it failed or is not installed."""
    try:
        process = subprocess.run(  # nosec B607  # git as the user would start it
            ["git", "-C", str(path), *arguments],
            capture_output=True,
            text=True,
            timeout=GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() if process.returncode == 0 else None
