"""Backfills of jobs that are deleted, and kills of their runs."""

import pytest

from app.database.engine import transact
from app.models.backfill import Backfill
from app.models.fire import Fire
from app.services.executors.groups import remove_group
from app.services.jobs.jobs import remove_job
from tests.pipeline.round_steps import claim_due
from tests.services.backfills.backfill_steps import ACTOR, draft, go_on, minutely, start, states
from tests.support.factories import T0, all_rows, make_group, only_row

pytestmark = pytest.mark.usefixtures("database")


@pytest.mark.parametrize("is_claimed", [False, True])
def test_a_backfill_ends_with_its_job(is_claimed: bool) -> None:
    job = minutely()
    make_group(app_name="another")
    backfill_id = start(job, draft(3, 1, max_running=2))
    if is_claimed:
        assert len(claim_due()) == 2
    transact(lambda session: remove_job(session, job.id, actor=ACTOR, now_ms=T0))
    transact(lambda session: remove_group(session, job.job_group, actor=ACTOR, now_ms=T0))
    assert go_on(backfill_id) == "cancelled"
    assert states(backfill_id) == ["withdrawn"] * 3
    assert "The job was deleted" in (only_row(Backfill).reason or "")
    assert all_rows(Fire) == []
