"""Checkpoints: from a failed run to its retry, whatever happens between."""

from sqlalchemy import select

from app.database.engine import read_scope, transact
from app.models.fire import Fire
from app.models.log import JobLog
from app.models.registry import Registration
from app.pipeline.claimed_run import ClaimedRun
from app.store.fires import queue as fires
from executor_client.wire.protocol import RunRequest
from tests.pipeline.steps import call_back, claim_fires
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    make_job,
    make_log,
    make_run,
    only_row,
    remove,
    save,
)
from tests.support.plan import every_database

pytestmark = every_database

WIRE = len(RunRequest(1, "", "", "", 0, 1, 1, "", "", 0, 0, 1).to_wire())


def failed_run(checkpoint: str | None = '{"page":3}', **job: object) -> JobLog:
    """Return a run that has failed and left a checkpoint; its retry waits."""
    run = make_run(make_job(executor_fail_retry_count=2, **job), log={"checkpoint": checkpoint})
    call_back(run.id, 500)
    return run


def registered(address: str = FIRST, capabilities: str = "durable-dedup,run-state") -> None:
    save(
        Registration(
            registry_group="EXECUTOR",
            registry_key="demo-executor",
            registry_value=address,
            update_time=T0,
            capabilities=capabilities,
            boot_id="5f0c",
        )
    )


def claim_retry() -> ClaimedRun:
    fire = only_row(Fire)
    (claimed,) = claim_fires([fire], now_ms=fire.due_time).claims
    return claimed


def checkpoint_of(log_id: int) -> str | None:
    with read_scope() as session:
        return session.scalar(select(JobLog.checkpoint).where(JobLog.id == log_id))


def test_a_retry_gets_the_checkpoint_of_the_failed_run(database: str) -> None:
    registered()
    run = failed_run()
    wire = claim_retry().request_for(FIRST).to_wire()
    assert (wire["checkpoint"], wire["repeats"]) == ('{"page":3}', run.id)


def test_other_executors_get_twelve_fields(database: str) -> None:
    registered(capabilities="durable-dedup")
    failed_run()
    assert len(claim_retry().request_for(FIRST).to_wire()) == WIRE == 12


def test_the_executor_that_is_chosen_last_decides(database: str) -> None:
    registered(SECOND)
    failed_run(executor_route_strategy="FAILOVER", addresses=f"{FIRST},{SECOND}")
    claimed = claim_retry()
    assert len(claimed.request_for(FIRST).to_wire()) == 12
    assert claimed.request_for(SECOND).checkpoint == '{"page":3}'


def test_a_retry_that_reaches_no_executor_passes_it_on(database: str) -> None:
    failed_run()
    claimed = claim_retry()
    assert checkpoint_of(claimed.log_id) == '{"page":3}'
    call_back(claimed.log_id, 500)
    assert claim_retry().request.checkpoint == '{"page":3}'


def test_a_run_that_was_sent_before_gets_it_again(database: str) -> None:
    registered()
    failed_run()
    claimed = claim_retry()
    fire = only_row(Fire)
    fire.state, fire.lease_until = "PENDING", 0
    save(fire)
    assert claim_retry().request.checkpoint == '{"page":3}'
    assert claimed.log_id == only_row(Fire).log_id


def test_other_runs_get_none(database: str) -> None:
    job = make_job(child_jobid="")
    make_log(job, handle_code=500, checkpoint="1")
    transact(
        lambda session: fires.insert_manual(session, job.id, executor_param="", address_list=None, due_ms=T0)
    )
    assert claim_retry().request.repeats == 0


def test_a_run_repeated_by_hand_gets_that_of_a_failed_run_only(database: str) -> None:
    job = make_job()
    registered()
    for code, expected in ((500, "1"), (200, "")):
        run = make_log(job, handle_code=code, checkpoint="1")
        transact(
            lambda session, run=run: fires.insert_manual(
                session, job.id, executor_param="", address_list=None, due_ms=T0, repeats=run.id
            )
        )
        assert claim_retry().request.checkpoint == expected
        remove(only_row(Fire))


def test_shards_of_a_repeated_broadcast_remember_the_run(database: str) -> None:
    job = make_job(executor_route_strategy="SHARDING_BROADCAST", addresses=f"{FIRST},{SECOND}")
    run = make_log(job, handle_code=500, checkpoint="1")
    transact(
        lambda session: fires.insert_manual(
            session, job.id, executor_param="", address_list=None, due_ms=T0, repeats=run.id
        )
    )
    batch = claim_fires()
    with read_scope() as session:
        assert list(session.scalars(select(Fire.repeats_log_id))) == [run.id] * len(batch.new_fires)
