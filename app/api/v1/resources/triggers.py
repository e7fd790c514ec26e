"""API: run a job once, now or at an instant."""

from app.api.v1.endpoint import Call, Made, Resource
from app.api.v1.run_answers import waiting_answer
from app.api.v1.schemas.runs import RunDetail, TriggerIn
from app.clock import SECOND_MS, Millis
from app.domain.access.permissions import Right
from app.services.jobs import jobs
from app.services.jobs.jobs import QueuedRun

#: names that the services give to the members
MEMBERS = {"executorParam": "param", "addressList": "addresses"}

resource = Resource("triggers", "Run jobs once.", MEMBERS)


@resource.post("/jobs/<int:job_id>/runs", body=TriggerIn, answer=RunDetail, status=202, right=Right.OPERATE)
def trigger_job(call: Call, job_id: int, body: TriggerIn) -> Made:
    """Run a job once.

    The answer has the id that leads to the run, whatever else is triggered. A run with `at` or `in_s` starts
    at that time, or as soon as a scheduler is back, and can be withdrawn until then.
    """
    run = jobs.trigger_job(
        call.session,
        job_id,
        executor_param=body.param,
        address_list=",".join(body.addresses),
        actor=call.actor,
        now_ms=call.now_ms,
        due_ms=_due_ms(body, call.now_ms),
    )
    return queued(run)


def queued(run: QueuedRun) -> Made:
    """Return the answer about a run that was just queued."""
    return Made(waiting_answer(run), f"/runs/{run.trigger.id}")


def _due_ms(body: TriggerIn, now_ms: Millis) -> Millis | None:
    """Return when the run is due; None: now."""
    return body.at if body.in_s is None else now_ms + round(body.in_s * SECOND_MS)
