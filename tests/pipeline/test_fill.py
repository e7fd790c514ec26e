"""Parameters that are filled in: what is sent and what is stored, whatever becomes of the run."""

from sqlalchemy import delete, text, update

from app.database.engine import read_scope, transact
from app.domain.enums import ParamForm, TriggerCode
from app.models.fire import Fire
from app.models.job import Job
from app.models.log import JobLog
from app.models.variable import Variable
from app.pipeline.claim import claim
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.prepare import prepare
from app.settings.sealing import PREFIX
from app.store.fires import queue as fires
from tests.pipeline.steps import (
    as_due,
    call_back,
    claim_fires,
    claimer,
    give_back_all,
    record_sent,
    sent,
)
from tests.support.factories import (
    FIRST,
    SECOND,
    T0,
    all_rows,
    make_due_job,
    make_fire,
    make_job,
    only_row,
    save,
)
from tests.support.plan import every_database

pytestmark = every_database

SECRET = "s3cr3t-value-of-some-length"


def filling_job(param: str, **more: object) -> Job:
    return make_job(executor_param=param, fill_parameter=1, **more)


def trigger(job: Job, param: str | None, *, form: ParamForm = ParamForm.TEMPLATE, **more: object) -> None:
    transact(
        lambda session: fires.insert_manual(
            session, job.id, executor_param=param, address_list=None, due_ms=T0, param_form=form, **more
        )
    )


def claim_next() -> ClaimedRun:
    (fire,) = all_rows(Fire, state="PENDING")
    (claimed,) = claim_fires([fire], now_ms=fire.due_time).claims
    return claimed


def sent_param(claimed: ClaimedRun) -> str:
    return claimed.request_for(FIRST).executor_params


def stored(log_id: int) -> tuple[str | None, int, str | None]:
    with read_scope() as session:
        log = session.get_one(JobLog, log_id)
        return log.executor_param, log.param_form, log.filled_param


def edit(job: Job, **values: object) -> None:
    transact(lambda session: session.execute(update(Job).where(Job.id == job.id).values(**values)))


def test_a_job_without_the_switch_is_sent_what_it_says(database: str) -> None:
    make_fire(make_job(executor_param="${HOME} $${x} ${time:yyyy}"))
    claimed = claim_next()
    assert sent_param(claimed) == "${HOME} $${x} ${time:yyyy}"
    assert stored(claimed.log_id) == ("${HOME} $${x} ${time:yyyy}", 0, None)


def test_dates_ids_and_variables_are_filled_in(database: str) -> None:
    job = filling_job("${time-1d:yyyy-MM-dd} ${job.id} ${run.id} ${var.REGION} $${x}")
    save(Variable(name="REGION", group_id=0, value="eu"))
    save(Variable(name="REGION", group_id=job.job_group, value="cn"))
    make_fire(job)
    claimed = claim_next()
    filled = f"2024-04-30 {job.id} {claimed.log_id} cn ${{x}}"
    assert sent_param(claimed) == filled
    assert stored(claimed.log_id) == (job.executor_param, 1, filled.replace("${", "$${"))


def test_runs_of_one_claim_get_each_its_own(database: str) -> None:
    plain, filled = make_job(executor_param="a"), filling_job("${run.id}-${job.id}")
    for job in (filled, plain, filled):
        make_fire(job)
    runs = claim_fires(now_ms=T0).claims
    assert sorted((run.job_id, sent_param(run)) for run in runs) == sorted(
        (run.job_id, "a" if run.job_id == plain.id else f"{run.log_id}-{filled.id}") for run in runs
    )
    assert {log.id: log.executor_param for log in all_rows(JobLog)} == {
        run.log_id: "a" if run.job_id == plain.id else "${run.id}-${job.id}" for run in runs
    }


def test_a_child_gets_the_result_of_its_parent(database: str) -> None:
    child = filling_job("id=${parent.result.rows[0].id} of ${parent.param}")
    make_fire(filling_job("${time:yyyy}", child_jobid=str(child.id)))
    parent = claim_next()
    call_back(parent.log_id, 200, '{"rows":[{"id":7}]}')
    assert sent_param(claim_next()) == "id=7 of 2024"


def test_a_retry_gets_the_same_text_and_a_new_one_after_an_edit(database: str) -> None:
    job = filling_job("${run.id}", executor_fail_retry_count=3)
    make_fire(job)
    first = claim_next()
    call_back(first.log_id, 500)
    second = claim_next()
    assert sent_param(second) == sent_param(first) == str(first.log_id)
    assert stored(second.log_id) == ("${run.id}", 1, str(first.log_id))
    edit(job, executor_param="new ${run.id}", fill_parameter=0)
    call_back(second.log_id, 500)
    assert sent_param(claim_next()) == "${run.id}", "the switch is off"


