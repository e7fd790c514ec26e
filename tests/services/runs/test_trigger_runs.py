"""From a trigger to the runs it became, through the real pipeline."""

import pytest
from sqlalchemy.orm import Session

from app.database.engine import read_scope, transact
from app.domain.access.permissions import system_actor
from app.domain.runs.evidence import Fate
from app.domain.runs.trigger_keys import Trigger
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.services.jobs import jobs
from app.services.runs.trigger_runs import TriggerRuns, find_trigger_runs
from tests.pipeline.steps import call_back, claim_fires, record_sent, sent
from tests.support.factories import FIRST, SECOND, T0, all_rows, make_job, only_row

pytestmark = pytest.mark.usefixtures("database")
ADMIN = system_actor("test")


def trigger(job: Job, param: str = "") -> Trigger:
    def work(session: Session) -> Trigger:
        return jobs.trigger_job(
            session, job.id, executor_param=param, address_list=None, actor=ADMIN, now_ms=T0
        ).trigger

    return transact(work)


def find(wanted: Trigger) -> TriggerRuns:
    with read_scope() as session:
        return find_trigger_runs(session, wanted)


def test_each_of_many_triggers_of_one_millisecond_leads_to_its_own_run() -> None:
    job = make_job()
    triggers = [trigger(job, f"number {number}") for number in range(60)]
    assert {find(each) for each in triggers} == {TriggerRuns((), T0)}
    shuffled = sorted(all_rows(Fire), key=lambda fire: fire.fire_key)
    for batch in (shuffled[:25], shuffled[25:]):
        claim_fires(batch, now_ms=T0 + 7_000)
    for log in all_rows(JobLog):
        call_back(log.id)
    assert all_rows(Fire) == []
    params = {log.id: log.executor_param for log in all_rows(JobLog)}
    found = [find(each) for each in triggers]
    assert [params[queued.log_ids[0]] for queued in found] == [f"number {number}" for number in range(60)]
    assert {(len(queued.log_ids), queued.due_ms) for queued in found} == {(1, None)}


def test_a_broadcast_leads_to_all_its_shards_also_while_some_wait() -> None:
    job = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}")
    made = trigger(job)
    claim_fires()
    assert find(made) == TriggerRuns((), T0)
    shards = all_rows(Fire)
    claim_fires(shards[:1])
    assert find(made) == TriggerRuns((only_row(JobLog).id,), T0)
    claim_fires(shards[1:])
    assert find(made) == TriggerRuns(tuple(log.id for log in all_rows(JobLog)), None)


def test_a_run_that_ended_before_its_trace_was_written_or_was_refused_is_found() -> None:
    job = make_job()
    early, refused = trigger(job), trigger(job)
    claims = claim_fires().claims
    call_back(claims[0].log_id)
    assert find(early) == TriggerRuns((claims[0].log_id,), None)
    record_sent(sent(claims[1], Fate.REFUSED))
    assert find(refused) == TriggerRuns((claims[1].log_id,), None)


def test_a_trigger_without_an_instance_leads_to_the_run_that_did_not_start() -> None:
    made = trigger(make_job(addresses=""))
    claim_fires()
    assert find(made) == TriggerRuns((only_row(JobLog).id,), None)


def test_a_fire_whose_time_was_set_back_still_waits_and_a_deleted_run_leads_nowhere() -> None:
    made = trigger(make_job())
    moved = made._replace(due_ms=T0 + 600_000)
    assert find(moved) == TriggerRuns((), None), "another trigger"
    with_later_due = only_row(Fire)
    transact(lambda session: setattr(session.get(Fire, with_later_due.id), "due_time", T0 - 9_000))
    assert find(made) == TriggerRuns((), T0 - 9_000)
    claim_fires()
    transact(lambda session: session.delete(session.get_one(JobLog, only_row(JobLog).id)))
    transact(lambda session: session.delete(session.get_one(Fire, only_row(Fire).id)))
    assert find(made) == TriggerRuns((), None)
