"""What the stages count for monitors, by executor group."""

import pytest

from app.pipeline.scan import scan
from app.runtime.metrics import FIRES_DUE, FIRES_SKIPPED, RUN_DURATION, RUNS_ENDED, Counter
from tests.pipeline.steps import call_back, unresolve
from tests.support.factories import T0, make_due_job, make_job, make_run

COUNTERS = (FIRES_DUE, FIRES_SKIPPED, RUNS_ENDED)


@pytest.fixture(autouse=True)
def from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    for counter in COUNTERS:
        monkeypatch.setattr(counter, "values", {})
    monkeypatch.setattr(RUN_DURATION, "counts", [0] * len(RUN_DURATION.counts))
    monkeypatch.setattr(RUN_DURATION, "sum", 0.0)


def counted(counter: Counter) -> dict[tuple[str, ...], float]:
    return counter.values


def test_a_scan_counts_due_and_missed_instants(database: str) -> None:
    due, late = make_due_job(T0, conf="1"), make_due_job(T0 - 60_000, conf="10")
    scan(node="one", zone="UTC", now_ms=T0)
    assert counted(FIRES_DUE)[str(due.job_group),] == 6, "T0 and the five seconds read ahead"
    assert counted(FIRES_SKIPPED) == {(str(late.job_group), "misfire"): 7}


def test_the_end_of_a_run_is_counted_once_with_its_duration(database: str) -> None:
    job = make_job()
    group = str(job.job_group)
    good, bad, lost = (make_run(job, sent_ms=T0 - seconds * 1_000) for seconds in (3, 40, 2))
    for _ in range(2):
        call_back(good.id)
        call_back(bad.id, 500)
    unresolve(lost.id)
    assert counted(RUNS_ENDED) == {(group, "success"): 1, (group, "failed"): 1, (group, "unresolved"): 1}
    assert (sum(RUN_DURATION.counts), RUN_DURATION.sum) == (2, 43)
