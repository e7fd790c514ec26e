"""Wheels of server and client, built from the files of their source releases."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from executor_client.wire.version import VERSION
from tests.support.databases import ROOT

SERVER, CLIENT = "duetime", "duetime-executor"
#: seconds for a build, or a new environment and an installation, on a slow machine
INSTALL_S = 300
#: what is built from; the rest of the checkout is not needed
SOURCES = ("app", "deploy", "executor_client", "migrations", "workers", "wsgi.py", "pyproject.toml")
SOURCES += ("setup.py", "requirements.in", "MANIFEST.in", "README.md", "LICENSE")


def succeed(*arguments: str | Path, cwd: Path) -> str:
    """Run a program that must succeed, without settings of this process; return its output."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith(("XXL_JOB_", "PYTHON"))}
    ended = subprocess.run(
        arguments, cwd=cwd, env=clean, capture_output=True, text=True, timeout=INSTALL_S, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def build_wheels(folder: Path) -> dict[str, Path]:
    """Build wheels from source releases, not from the checkout; return them by name of the distribution."""
    ignored = shutil.ignore_patterns("__pycache__", "build", "secrets")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder)
    for source in (".", "executor_client"):
        options = ("--no-isolation", "--skip-dependency-check", "--outdir", folder / "dist")
        succeed(sys.executable, "-m", "build", *options, source, cwd=folder)
    built = {path.name for path in (folder / "dist").iterdir()}
    wheels = {name: f"{name.replace('-', '_')}-{VERSION}-py3-none-any.whl" for name in (SERVER, CLIENT)}
    sources = {f"{name.replace('-', '_')}-{VERSION}.tar.gz" for name in (SERVER, CLIENT)}
    assert built == {*wheels.values(), *sources}
    return {name: folder / "dist" / file for name, file in wheels.items()}


def pip_variables(wheels: dict[str, Path]) -> dict[str, str]:
    """Return variables by which pip takes these wheels: an index has other projects, of any version."""
    folder = wheels[SERVER].parent
    path = folder.parent / "constraints.txt"
    path.write_text(f"{SERVER} @ {wheels[SERVER].as_uri()}\n{CLIENT}=={VERSION}\n")
    return {"PIP_CONSTRAINT": str(path), "PIP_FIND_LINKS": str(folder)}
