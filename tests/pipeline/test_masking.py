"""Values of secrets in what executors return of a run: masked before it is stored."""

import asyncio
import json
from pathlib import Path

from sqlalchemy import select

from app.clock import DAY_MS
from app.database.engine import read_scope
from app.domain.runs.evidence import Fate
from app.domain.runs.trigger_report import ANSWER_MAX, RESULT_MAX
from app.models.job import Job
from app.models.log import JobLog
from app.models.variable import Variable, VariableVersion
from app.pipeline.claimed_run import ClaimedRun
from app.pipeline.complete import Result, Source
from app.pipeline.send import Sender, SendOutcome
from app.settings.config import Config
from tests.pipeline.steps import LOOPBACK, call_back, claim_fires, claim_one, end, record_sent, sent
from tests.support.factories import T0, make_fire, make_job, save
from tests.support.fake_executor import Answer, FakeExecutor
from tests.support.plan import every_database
from tests.support.statements import statements

pytestmark = every_database

TOKEN, FORMER, OLD = "present-value", "former-value-1", "value-of-last-year"
SHOWN = "‹secret TOKEN›"


def secret_job(param: str = "${secret.TOKEN}", **more: object) -> Job:
    """Return a job with a secret, which had two other values before."""
    job = make_job(executor_param=param, fill_parameter=1, **more)
    save(Variable(name="TOKEN", group_id=job.job_group, secret=TOKEN))
    for value, days in ((FORMER, 89), (OLD, 91)):
        former = {"name": "TOKEN", "group_id": job.job_group, "secret": value}
        save(VariableVersion(**former, replaced_ms=T0 - days * DAY_MS))
    return job


def stored(log_id: int) -> tuple[str | None, str | None]:
    with read_scope() as session:
        row = session.execute(select(JobLog.trigger_msg, JobLog.handle_msg).where(JobLog.id == log_id)).one()
        return row.trigger_msg, row.handle_msg


def claimed_run(job: Job) -> ClaimedRun:
    make_fire(job)
    return claim_one()


def test_results_are_masked(database: str) -> None:
    run = claimed_run(secret_job())
    call_back(run.log_id, 500, f"{TOKEN} {json.dumps(FORMER)} {OLD}")
    assert stored(run.log_id)[1] == f'{SHOWN} "{SHOWN}" {OLD}'


def test_a_result_is_masked_before_it_is_cut(database: str) -> None:
    run = claimed_run(secret_job())
    call_back(run.log_id, 200, f"{'x' * (RESULT_MAX - 10)}{TOKEN}")
    assert TOKEN[:4] not in (stored(run.log_id)[1] or TOKEN)


def test_a_kill_and_a_bad_code_are_masked(database: str) -> None:
    runs = [claimed_run(secret_job()), claimed_run(secret_job())]
    end(Result(runs[0].log_id, Source.KILL, 500, f"killed by admin: {TOKEN}"))
    call_back(runs[1].log_id, -1, TOKEN)
    texts = [stored(run.log_id)[1] or "" for run in runs]
    assert [SHOWN in text and TOKEN not in text for text in texts] == [True, True]


def test_traces_are_masked(database: str) -> None:
    for fate in (Fate.REFUSED, Fate.UNKNOWN, Fate.ACCEPTED):
        run = claimed_run(secret_job())
        record_sent(sent(run, fate, text=f"{TOKEN} {FORMER}"))
        trace = stored(run.log_id)[0] or ""
        assert (f"{SHOWN} {SHOWN}" in trace, TOKEN in trace, FORMER in trace) == (True, False, False), fate


def send(run: ClaimedRun, address: str, home: Path) -> SendOutcome:
    async def work() -> SendOutcome | None:
        sender = Sender(Config(home=home, executor_networks=LOOPBACK))
        try:
            return await sender.send(run, address)
        finally:
            await sender.close()

    outcome = asyncio.run(work())
    assert outcome is not None
    return outcome


def test_an_answer_is_masked_before_it_is_cut(database: str, tmp_path: Path) -> None:
    with FakeExecutor() as executor:
        executor.respond("run", Answer.json(code=500, msg=f"{'x' * (ANSWER_MAX - 8)}{TOKEN}"))
        job = secret_job(addresses=executor.address)
        outcome = send(claimed_run(job), executor.address, tmp_path)
        (request,) = executor.requests
    assert TOKEN in request.body.decode()
    assert TOKEN[:4] not in "".join(outcome.trace) + outcome.verdict.text


def test_each_run_is_masked_by_its_own_secrets(database: str) -> None:
    """A value may be an everyday word in another group, and a result of others stays what it is."""
    with_secret, other = secret_job(), make_job(executor_param="${time:yyyy}", fill_parameter=1)
    plain = make_job(executor_param="${secret.TOKEN}")
    for job in (with_secret, other, plain):
        make_fire(job)
    runs = {run.job_id: run.log_id for run in claim_fires().claims}
    end(*(Result(log_id, Source.CALLBACK, 200, TOKEN) for log_id in runs.values()))
    shown = {job_id: stored(log_id)[1] for job_id, log_id in runs.items()}
    assert shown == {with_secret.id: SHOWN, other.id: TOKEN, plain.id: TOKEN}


def counted(job: Job, count: int) -> int:
    """Return how many statements the end of some runs of a job takes."""
    for _ in range(count):
        make_fire(job)
    runs = claim_fires().claims
    assert len(runs) == count
    with statements() as executed:
        end(*(Result(run.log_id, Source.CALLBACK, 200, "x") for run in runs))
    return len(executed)


def test_runs_without_secrets_cost_no_statement(database: str) -> None:
    plain = counted(make_job(executor_param="${secret.TOKEN}"), 3)
    assert counted(make_job(executor_param="${time:yyyy}", fill_parameter=1), 3) == plain
    assert counted(secret_job(), 3) == plain + 2
    assert counted(secret_job(), 1) == counted(secret_job(), 3)
