"""Foreign executors, unmodified: how each is installed and started, and where it differs from the others."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
#: downloads from registries, kept between runs by a hash of the request
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "xxl-job-interop"
#: download of everything a kind needs
INSTALL_S = 300


@dataclass(frozen=True)
class Foreign:
    """A kind of executor. All have the same six handlers: ok, fail, sleep, shard, lines, echo."""

    name: str
    #: install it if needed; return the start command, to be followed by ADMIN TOKEN APPNAME PORT FOLDER
    install: Callable[[], list[str]]
    #: path of its registered address
    path: str = ""
    #: code reported for a run that exceeds its timeout
    timeout_code: int = 500
    #: reported form of an echoed result
    echoed: Callable[[str], str] = str
    #: message for an unknown handler
    unknown: str = "nobody"
    #: marker of the tool it needs
    tool: str = ""
    #: among the extensive tests only: its compiler takes minutes
    is_nightly: bool = False

    def command(self, *, admin: str, token: str, appname: str, port: int, folder: Path) -> list[str]:
        """Return the command that starts an executor."""
        return [*self.install(), admin, token, appname, str(port), str(folder)]


def kept(name: str, sources: Sequence[Path], build: Callable[[Path], None]) -> Path:
    """Return the folder ``build`` filled from these sources; one process builds, others wait for it."""
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


def run(command: Sequence[str], folder: Path) -> None:
    """Run a step of an installation; an error contains its output."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S)
    if ended.returncode != 0:
        raise AssertionError(
            f"{' '.join(command)} ended with {ended.returncode}:\n{(ended.stdout + ended.stderr)[-3000:]}"
        )


def _install_pyxxl() -> list[str]:
    requirements = HERE / "requirements-pyxxl.txt"

    def build(folder: Path) -> None:
        run([sys.executable, "-m", "venv", str(folder / "venv")], folder)
        pip = [str(folder / "venv/bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        run([*pip, "install", "--require-hashes", "--no-deps", "-r", str(requirements)], folder)

    return [str(kept("pyxxl", [requirements], build) / "venv/bin/python"), str(HERE / "pyxxl_executor.py")]


def _install_node() -> list[str]:
    sources = [HERE / "node" / name for name in ("package.json", "package-lock.json", "executor.mjs")]

    def build(folder: Path) -> None:
        for source in sources:
            shutil.copy(source, folder)
        run(["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], folder)

    return ["node", str(kept("node", sources, build) / "executor.mjs")]


def _install_go() -> list[str]:
    sources = [HERE / "go" / name for name in ("go.mod", "go.sum", "main.go")]

    def build(folder: Path) -> None:
        for source in sources:
            shutil.copy(source, folder)
        run(["go", "build", "-mod=readonly", "-o", "executor", "."], folder)

    return [str(kept("go", sources, build) / "executor")]


def _install_java() -> list[str]:
    sources = [HERE / "java/pom.xml", HERE / "java/src/main/java/interop/Executor.java"]

    def build(folder: Path) -> None:
        shutil.copytree(HERE / "java/src", folder / "src")
        shutil.copy(sources[0], folder)
        run(["mvn", "--batch-mode", "--quiet", "process-classes"], folder)

    target = kept("java", sources, build) / "target"
    return [
        "java",
        "-Xmx128m",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{target}/classes:{target}/dependency/*",
        "interop.Executor",
    ]


KINDS = (
    Foreign("pyxxl", _install_pyxxl),
    # a text result is sent as JSON; a kill is reported as a success, a timeout as a failure
    Foreign("node", _install_node, path="/job", echoed=partial(json.dumps, ensure_ascii=False), tool="node"),
    # a refused run is answered with a list
    Foreign("go", _install_go, unknown="Task not registered", tool="go", is_nightly=True),
    Foreign("java", _install_java, path="/", timeout_code=502, tool="java"),
)
