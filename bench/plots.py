"""Draw the plots of docs/performance.md from what reach.py measured.

``.venv/bin/python bench/plots.py`` reads ``docs/performance/*.jsonl``, writes one SVG file per plot beside
them, and puts table and plots into ``docs/performance.md``.
"""

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

from charts import Labels, bars, lines
from yardstick import YARDSTICK_MS, converted, key_of, slowness

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "performance"
NAMES = {"sqlite": "SQLite", "mariadb": "MariaDB", "postgresql": "PostgreSQL"}
NONE = ("", "", "")
#: row -> what the table calls it, and what was measured before on each database
TITLES: dict[str, tuple[str, tuple[str, str, str]]] = {
    "rate": ("triggers/s, results in batches of 50", ("2,500", "<1,000", "1,000")),
    "single": ("triggers/s, one result a request", ("300", "", "")),
    "cpu100": ("CPU ms a trigger at 100/s", ("0.73", "1.44", "1.37")),
    "cpu1000": ("CPU ms a trigger at 1,000/s", ("0.38", "0.73", "0.74")),
    "lag100": ("lag at 100/s, p50 / p99 ms", ("21 / 29", "", "")),
    "lag1000": ("lag at 1,000/s, p99 ms", ("283", "", "")),
    "herd1000": ("1,000 due at once: last arrives after, s", ("0.15–0.22", "", "")),
    "herd5000": ("5,000 due at once: last arrives after, s", ("1.14", "", "")),
    "manual": ("triggers by hand/s", ("107", "", "")),
    "batch": ("triggers by hand/s in batches of 1,000", NONE),
    "arrival": ("trigger by hand: POST to arrival, p50 / p99 ms", ("588 / 1,088", "", "")),
    "idle_mb": ("at rest: memory (PSS), MB", ("257", "", "")),
    "idle_cores": ("at rest: cores", ("0.04", "", "")),
    "jobs": ("100,000 enabled jobs, 100 due a second: lag p99 ms", NONE),
    "beside_rows": (
        "long log: CPU a trigger / median lag of an installation at 1,000/s, times a short log",
        NONE,
    ),
    "rows": ("long log: most expensive stage, times a short log", NONE),
    "pages": ("pages beside 1,000/s: slowest p95 ms", NONE),
}
#: plot -> beginning of the rows it is drawn from; without one it is left out
SOURCES = {
    "jobs": "rate",
    "processes": "cpu",
    "stages": "stages",
    "rows": "rows",
    "executors": "by_executors",
    "nodes": "by_nodes",
}
CAPTIONS = {
    "jobs": "Above the rate that is held the lag grows, and in the end times are skipped or made up for, as"
    " the misfire strategy says.",
    "processes": "The workers are scheduler and monitor; SQLite works inside console and workers.",
    "stages": "Scan finds the due jobs, claim writes the rows of the log, record the executor's answer,"
    " callback the result. Sending is not in it, nor is the CPU of a database server.",
    "rows": "Time that passes, in batches of 100; scan is that of an idle second.",
    "executors": "Each address is a stub executor of its own on the same two cores.",
    "nodes": "The nodes share the two cores: this is what sharing costs, not what a second machine brings.",
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
        name: [(0.0, 0.0), *((step[0] * slowness(row), step[2] * slowness(row)) for step in row["steps"])]
        for name, row in rows_of(found, "rate")
    }
    drawn = {
        "jobs": lines(Labels("Triggers by load", "jobs due each second", "triggers/s"), by_jobs),
        "stages": bars(
            Labels("CPU of the stages of a run, batches of 100", "database", "µs a trigger"),
            {
                name: {
                    stage: round(us / slowness(row))
                    for stage, us in row["cpu_us"]["100"].items()
                    if stage != "sum"
                }
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
                f"{name}\n{rows} rows": {
                    stage: round(took["median"] * 10 / slowness(row)) for stage, took in stages.items()
                }
                for name, row in rows_of(found, "rows")
                for rows, stages in row["stages_ms"].items()
            },
        ),
    }
    for axis, title in (("executors", "addresses of executors"), ("nodes", "scheduler nodes")):
        series: dict[str, list[tuple[float, float]]] = {}
        for name, row in rows_of(found, f"by_{axis}"):
            series.setdefault(name, []).append((row["at"], converted(row)[0]))
        drawn[axis] = lines(Labels(f"Triggers under overload by {title}", title, "triggers/s"), series)
    return drawn


def _processes(row: Row) -> dict[str, float]:
    return {
        name: round(ms * 1000 / slowness(row))
        for name, ms in row["by_process"].items()
        if name != "sum" and not name.startswith("stub")
    }


def table(found: Found) -> str:
    """Return figure, goal and what was measured before of each row as a Markdown table."""
    drawn = [f"| | {' | '.join(NAMES.values())} |", "|---" * 4 + "|"]
    for row_name, (title, before) in TITLES.items():
        cells = []
        for db, was in zip(NAMES, before, strict=True):
            row = found.get((db, row_name, None))
            cells.append(_cell(row, was) if row else "–")
        drawn.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(drawn)


def _cell(row: Row, was: str) -> str:
    """Return a figure with its goal and what was measured before, where there are such."""
    goal = f"goal {_shown(row['goal'])}" if row["goal"] is not None else ""
    beside = ", ".join(filter(None, (goal, was and f"was {was}")))
    return f"**{_shown(converted(row))}**" + (f" ({beside})" if beside else "")


def _shown(figure: Any) -> str:
    values = figure if isinstance(figure, list) else [figure]
    return " / ".join(f"{value:,.0f}" if value >= 100 else f"{value:.3g}" for value in values)


def filled(page: str, mark: str, content: str) -> str:
    """Return the page with this content between the marks of that name."""
    begin, end = f"<!-- {mark} of bench/plots.py -->", f"<!-- end of the {mark} -->"
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{content}\n{end}{rest.partition(end)[2]}"


def origin(found: Found) -> str:
    """Return the range of the yardstick and the commits."""
    yardsticks = [row["yardstick_ms"] for row in found.values()]
    measured = f"measured at {min(yardsticks)} to {max(yardsticks)} ms"
    commits = ", ".join(sorted({row["commit"] for row in found.values()}))
    return _wrapped(f"Converted to a yardstick of {YARDSTICK_MS} ms, {measured}; commits {commits}.")


def _wrapped(text: str) -> str:
    """Return prose in lines as short as those of docs/."""
    return textwrap.fill(text, 100, break_on_hyphens=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    found = read(folder)
    shown = []
    for name, svg in plots(found).items():
        if any(row_name.startswith(SOURCES[name]) for _, row_name, _ in found):
            (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
            shown.append(f"![Plot: {name}](performance/{name}.svg)\n\n{_wrapped(CAPTIONS[name])}\n")
    page = folder.parent / "performance.md"
    text = filled(page.read_text(encoding="utf-8"), "table", f"{table(found)}\n\n{origin(found)}")
    page.write_text(filled(text, "plots", "\n".join(shown)), encoding="utf-8")


if __name__ == "__main__":
    main()
