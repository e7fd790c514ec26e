"""Counts of a process, their file, and counting with a transaction."""

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from app.clock import now_ms
from app.database.engine import call_at_commit, transact
from app.runtime import metrics
from app.runtime.metrics import Counter, Histogram


@pytest.fixture
def counter() -> Iterator[Counter]:
    yield Counter("xxl_job_test_total", "A test.", "group")
    del metrics.METRICS["xxl_job_test_total"]


@pytest.fixture
def histogram() -> Iterator[Histogram]:
    yield Histogram("xxl_job_test_seconds", "A test.", (0.1, 1.0))
    del metrics.METRICS["xxl_job_test_seconds"]


def test_events_are_counted_by_label_and_durations_by_bucket(counter: Counter, histogram: Histogram) -> None:
    counter.add("1")
    counter.add("1", count=4)
    counter.add("2")
    histogram.observe(-0.5, 0.1, 0.2, 7)
    found = metrics.snapshot()
    assert found["xxl_job_test_total"] == [[["1"], 5], [["2"], 1]]
    assert found["xxl_job_test_seconds"] == {"counts": [2, 1, 1], "sum": pytest.approx(7.3)}


def test_a_forked_process_begins_at_zero(counter: Counter, histogram: Histogram) -> None:
    counter.add("1")
    histogram.observe(0.2)
    metrics.reset()
    found = metrics.snapshot()
    assert found["xxl_job_test_total"] == []
    assert found["xxl_job_test_seconds"] == {"counts": [0, 0, 0], "sum": 0.0}


def test_the_file_of_a_process_is_replaced_and_ignored_once_it_is_old(
    tmp_path: Path, counter: Counter
) -> None:
    for count in (1, 2):
        counter.add("1")
        metrics.write_snapshot(tmp_path, "scheduler")
        (snapshot,) = metrics.read_snapshots(tmp_path, now_ms=now_ms()).values()
        assert snapshot["pid"] == os.getpid()
        assert snapshot["metrics"]["xxl_job_test_total"] == [[["1"], count]]
    assert [path.name for path in (tmp_path / "metrics").iterdir()] == ["scheduler.json"]
    later_ms = now_ms() + 4 * metrics.WRITE_PERIOD_MS
    assert metrics.read_snapshots(tmp_path, now_ms=later_ms) == {}


def test_a_file_that_is_not_ours_and_a_folder_that_cannot_be_written_are_ignored(tmp_path: Path) -> None:
    metrics.write_snapshot(tmp_path / "absent", "scheduler")
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "broken.json").write_text(json.dumps([1])[:-1])
    assert metrics.read_snapshots(tmp_path, now_ms=now_ms()) == {}


@pytest.mark.databases("sqlite")
def test_a_transaction_counts_once_it_is_committed(database: str, counter: Counter) -> None:
    def count(session: Session, *, fails: bool) -> None:
        call_at_commit(session, partial(counter.add, "1", count=100 if fails else 1))
        if fails:
            raise RuntimeError

    transact(partial(count, fails=False))
    with pytest.raises(RuntimeError):
        transact(partial(count, fails=True))
    transact(lambda session: None)
    assert counter.values == {("1",): 1}
