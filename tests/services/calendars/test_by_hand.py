"""Runs by hand during a blackout: refused unless they are forced; those for later are accepted."""

from typing import Any

import pytest

from app.clock import HOUR_MS
from app.database.engine import session_scope
from app.domain.access.permissions import system_actor
from app.errors import Conflict
from app.models.fire import Fire
from app.models.job import Job
from app.services.jobs import batch_triggers, jobs
from app.services.jobs.batch_triggers import BatchEntry
from app.services.jobs.jobs import QueuedRun
from app.services.jobs.triggers import InChain
from app.services.runs import run_actions
from tests.services.calendars.test_blackouts import black_out, end
from tests.support.factories import T0, all_rows, make_job, make_log
from tests.support.jobs import LATER
from tests.support.plan import every_database

pytestmark = pytest.mark.usefixtures("database")

ADMIN = system_actor("ann")


def trigger(job: Job, **options: Any) -> QueuedRun:
    with session_scope() as session:
        return jobs.trigger_job(
            session, job.id, executor_param=None, address_list=None, actor=ADMIN, now_ms=T0, **options
        )


@every_database
def test_a_run_by_hand_is_refused_with_the_end_and_the_reason_unless_it_is_forced() -> None:
    job, other = make_job(), make_job()
    made = black_out(job_id=job.id, to_ms=T0 + HOUR_MS)
    with pytest.raises(Conflict, match=r"a blackout is on until 2024-05-01 .*: moving"):
        trigger(job)
    with pytest.raises(Conflict, match="a blackout is on until"):
        trigger(job, in_chain=InChain(opens=True))
    assert all_rows(Fire) == []
    trigger(other)
    trigger(job, force=True)
    trigger(job, due_ms=T0 + 1)
    assert [(fire.job_id, fire.admitted_ms) for fire in all_rows(Fire)] == [
        (other.id, 0),
        (job.id, T0),
        (job.id, 0),
    ]
    end(made.id, now_ms=T0)
    trigger(job)


def test_without_an_end_it_says_so_and_repeats_are_refused_too() -> None:
    job = make_job()
    log = make_log(job, handle_code=500)
    black_out(group_id=job.job_group, reason="frozen")
    with pytest.raises(Conflict, match="a blackout is on, without an end: frozen"):
        trigger(job)
    with session_scope() as session, pytest.raises(Conflict, match="a blackout is on"):
        run_actions.retry_run(session, str(log.id), actor=ADMIN, now_ms=LATER)
    with session_scope() as session:
        run_actions.retry_run(session, str(log.id), actor=ADMIN, now_ms=LATER, force=True)


def test_of_a_batch_only_the_runs_of_such_jobs_are_refused() -> None:
    job, other = make_job(), make_job()
    black_out(job_id=job.id)
    entries = [
        BatchEntry(other.id, None, ""),
        BatchEntry(job.id, None, ""),
        BatchEntry(job.id, None, "", force=True),
    ]
    with session_scope() as session:
        results = batch_triggers.trigger_jobs(session, entries, actor=ADMIN, now_ms=T0)
    assert [isinstance(result, QueuedRun) for result in results] == [True, False, True]
    assert str(results[1]) == "a blackout is on, without an end: moving"
