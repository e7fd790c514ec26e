"""Cron vectors: every answer of the reference in tests/data/cron.jsonl."""

import json
from pathlib import Path
from typing import Any

from app.domain.schedules.cron.expression import CronExpression
from app.domain.schedules.cron.fields import InvalidCronExpression
from app.domain.schedules.schedule import zone
from tests.domain.cron.brute import quartz_fires
from tests.support.truth_table import truth_table

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "cron.jsonl").read_text(encoding="utf-8").splitlines()
]
CHUNKS = 12
FIRES_A_VECTOR = 5
#: the brute-force evaluator checks only answers within this time
BRUTE_WINDOW_MS = 36 * 3_600_000


def answer(vector: dict[str, Any]) -> list[int] | str:
    """Return up to five chained fires, or the reason for a refusal."""
    try:
        cron = CronExpression.parse(vector["expr"])
    except InvalidCronExpression as exc:
        return str(exc)
    fires: list[int] = []
    at: int | None = vector.get("start_ms", 0)
    while (
        len(fires) < FIRES_A_VECTOR
        and at is not None
        and (at := cron.next_after_ms(at, zone(vector.get("tz", "UTC")))) is not None
    ):
        fires.append(at)
    return fires


def test_the_vectors_are_complete() -> None:
    kinds = [("next_ms" in vector, "error" in vector, "throws" in vector) for vector in VECTORS]
    assert [sum(kind) for kind in zip(*kinds, strict=True)] == [2584, 362, 10]


@truth_table("chunk", range(CHUNKS))
def test_every_valid_expression_fires_like_the_reference(chunk: int) -> None:
    valid = [vector for vector in VECTORS if "next_ms" in vector][chunk::CHUNKS]
    different = [(vector, got) for vector in valid if (got := answer(vector)) != vector["next_ms"]]
    assert not different, "\n".join(f"{vector} -> {got}" for vector, got in different)


@truth_table("kind", ["error", "throws"])
def test_expressions_the_reference_refuses_are_refused_with_a_message(kind: str) -> None:
    accepted = [
        vector["expr"] for vector in VECTORS if kind in vector and not isinstance(answer(vector), str)
    ]
    assert not accepted


def test_the_brute_force_evaluator_agrees_with_the_reference() -> None:
    compared = 0
    for vector in VECTORS:
        fires = vector.get("next_ms")
        if not fires or fires[0] - vector["start_ms"] > BRUTE_WINDOW_MS or not is_documented(vector["expr"]):
            continue
        compared += 1
        assert quartz_fires(vector["expr"], zone(vector["tz"]), vector["start_ms"], fires[0]) == fires[:1], (
            vector
        )
    assert compared > 500


def is_documented(expression: str) -> bool:
    """Return whether the brute-force evaluator can read it."""
    try:
        quartz_fires(expression, zone("UTC"), 0, 0)
    except (ValueError, IndexError):
        return False
    return "\n" not in expression
