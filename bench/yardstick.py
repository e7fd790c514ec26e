"""The yardstick of a machine, and the JSON line of a benchmark, which always has it."""

import json
import statistics
import subprocess
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any, Self

#: seconds between yardsticks taken during a measurement, which use a hundredth of a core
EVERY_S = 3
#: yardstick of the machine that figures are converted to: about that of the one the goals were set on
YARDSTICK_MS = 16
#: units of what a slower machine does less of, and of what takes it longer
RATES, TIMES = ("1/s",), ("ms", "s", "µs", "cores")
ROOT = Path(__file__).resolve().parent.parent


def yardstick_ms() -> float:
    """Return the CPU milliseconds of a fixed piece of Python, the best of five, to compare machines."""
    return round(min(_once_ms() for _ in range(5)), 1)


def _once_ms() -> float:
    began = time.thread_time()
    counts: dict[int, str] = {}
    for number in range(100_000):
        counts[number * 7919 % 65_537] = str(number)
    return (time.thread_time() - began) * 1000


class Yardstick:
    """The yardstick during a measurement: many machines are faster under load, or while others are idle."""

    def __init__(self) -> None:
        self._taken: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="yardstick")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def ms(self) -> float:
        """Median of what was taken; after a short measurement, the yardstick as of now."""
        return round(statistics.median(self._taken), 1) if self._taken else yardstick_ms()

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            self._taken.append(_once_ms())


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
    """Print the figures as one JSON line and return it, with the commit and, unless given, the yardstick."""
    yardstick = figures.pop("yardstick_ms", None) or yardstick_ms()
    line = json.dumps({"bench": bench, "commit": commit(), "yardstick_ms": yardstick, **figures})
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


def slowness(row: dict[str, Any]) -> float:
    """Return how many times as long as with YARDSTICK_MS everything took on the machine of a line."""
    return float(row["yardstick_ms"] / YARDSTICK_MS)


def converted(row: dict[str, Any]) -> list[float]:
    """Return the figures of a line, converted to YARDSTICK_MS; sizes and ratios stay as they are."""
    values = row["figure"] if isinstance(row["figure"], list) else [row["figure"]]
    if row["unit"] in RATES:
        return [value * slowness(row) for value in values]
    return [value / slowness(row) for value in values] if row["unit"] in TIMES else values
