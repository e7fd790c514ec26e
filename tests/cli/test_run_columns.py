"""Runs as they are shown to people."""

from executor_client.cli.output.run_columns import run_line


def test_a_run_is_one_line() -> None:
    run = {"id": "7", "state": "timed_out", "duration_ms": 2100, "reason": "too slow"}
    assert run_line(run) == "run 7: timed out after 2.1 s: too slow"


def test_a_broadcast_names_its_shards() -> None:
    shards = [{"id": "8", "state": "succeeded"}, {"id": "9", "state": "failed"}]
    run = {"id": "7.1.a", "state": "failed", "duration_ms": None, "reason": "no rows", "shards": shards}
    assert run_line(run) == "run 7.1.a: failed (shards: 8 succeeded, 9 failed): no rows"
