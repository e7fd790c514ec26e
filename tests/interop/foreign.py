"""The foreign executors: how each is installed and started, and where it differs from the others (they are used unmodified)."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: what is fetched from a registry is kept here between runs, by a hash of what was asked for
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xxl-job-interop"
#: a download of everything a kind needs
INSTALL_S = 300


@dataclass(frozen=True)
class Foreign:
    """A kind of executor. All have the same six handlers: ok, fail, sleep, shard, lines, echo."""

    name: str
    #: install it unless that is done; return the words that start it, to be followed by ADMIN TOKEN APPNAME PORT FOLDER
    install: Callable[[], list[str]]
    #: path of its registered address
    path: str = ""
    #: what it reports of a run that outlives its time-out
    timeout_code: int = 500
    #: what becomes of an echoed result
    echoed: Callable[[str], str] = str
    #: whether the result has the handler's own words
    says_result: bool = True
    #: marker of the tool it needs
    tool: str = ""

    def words(self, *, admin: str, token: str, appname: str, port: int, folder: Path) -> list[str]:
        """Return the command that starts one of them."""
        return [*self.install(), admin, token, appname, str(port), str(folder)]


def kept(name: str, sources: Sequence[Path], build: Callable[[Path], None]) -> Path:
    """Return the folder ``build`` has filled for these very sources; one process builds, others wait for it."""
    digest = hashlib.sha256(sys.version.encode())
    for source in sources:
        digest.update(source.name.encode() + source.read_bytes())
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = CACHE / f"{name}-{digest.hexdigest()[:16]}"
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            build(folder)
            (folder / "complete").touch()
    return folder


def run(words: Sequence[str], folder: Path) -> None:
    """Run a step of an installation; its output is in the error when it fails."""
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S)
    if ended.returncode != 0:
        raise AssertionError(f"{' '.join(words)} ended with {ended.returncode}:\n{(ended.stdout + ended.stderr)[-3000:]}")


def _install_pyxxl() -> list[str]:
    requirements = HERE / "requirements-pyxxl.txt"

    def build(folder: Path) -> None:
        run([sys.executable, "-m", "venv", str(folder / "venv")], folder)
        pip = [str(folder / "venv/bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        run([*pip, "install", "--require-hashes", "--no-deps", "-r", str(requirements)], folder)

    return [str(kept("pyxxl", [requirements], build) / "venv/bin/python"), str(HERE / "pyxxl_executor.py")]


KINDS = (Foreign("pyxxl", _install_pyxxl),)
