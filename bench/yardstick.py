"""The yardstick of a machine, and the JSON line of a benchmark, which always has it."""

import json
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def yardstick_ms() -> float:
    """Return the CPU milliseconds of a fixed piece of Python, the best of five, to compare machines."""

    def once() -> float:
        began = time.process_time()
        counts: dict[int, str] = {}
        for number in range(100_000):
            counts[number * 7919 % 65_537] = str(number)
        return (time.process_time() - began) * 1000

    return round(min(once() for _ in range(5)), 1)


@cache
def commit() -> str:
    """Return the commit as of the first call, with ``+`` if files differ from it; empty without git."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return ""
    return described.stdout.strip()


def report(bench: str, **figures: Any) -> str:
    """Print the figures as one JSON line and return it, with the yardstick as of now and the commit."""
    line = json.dumps({"bench": bench, "commit": commit(), "yardstick_ms": yardstick_ms(), **figures})
    print(line, flush=True)
    return line


def keep(path: Path, line: str) -> None:
    """Write a line to a file in place of the one that measured the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [each for each in old if key_of(json.loads(each)) != key_of(json.loads(line))]
    path.write_text("\n".join([*kept, line, ""]), encoding="utf-8")


def key_of(row: dict[str, Any]) -> tuple[str, str, Any]:
    """Return what a line of reach.py measured: database, row, and the place on an axis."""
    return row["db"], row["row"], row.get("at")