def test_run_again_gets_the_same_text_but_for_another_logical_time(database: str) -> None:
    job = filling_job("${run.id} ${time:yyyy}")
    trigger(job, job.executor_param, logical_ms=T0)
    first = claim_next()
    call_back(first.log_id, 200)
    trigger(job, job.executor_param, repeats=first.log_id, logical_ms=T0)
    assert sent_param(claim_next()) == sent_param(first)
    trigger(job, job.executor_param, repeats=first.log_id, logical_ms=0)
    last = claim_next()
    assert sent_param(last) == f"{last.log_id} 1970"


def test_a_retry_of_a_child_still_knows_its_parent(database: str) -> None:
    child = filling_job("${parent.result:-none}", executor_fail_retry_count=3)
    make_fire(make_job(child_jobid=str(child.id)))
    call_back(claim_next().log_id, 200, "done")
    failed = claim_next()
    transact(lambda session: session.execute(update(JobLog).values(filled_param=None)))
    call_back(failed.log_id, 500)
    assert sent_param(claim_next()) == "done"


def test_what_cannot_be_filled_in_ends_the_run_with_its_reason(database: str) -> None:
    make_fire(filling_job("${parent.result}", executor_fail_retry_count=1))
    assert claim_fires(now_ms=T0).claims == []
    log = only_row(JobLog)
    assert (log.trigger_code, *stored(log.id)) == (500, "${parent.result}", 1, None)
    reason = "Result: not sent, parameter not filled: ${parent.result}: the run has no parent"
    assert (log.trigger_msg or "").splitlines()[-1] == reason
    assert [fire.trigger_type for fire in all_rows(Fire)] == ["RETRY"]


def test_a_secret_is_sent_and_nowhere_else(database: str) -> None:
    job = filling_job('{"token": "${secret.TOKEN}", "day": "${time:dd}"}')
    save(Variable(name="TOKEN", group_id=job.job_group, secret=SECRET))
    make_fire(job)
    claimed = claim_next()
    assert SECRET in claimed.content_for(FIRST).decode()
    assert sent_param(claimed) == f'{{"token": "{SECRET}", "day": "01"}}'
    assert stored(claimed.log_id)[2] == '{"token": "${secret.TOKEN}", "day": "01"}'
    assert SECRET not in repr(claimed) + "".join(claimed.trace)


def test_a_secret_counts_only_in_the_parameter_of_the_job(database: str) -> None:
    job = filling_job("${secret.TOKEN}")
    save(Variable(name="TOKEN", group_id=job.job_group, secret=SECRET))
    other = filling_job("x")
    save(Variable(name="TOKEN", group_id=other.job_group, secret=SECRET))
    trigger(other, "${secret.TOKEN}")
    assert claim_fires(now_ms=T0).claims == []
    assert "secret TOKEN does not exist" in (only_row(JobLog).trigger_msg or "")


def test_a_refused_run_that_names_its_id_stores_no_text(database: str) -> None:
    job = filling_job("x", executor_fail_retry_count=1)
    save(Variable(name="TOKEN", group_id=job.job_group, secret=SECRET))
    trigger(job, "${run.id} ${secret.TOKEN}")
    assert claim_fires(now_ms=T0).claims == []
    assert stored(only_row(JobLog).id) == ("${run.id} ${secret.TOKEN}", 1, None)
    assert claim_fires(now_ms=T0).claims == [], "nor does its retry get the secret"


def test_no_result_can_name_a_secret(database: str) -> None:
    child = filling_job("${parent.result} ${secret.TOKEN}")
    save(Variable(name="TOKEN", group_id=child.job_group, secret=SECRET))
    make_fire(make_job(child_jobid=str(child.id)))
    call_back(claim_next().log_id, 200, "${secret.TOKEN}")
    assert sent_param(claim_next()) == f"${{secret.TOKEN}} {SECRET}"


def test_a_secret_that_is_sealed_with_another_key_ends_the_run(database: str) -> None:
    job = filling_job("${secret.TOKEN}")
    save(Variable(name="TOKEN", group_id=job.job_group, secret=SECRET))
    statement = text("UPDATE xxl_job_variable SET secret = :sealed")
    transact(lambda session: session.execute(statement, {"sealed": f"{PREFIX}{'A' * 120}"}))
    make_fire(job)
    claimed = claim_fires(now_ms=T0).claims
    texts = [log.trigger_msg or "" for log in all_rows(JobLog)]
    assert claimed == [], texts
    assert "secret TOKEN cannot be opened" in texts[0]


def test_a_text_of_the_original_endpoints_is_sent_as_it_is(database: str) -> None:
    trigger(filling_job("x"), "${time:yyyy}", form=ParamForm.TEXT)
    claimed = claim_next()
    assert sent_param(claimed) == "${time:yyyy}"
    assert stored(claimed.log_id) == ("${time:yyyy}", 0, None)


