"""FIX_DELAY: a job continues after the log of its run was cleared."""

from app.db import session_scope
from app.models.job import AFTER_THE_CURRENT_RUN, Job
from app.pipeline.delays import tick_delays
from app.store import log_clearing
from app.store.log_clearing import Clearing
from tests.factories import T0, make_due_job, make_run, only_row
from tests.plan import every_database

pytestmark = every_database


def test_a_fixed_delay_continues_after_its_run_is_cleared(database: str) -> None:
    job = make_due_job(AFTER_THE_CURRENT_RUN, "FIX_DELAY", "20")
    make_run(job)
    tick_delays(T0)
    assert only_row(Job).trigger_next_time == AFTER_THE_CURRENT_RUN, "its run is in progress"
    with session_scope() as session:
        log_clearing.clear_batch(session, Clearing(0, job.id, keep=None))
    tick_delays(T0)
    assert only_row(Job).trigger_next_time == T0 + 20_000
