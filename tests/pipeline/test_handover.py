"""hand_back(): a stop returns fires read ahead; the next scan plans them and no instant fires twice."""

from typing import Any

import pytest
from sqlalchemy import update

from app.clock import Millis
from app.database.engine import session_scope
from app.models.fire import Fire
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.pipeline import handover
from app.pipeline.scan import scan
from tests.support.factories import T0, all_rows, make_due_job, only_row
from tests.support.plan import every_database

pytestmark = every_database

ZONE = "Asia/Shanghai"


def read_ahead(node: str = "one", now_ms: Millis = T0) -> None:
    scan(node=node, zone=ZONE, now_ms=now_ms)


def give_back(now_ms: Millis = T0) -> int:
    return handover.hand_back(node="one", zone=ZONE, now_ms=now_ms)


def change(model: type[Fire] | type[Job], *conditions: Any, **columns: Any) -> None:
    with session_scope() as session:
        session.execute(update(model).where(*conditions).values(columns))


def due_times() -> list[Millis]:
    return [fire.due_time - T0 for fire in all_rows(Fire)]


def times_of_the_job() -> tuple[Millis, Millis]:
    job = only_row(Job)
    return job.trigger_next_time - T0, job.last_fire_ms - T0


@pytest.mark.parametrize(("kind", "conf"), [("FIX_RATE", "2"), ("CRON", "1/2 * * * * ?")])
def test_fires_read_ahead_are_planned_again_by_the_next_scan(database: str, kind: str, conf: str) -> None:
    make_due_job(T0, schedule_type=kind, conf=conf)
    read_ahead()
    assert due_times() == [0, 2_000, 4_000]
    assert give_back(T0 - 500) == 3
    assert (due_times(), times_of_the_job()) == ([], (0, -500))
    read_ahead("two", T0 + 1_000)
    assert (due_times(), times_of_the_job()) == ([0, 2_000, 4_000, 6_000], (8_000, 6_000))


def test_only_instants_after_the_last_claimed_one_are_returned(database: str) -> None:
    make_due_job(T0, "CRON", "* * * * * ?")
    read_ahead()
    change(Fire, Fire.due_time == T0 + 1_000, state="SENDING", log_id=7)
    change(Fire, Fire.due_time == T0 + 3_000, log_id=8, epoch=1)  # claimed, and given back unsent
    assert give_back(T0 + 500) == 2
    assert (due_times(), times_of_the_job()) == ([0, 1_000, 2_000, 3_000], (4_000, 3_000))


def test_of_a_fixed_rate_the_last_claimed_instant_counts(database: str) -> None:
    """Its instants follow from the first one, not from the time of the stop."""
    make_due_job(T0, conf="3")
    read_ahead(now_ms=T0 - 50)
    change(Fire, Fire.due_time == T0, state="SENDING", log_id=7)  # of a node whose clock is slightly ahead
    assert give_back(T0 - 50) == 1
    assert (due_times(), times_of_the_job()) == ([0], (3_000, 0))


def test_a_due_fire_stays_where_a_late_scan_would_call_it_missed(database: str) -> None:
    make_due_job(T0, conf="2")
    read_ahead()
    assert give_back(T0 + 2_000) == 1
    assert (due_times(), times_of_the_job()) == ([0, 2_000], (4_000, 2_000))


@pytest.mark.parametrize(
    "changed",
    [
        {"trigger_status": 0, "trigger_next_time": 0},
        {"schedule_conf": "3"},
        {"trigger_next_time": T0 + 8_000},
        {"schedule_conf": "nonsense"},
    ],
    ids=["stopped", "another schedule", "another next time", "no schedule"],
)
def test_nothing_is_returned_to_a_job_changed_by_a_java_admin(database: str, changed: dict[str, Any]) -> None:
    make_due_job(T0, conf="2")
    read_ahead()
    change(Job, **changed)
    before = times_of_the_job()
    assert give_back() == 0
    assert (due_times(), times_of_the_job()) == ([0, 2_000, 4_000], before)


def test_fixed_delays_misfires_and_fires_of_other_nodes_stay(database: str) -> None:
    make_due_job(T0, schedule_type="FIX_DELAY", conf="2")
    make_due_job(T0 - 7_000, conf="3600", misfire_strategy="FIRE_ONCE_NOW")
    read_ahead()
    make_due_job(T0 + 1_000)
    read_ahead("two")
    assert give_back() == 0
    assert due_times() == [-7_000, 0, 1_000]
    assert all_rows(Job)[0].trigger_next_time == AFTER_THE_CURRENT_RUN


def test_jobs_are_returned_page_by_page_until_the_deadline(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "PAGE", 2)
    for _ in range(3):
        make_due_job(T0 + 1_000)
    read_ahead()
    clock = iter([0.0, handover.HAND_BACK_S + 1])
    assert handover.hand_back(node="one", zone=ZONE, now_ms=T0, monotonic=lambda: next(clock)) == 2
    assert give_back() == 1
