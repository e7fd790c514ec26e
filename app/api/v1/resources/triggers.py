"""API: triggers of a job, now or at an instant, and of many runs at once."""

from flask import g

from app.api.v1.endpoint import Call, Made, Resource
from app.api.v1.problems import entry_problem
from app.api.v1.run_answers import waiting_answer
from app.api.v1.schemas.runs import BatchIn, BatchOut, RunDetail, TriggerIn
from app.clock import SECOND_MS
from app.domain.access.permissions import Right
from app.errors import XxlJobError
from app.runtime.logging import request_id
from app.services.jobs import batch_triggers, triggers
from app.services.jobs.batch_triggers import BatchEntry
from app.services.jobs.triggers import InChain, QueuedRun

#: names that the services give to the members
MEMBERS = {"executorParam": "param", "addressList": "addresses", "logicalTime": "logical_time"}

resource = Resource("triggers", "Run jobs once.", MEMBERS)


@resource.post("/jobs/<int:job_id>/runs", body=TriggerIn, answer=RunDetail, status=202, right=Right.OPERATE)
def trigger_job(call: Call, job_id: int, body: TriggerIn) -> Made:
    """Run a job once.

    The answer has the id that leads to the run, whatever else is triggered. A run with `at` or `in_s` starts
    at that time, or as soon as a scheduler is back, and can be withdrawn until then.
    """
    run = triggers.trigger_job(
        call.session,
        job_id,
        executor_param=body.param,
        address_list=",".join(body.addresses),
        actor=call.actor,
        now_ms=call.now_ms,
        due_ms=body.at if body.in_s is None else call.now_ms + round(body.in_s * SECOND_MS),
        logical_ms=body.logical_time,
        force=body.force,
        in_chain=InChain(opens=body.chain, shared_with_java=call.config.shared_with_java),
    )
    return queued(run)


@resource.post("/runs:batch", body=BatchIn, answer=BatchOut, status=202, right=Right.OPERATE)
def trigger_jobs(call: Call, body: BatchIn) -> BatchOut:
    """Run many jobs once, or a job many times, in one request.

    The runs are due now, and queued in one transaction. Each has its own answer, in the order of the request:
    one that is refused leaves the others alone. The request counts once for the limit of requests a second.
    """
    entries = [
        BatchEntry(run.job_id, run.param, request_id.get(), run.logical_time, force=run.force)
        for run in body.runs
    ]
    results = batch_triggers.trigger_jobs(call.session, entries, actor=call.actor, now_ms=call.now_ms)
    g.entry_errors = [result for result in results if isinstance(result, XxlJobError)]
    return BatchOut(
        items=[
            entry_problem(result, f"runs.{place}", "job_id")
            if isinstance(result, XxlJobError)
            else waiting_answer(result)
            for place, result in enumerate(results)
        ]
    )


def queued(run: QueuedRun) -> Made:
    """Return the answer about a run that was just queued."""
    return Made(waiting_answer(run), f"/runs/{run.trigger.id}")