def test_a_given_text_is_filled_in(database: str) -> None:
    trigger(filling_job("x"), "${time:yyyy}")
    assert sent_param(claim_next()) == "2024"


def test_each_shard_is_filled_in_for_itself(database: str) -> None:
    job = filling_job(
        "${shard.index}/${shard.total}",
        executor_route_strategy="SHARDING_BROADCAST",
        addresses=f"{FIRST},{SECOND}",
    )
    make_fire(job)
    batch = claim_fires(now_ms=T0)
    shards = claim_fires(all_rows(Fire), now_ms=T0).claims
    assert len(batch.new_fires) == 2
    assert sorted(map(sent_param, shards)) == ["0/2", "1/2"]


def test_a_run_that_is_sent_again_is_sent_the_same(database: str) -> None:
    job = filling_job("${run.id} ${var.REGION}")
    save(Variable(name="REGION", group_id=0, value="eu"))
    make_fire(job)
    first = claim_next()
    record_sent(sent(first))
    transact(lambda session: session.execute(update(Fire).values(state="PENDING", due_time=T0)))
    edit(job, fill_parameter=0)
    transact(lambda session: session.execute(update(Variable).values(value="cn")))
    again = claim_next()
    assert again.log_id == first.log_id
    assert sent_param(again) == sent_param(first) == f"{first.log_id} eu"


def test_a_run_that_may_run_is_unresolved_without_its_secret(database: str) -> None:
    job = filling_job("${secret.TOKEN}", executor_fail_retry_count=1)
    save(Variable(name="TOKEN", group_id=job.job_group, secret=SECRET))
    make_fire(job)
    record_sent(sent(claim_next()))
    transact(lambda session: session.execute(update(Fire).values(state="PENDING", due_time=T0)))
    transact(lambda session: session.execute(delete(Variable)))
    assert claim_fires(now_ms=T0).claims == []
    log = only_row(JobLog)
    assert log.trigger_code == TriggerCode.UNRESOLVED
    assert "secret TOKEN does not exist" in (log.trigger_msg or "")


def test_runs_given_back_store_what_their_edited_jobs_send(database: str) -> None:
    jobs = [filling_job("${job.id}"), make_job(executor_param="x"), filling_job("${time:yyyy}")]
    save(Variable(name="TOKEN", group_id=jobs[1].job_group, secret=SECRET))
    for job in jobs:
        make_fire(job)
    give_back_all(*claim_fires(now_ms=T0).claims)
    edit(jobs[0], executor_param="plain", fill_parameter=0)
    edit(jobs[1], executor_param="${secret.TOKEN}", fill_parameter=1)
    assert len(claim_fires(now_ms=T0).claims) == 3
    assert {log.job_id: stored(log.id) for log in all_rows(JobLog)} == {
        jobs[0].id: ("plain", 0, None),
        jobs[1].id: ("${secret.TOKEN}", 1, "${secret.TOKEN}"),
        jobs[2].id: ("${time:yyyy}", 1, "2024"),
    }


def test_a_prepared_run_knows_its_id_and_holds_no_secret(database: str) -> None:
    job = make_due_job(
        T0,
        fill_parameter=1,
        executor_param="${run.id} ${secret.TOKEN}",
        executor_handler="h",
        update_time=T0 - 60_000,
    )
    save(Variable(name="TOKEN", group_id=job.job_group, secret=SECRET))
    fire = make_fire(job, trigger_type="CRON", fire_key=f"cron:{job.id}:{T0}")
    ahead = transact(lambda session: prepare(session, as_due([fire]), claimer(), now_ms=T0 - 1_000))
    (prepared,) = ahead.values()
    assert prepared.claim.prepared_body is None
    assert SECRET not in repr(prepared)
    due = as_due([fire])
    batch = transact(lambda session: claim(session, due, claimer(), now_ms=T0, prepared_by_id=ahead))
    (claimed,) = batch.claims
    assert sent_param(claimed) == f"{claimed.log_id} {SECRET}"
    assert stored(claimed.log_id)[2] == f"{claimed.log_id} ${{secret.TOKEN}}"


def test_secrets_that_make_it_too_long_end_the_run(database: str) -> None:
    job = filling_job("${secret.TOKEN}" * 7)
    save(Variable(name="TOKEN", group_id=job.job_group, secret="x" * 10_000))
    make_fire(job)
    assert claim_fires(now_ms=T0).claims == []
    assert "longer than 60,000 bytes" in (only_row(JobLog).trigger_msg or "")


def test_a_text_that_is_too_long_with_a_longer_id_ends_the_run(database: str) -> None:
    job = filling_job("${secret.TOKEN}" * 6 + "${run.id}")
    save(Variable(name="TOKEN", group_id=job.job_group, secret="x" * 9_999))
    make_fire(job)
    assert claim_fires(now_ms=T0).claims == []
    assert "longer than 60,000 bytes" in (only_row(JobLog).trigger_msg or "")
