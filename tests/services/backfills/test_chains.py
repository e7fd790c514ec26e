"""Backfills with all that follows their job: the rounds of each instant, and who may go on with one."""

import pytest

from app.domain.access.permissions import ALL_RIGHTS, Actor
from app.domain.runs.trigger_keys import backfill_key, trigger_of
from app.errors import PermissionDenied
from app.models.round import Arrival, Round
from tests.pipeline.round_steps import claim_due, follow
from tests.pipeline.steps import call_back
from tests.services.backfills.backfill_steps import change, draft, go_on, minute, minutely, start, state
from tests.support.factories import T0, all_rows, make_job
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")


@every_database
def test_each_instant_that_starts_opens_the_rounds_of_its_chain() -> None:
    job, other = minutely(), make_job(schedule_type="NONE")
    after = follow(job, other)
    last = follow(after)
    backfill_id = start(job, draft(3, 1, max_running=2, children="chain"))
    triggers = {number: trigger_of(job.id, backfill_key(backfill_id, minute(number))) for number in (3, 2)}
    expected = {
        (each.id, trigger.number, minute(number))
        for number, trigger in triggers.items()
        for each in (after, last)
        if trigger is not None
    }
    assert {(row.job_id, row.chain, row.logical_ms) for row in all_rows(Round)} == expected
    excused = [(row.predecessor_id, row.outcome) for row in all_rows(Arrival)]
    assert excused == [(other.id, "excused")] * 2


def test_who_may_not_start_the_chain_may_not_resume_it_either() -> None:
    job = minutely()
    follow(job, job=make_job(schedule_type="CRON", schedule_conf="0 0 2 * * ?"))
    backfill_id = start(job, draft(3, 1, children="chain"))
    [run] = claim_due()
    call_back(run.log_id, 500, now_ms=T0)
    assert go_on(backfill_id) == "failed"
    user = Actor(user_id=2, username="bob", is_admin=False, rights={job.job_group: ALL_RIGHTS})
    with pytest.raises(PermissionDenied):
        change(backfill_id, "resume", actor=user)
    assert state(backfill_id) == "failed"
    assert change(backfill_id, "resume") == "running"
