"""Changes by another program on the database: a comparison finds them, and they leave nothing unexplained."""

import pytest
from sqlalchemy import update

from app.database.engine import read_scope, session_scope
from app.domain.completeness.expected_instants import Interval
from app.models.job import Job
from app.models.node import Node
from app.pipeline.spans import SpanComparison
from app.services.completeness.accounts import find_accounts
from tests.support.factories import T0, make_due_job, make_log, save
from tests.support.plan import every_database

pytestmark = every_database


@pytest.mark.parametrize("next_ms", [0, T0 + 5_000], ids=["as a Java admin", "the switch alone"])
def test_a_job_that_is_switched_off_between_comparisons(database: str, next_ms: int) -> None:
    node = {"name": "one", "kind": "workers", "started_ms": 0, "heartbeat_ms": 0, "version": "1"}
    save(Node(**node, scanned_ms=T0 + 60_000))
    job = make_due_job(T0 + 1_000, "CRON", "* * * * * ?")
    comparison = SpanComparison()
    comparison.tick(T0)
    for instant in range(T0 + 1_000, T0 + 5_000, 1_000):
        planned = {"fire_time": instant, "logical_ms": instant, "trigger_type": "CRON", "late_ms": 1}
        make_log(job, **planned, trigger_time=instant, handle_code=200)
    with session_scope() as session:
        off = {"trigger_status": 0, "trigger_next_time": next_ms, "last_fire_ms": T0 + 4_000}
        session.execute(update(Job).where(Job.id == job.id).values(**off))
    comparison.tick(T0 + 10_000)
    with read_scope() as session:
        (found,) = find_accounts(session, Interval(T0, T0 + 30_000), now_ms=T0 + 60_000)
    tally = found.account.tally
    assert (tally.expected, tally.on_time, tally.is_complete) == (4, 4, True)
