"""Draw the plots of docs/performance.md from what reach.py measured.

``.venv/bin/python bench/plots.py`` reads ``docs/performance/*.jsonl``, writes one SVG file per plot beside
them, and prints the table of figures.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from charts import Labels, bars, lines
from yardstick import key_of

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "performance"
NAMES = {"sqlite": "SQLite", "mariadb": "MariaDB", "postgresql": "PostgreSQL"}
#: row -> how the table calls it
TITLES = {
    "rate": "triggers/s, callbacks in batches of 50",
    "single": "triggers/s, one callback a request",
    "cpu100": "CPU ms a trigger at 100/s",
    "cpu1000": "CPU ms a trigger at 1,000/s",
    "lag100": "lag p50/p99 at 100/s, ms",
    "lag1000": "lag p99 at 1,000/s, ms",
    "herd1000": "1,000 due at once, last sent after, s",
    "herd5000": "5,000 due at once, last sent after, s",
    "manual": "triggers by hand/s",
    "arrival": "trigger by hand to arrival p50/p99, ms",
    "idle_mb": "idle: memory (PSS), MB",
    "idle_cores": "idle: cores",
    "jobs": "lag p99 of 100/s with 100,000 enabled jobs, ms",
    "rows": "slowest stage beside a long log, times",
    "pages": "slowest page beside 1,000/s, p95 ms",
}
Row = dict[str, Any]
Found = dict[tuple[str, str, Any], Row]


def read(folder: Path) -> Found:
    """Return the lines by database, row and place on an axis."""
    found: Found = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found[key_of(row)] = row
    return found


def rows_of(found: Found, name: str) -> list[tuple[str, Row]]:
    """Return database name and line of each database that has the row, in order of NAMES and axis."""
    chosen = [(key, row) for key, row in found.items() if key[1] == name]
    order = list(NAMES)
    chosen.sort(key=lambda each: (order.index(each[0][0]), each[0][2] or 0))
    return [(NAMES[key[0]], row) for key, row in chosen]


def plots(found: Found) -> dict[str, str]:
    """Return the plots by file name."""
    by_jobs = {
        name: [(0.0, 0.0), *((float(step[0]), float(step[2])) for step in row["steps"])]
        for name, row in rows_of(found, "rate")
    }
    drawn = {
        "jobs": lines(Labels("Triggers by load", "jobs due each second", "triggers/s"), by_jobs),
        "stages": bars(
            Labels("CPU of the stages of a run, batches of 100", "database", "µs a trigger"),
            {
                name: {stage: us for stage, us in row["cpu_us"]["100"].items() if stage != "sum"}
                for name, row in rows_of(found, "stages")
            },
        ),
        "processes": bars(
            Labels("CPU by process", "database and triggers/s", "µs a trigger"),
            {
                f"{name}\n{rate}/s": _processes(row)
                for rate in (100, 1_000)
                for name, row in rows_of(found, f"cpu{rate}")
            },
        ),
        "rows": bars(
            Labels("Stages beside a log of some length", "database and rows of the log", "µs a trigger"),
            {
                f"{name}\n{rows} rows": {stage: took["median"] * 10 for stage, took in stages.items()}
                for name, row in rows_of(found, "rows")
                for rows, stages in row["stages_ms"].items()
            },
        ),
    }
    for axis, title in (("executors", "addresses of executors"), ("nodes", "scheduler nodes")):
        series: dict[str, list[tuple[float, float]]] = {}
        for name, row in rows_of(found, f"by_{axis}"):
            series.setdefault(name, []).append((row["at"], row["figure"]))
        drawn[axis] = lines(Labels(f"Triggers under overload by {title}", title, "triggers/s"), series)
    return drawn


def _processes(row: Row) -> dict[str, float]:
    return {
        name: round(ms * 1000)
        for name, ms in row["by_process"].items()
        if name != "sum" and not name.startswith("stub")
    }


def table(found: Found) -> str:
    """Return goal and figure of each row as a Markdown table."""
    drawn = ["| | " + " | ".join(f"{name} | goal" for name in NAMES.values()) + " |", "|---" * 7 + "|"]
    for row_name, title in TITLES.items():
        cells = []
        for db in NAMES:
            row = found.get((db, row_name, None))
            cells += [_shown(row["figure"]), _shown(row["goal"])] if row else ["–", "–"]
        drawn.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(drawn)


def _shown(figure: Any) -> str:
    values = figure if isinstance(figure, list) else [figure]
    return " / ".join(f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    found = read(folder)
    for name, svg in plots(found).items():
        (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
    print(table(found))


if __name__ == "__main__":
    main()
