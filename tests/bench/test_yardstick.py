"""Lines of benchmarks: what is kept of them."""

import json
from pathlib import Path

from bench.yardstick import keep


def test_a_line_takes_the_place_of_the_one_that_measured_the_same(tmp_path: Path) -> None:
    out = tmp_path / "new" / "sqlite.jsonl"
    rows = [("rate", None, 1), ("by_nodes", 1, 2), ("by_nodes", 2, 3), ("rate", None, 4), ("by_nodes", 1, 5)]
    for row, at, figure in rows:
        keep(out, json.dumps({"db": "sqlite", "row": row, "at": at, "figure": figure}))
    assert [json.loads(line)["figure"] for line in out.read_text().splitlines()] == [3, 4, 5]
