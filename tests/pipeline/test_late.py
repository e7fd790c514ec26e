"""settle_late(): a planned fire found long after its instant follows the misfire strategy of its job."""

from typing import Any

import pytest

from app.clock import Millis
from app.database.engine import transact
from app.domain.enums import NodeKind
from app.models.fire import Fire
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.models.skip import Skip
from app.pipeline.late import LATE_MS, settle_late
from app.pipeline.scan import scan
from app.store.nodes import nodes
from tests.pipeline.steps import as_due
from tests.support.factories import T0, all_rows, make_due_job, make_fire, only_row
from tests.support.plan import every_database

pytestmark = every_database

ZONE = "Asia/Shanghai"
#: fires planned at T0 are late by then, and no scan has run since
LATE = T0 + 5_000 + LATE_MS


def settle(now_ms: Millis = LATE, node: str = "one") -> int:
    return len(settle_late(as_due(all_rows(Fire)), node=node, zone=ZONE, now_ms=now_ms))


def plan_job(misfire: str, *, conf: str = "2", next_ms: Millis = LATE + 1, **columns: Any) -> Job:
    """Make a job with fires at T0, 2 s and 4 s and a next time after them."""
    job = make_due_job(T0, conf=conf, misfire_strategy=misfire, **columns)
    scan(node="one", zone=ZONE, now_ms=T0)
    return set_next(job, next_ms)


def set_next(job: Job, next_ms: Millis) -> Job:
    def write(session: Any) -> Job:
        stored: Job = session.get_one(Job, job.id)
        stored.trigger_next_time = next_ms
        return stored

    return transact(write)


def fires() -> list[tuple[Millis, str, str]]:
    return [
        (fire.due_time - T0, fire.trigger_type, fire.fire_key.partition(":")[0]) for fire in all_rows(Fire)
    ]


def skips() -> list[tuple[Millis, Millis, int, str]]:
    return [(skip.from_ms - T0, skip.to_ms - T0, skip.skipped, skip.reason) for skip in all_rows(Skip)]


def test_late_fires_are_skipped_by_do_nothing(database: str) -> None:
    plan_job("DO_NOTHING")
    assert settle() == 3
    assert (fires(), skips()) == ([], [(0, 4_000, 3, "misfire")])


def test_the_latest_of_the_late_fires_is_fired_once(database: str) -> None:
    job = plan_job("FIRE_ONCE_NOW")
    assert settle() == 2
    assert (fires(), skips()) == ([(4_000, "MISFIRE", "misfire")], [(0, 2_000, 2, "misfire")])
    assert only_row(Fire).fire_key == f"misfire:{job.id}:{T0 + 4_000}"
    assert settle(LATE + 1_000_000) == 0  # a misfire is late by nature


@pytest.mark.parametrize("scanned", [False, True], ids=["found before the scan", "found after it"])
def test_a_later_missed_instant_replaces_the_late_fires(database: str, scanned: bool) -> None:
    plan_job("FIRE_ONCE_NOW", next_ms=T0 + 6_000)
    due = as_due(all_rows(Fire))
    if scanned:
        scan(node="one", zone=ZONE, now_ms=LATE)
    settle_late(due, node="one", zone=ZONE, now_ms=LATE)
    if not scanned:
        scan(node="one", zone=ZONE, now_ms=LATE)
    assert [kind for _, kind, _ in fires()].count("MISFIRE") == 1
    assert (0, 4_000, 3, "misfire") in skips()


def test_fires_in_time_and_unscheduled_runs_are_left_alone(database: str) -> None:
    job = plan_job("DO_NOTHING")
    for kind in ("MANUAL", "RETRY", "PARENT"):
        make_fire(job, trigger_type=kind)
    make_fire(job, log_id=7, epoch=1)
    assert settle(T0 + LATE_MS - 1) == 0
    assert settle() == 3
    assert [kind for _, kind, _ in fires()] == ["MANUAL", "RETRY", "PARENT", "CRON"]


def test_late_fires_of_another_live_node_are_left_to_it(database: str) -> None:
    plan_job("DO_NOTHING")
    transact(
        lambda session: nodes.start_node(
            session, "one", NodeKind.WORKERS, version="1", token_fingerprint="", now_ms=LATE
        )
    )
    assert settle(node="two") == 0
    assert settle(LATE + 60_000, node="two") == 3


@pytest.mark.parametrize("misfire", ["DO_NOTHING", "FIRE_ONCE_NOW"])
def test_a_broadcast_is_settled_as_one_instant(
    database: str, misfire: str, caplog: pytest.LogCaptureFixture
) -> None:
    job = plan_job(misfire, conf="3600")
    (planned,) = all_rows(Fire)
    for index in range(2):
        make_fire(job, fire_key=f"{planned.fire_key}:{index}", sharding_param=f"{index}/2")
    transact(lambda session: session.delete(session.get_one(Fire, planned.id)))
    assert settle() == (2 if misfire == "DO_NOTHING" else 0)
    assert ("skipped=2 fired_once=0" if misfire == "DO_NOTHING" else "skipped=0 fired_once=1") in caplog.text
    assert skips() == ([(0, 0, 1, "misfire")] if misfire == "DO_NOTHING" else [])
    keys = [f"misfire:{job.id}:{T0}:{index}" for index in range(2)]
    assert [fire.fire_key for fire in all_rows(Fire)] == ([] if misfire == "DO_NOTHING" else keys)


def test_a_fixed_delay_continues_after_a_skipped_run(database: str) -> None:
    plan_job("DO_NOTHING", conf="30", schedule_type="FIX_DELAY", next_ms=AFTER_THE_CURRENT_RUN)
    assert settle() == 1
    assert only_row(Job).trigger_next_time == LATE + 30_000
