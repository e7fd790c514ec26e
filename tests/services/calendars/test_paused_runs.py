"""Runs that wait for the end of a blackout: listed with the end and the reason, started, withdrawn."""

import pytest

from app.clock import HOUR_MS
from app.database.engine import read_scope, session_scope
from app.domain.access.permissions import system_actor
from app.domain.runs.trigger_keys import parse_id
from app.models.fire import Fire
from app.models.job import Job
from app.models.skip import Skip
from app.services.runs import waiting
from app.services.runs.run_lookup import get_run
from app.services.runs.trigger_runs import find_trigger_runs
from tests.services.calendars.test_blackouts import black_out
from tests.services.calendars.test_by_hand import trigger
from tests.support.factories import T0, all_rows, make_fire, make_job, only_row
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")
UNTIL = T0 + HOUR_MS


def pause(job: Job, until_ms: int = UNTIL) -> Fire:
    """Return a retry that waits for the end of a blackout."""
    return make_fire(
        job, trigger_type="RETRY", state="GATED", waits_for="blackout", lease_until=until_ms, due_time=T0
    )


def test_they_are_listed_with_the_end_and_the_reason() -> None:
    job, frozen = make_job(), make_job()
    black_out(job_id=job.id, from_ms=T0, to_ms=UNTIL - 1_000, reason="moving")
    black_out(job_id=job.id, from_ms=UNTIL - 2_000, to_ms=UNTIL + 1_000, reason="checking")
    black_out(group_id=frozen.job_group, reason="frozen")
    pause(job)
    pause(frozen, 0)
    with read_scope() as session:
        runs, _ = waiting.list_waiting(session, actor=ADMIN, limit=10)
    first, second = (run.blackout for run in runs)
    assert first is not None
    assert second is not None
    assert (first.until_ms, first.reason) == (UNTIL + 1_000, "checking")
    assert (second.until_ms, second.reason) == (None, "frozen")
    assert [run.is_gated for run in runs] == [False, False]


@every_database
def test_one_is_started_all_the_same_or_withdrawn() -> None:
    job = make_job()
    fires = pause(job), pause(job)
    for fire, act in zip(fires, (waiting.start_now, waiting.withdraw_run), strict=True):
        with session_scope() as session:
            act(session, f"w{fire.id}", actor=ADMIN, now_ms=T0 + 1)
    row = only_row(Fire)
    assert (row.id, row.state, row.admitted_ms, row.waits_for) == (fires[0].id, "PENDING", T0 + 1, "")
    assert only_row(Skip).reason == "withdrawn"


def test_a_planned_trigger_that_waits_is_found_by_its_id() -> None:
    job = make_job()
    run_id = trigger(job, due_ms=T0 + 1).trigger.id
    black_out(job_id=job.id)
    with session_scope() as session:
        fire = session.get_one(Fire, only_row(Fire).id)
        fire.state, fire.waits_for = "GATED", "blackout"
    parsed = parse_id(run_id)
    assert parsed is not None
    with read_scope() as session:
        found = find_trigger_runs(session, parsed)
        run = get_run(session, run_id, actor=ADMIN)
    assert found.is_waiting
    assert run.waiting is not None
    assert run.waiting.blackout is not None
    with session_scope() as session:
        waiting.withdraw_run(session, run_id, actor=ADMIN, now_ms=T0)
    assert all_rows(Fire) == []
