"""The first minute: seconds of venv, of pip without a cache, and of ``duetime up`` to a console that answers.

Needs the wheels of ``make dist`` and an index with the packages that they require. Everything is made in a
temporary folder, which is removed. Prints one JSON line. ``.venv/bin/python bench/first_start.py``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import requests
from harness import free_port

DIST = Path(__file__).resolve().parent.parent / "build" / "dist"
#: time for the console to answer
UP_S = 120


def timed(*command: str | Path) -> float:
    """Return the seconds that a command takes; raises CalledProcessError if it fails."""
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def timed_start(duetime: Path, home: Path) -> float:
    """Return the seconds from ``duetime up`` in a new home to the first answer of its console."""
    port = free_port()
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "XXL_JOB_PORT": str(port)}
    command = (duetime, "up", "--home", home)
    began = time.monotonic()
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as process:
        try:
            await_console(f"http://127.0.0.1:{port}/xxl-job-admin/health", process)
            return time.monotonic() - began
        finally:
            process.terminate()


def await_console(address: str, process: subprocess.Popen[bytes]) -> None:
    """Return once the console answers; raises SystemExit if it ends or is silent for too long."""
    until = time.monotonic() + UP_S
    while time.monotonic() < until and process.poll() is None:
        try:
            if requests.get(address, timeout=5).ok:
                return
        except requests.RequestException:
            time.sleep(0.05)
    raise SystemExit("the console does not answer")


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bin_folder, home = Path(folder, "venv", "bin"), Path(folder, "home")
        home.mkdir()
        pip = (bin_folder / "pip", "install", "--quiet", "--no-cache-dir", "--find-links", DIST, "duetime")
        seconds = {
            "venv_s": timed(sys.executable, "-m", "venv", bin_folder.parent),
            "pip_s": timed(*pip),
            "up_s": timed_start(bin_folder / "duetime", home),
        }
    seconds["total_s"] = sum(seconds.values())
    print(json.dumps({name: round(value, 1) for name, value in seconds.items()}))


if __name__ == "__main__":
    main()
