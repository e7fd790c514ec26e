"""Fires that are due and not claimed, and what explains that."""

from collections.abc import Callable
from typing import Any

import pytest

from app.clock import Millis
from app.database.engine import read_scope
from app.models.job import Job
from app.models.node import Node
from app.services.operations import unclaimed_fires
from app.services.operations.unclaimed_fires import UNCLAIMED_MS, oldest_unexplained
from tests.support.factories import FIRST, SECOND, T0, make_fire, make_job, save

DUE_MS = T0 - UNCLAIMED_MS - 5_000


@pytest.fixture
def job(database: str) -> Job:
    """A job with a fire that is not claimed, and a scheduler that scans."""
    start_workers(T0 - UNCLAIMED_MS)
    job = make_job(addresses=FIRST)
    make_fire(job, due_time=DUE_MS)
    return job


def start_workers(started_ms: Millis, scanned_ms: Millis = T0) -> None:
    times = {"started_ms": started_ms, "heartbeat_ms": T0, "scanned_ms": scanned_ms}
    save(Node(name=f"node-{started_ms}", kind="workers", version="1", **times))


def unexplained(now_ms: Millis = T0) -> tuple[int, Millis | None]:
    with read_scope() as session:
        return oldest_unexplained(session, now_ms=now_ms)


def send_another(**changes: Any) -> None:
    make_fire(make_job(addresses=SECOND), **{"state": "SENDING", "address": SECOND, **changes})


def test_nothing_explains_it(job: Job) -> None:
    make_fire(job, due_time=T0 - UNCLAIMED_MS + 1_000)  # not for long enough
    send_another()
    assert unexplained() == (1, DUE_MS)


@pytest.mark.parametrize(
    "reason",
    [
        lambda job: make_fire(job, state="SENDING", address=FIRST),
        lambda job: make_fire(job, state="ROUTING"),
        lambda _job: send_another(address=FIRST),
        lambda _job: [send_another() for _ in range(unclaimed_fires.SENDING_MAX + 1)],
        lambda job: [make_fire(job, due_time=DUE_MS) for _ in range(unclaimed_fires.BACKLOG)],
    ],
    ids=("sending", "routing", "same address", "full lanes", "backlog"),
)
def test_other_runs_explain_it(
    job: Job, reason: Callable[[Job], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unclaimed_fires, "BACKLOG", 5)
    monkeypatch.setattr(unclaimed_fires, "SENDING_MAX", 5)
    reason(job)
    assert unexplained() == (0, None)


@pytest.mark.parametrize(
    "workers", [{"started_ms": T0 - 5_000}, {"started_ms": 0, "scanned_ms": T0 - 60_000}]
)
def test_workers_that_have_just_started_or_hang_explain_it(database: str, workers: dict[str, Millis]) -> None:
    start_workers(**workers)
    make_fire(make_job(), due_time=DUE_MS)
    assert unexplained() == (0, None)
