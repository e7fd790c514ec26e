"""API: operations that add, change, start, stop and remove jobs."""

from dataclasses import replace
from functools import partial

from app.api.v1.endpoint import Call, Made
from app.api.v1.resources.jobs import jobs as job_reads
from app.api.v1.schemas.jobs import JobIn, JobOut, JobPatch
from app.clock import now_ms
from app.database.engine import session_scope, transact
from app.domain.access.permissions import Right
from app.services.jobs import changes, jobs

resource = replace(job_reads.resource, operations=[])


@resource.post("/jobs", body=JobIn, answer=JobOut, status=201, right=Right.EDIT, etag=True)
def add_job(call: Call, body: JobIn) -> Made:
    """Add a job.

    With `enabled` its schedule starts at once, which needs the right `operate`, too. Code needs `glue`.
    """
    members = body.model_dump(mode="json", exclude={changes.ENABLED})
    draft = changes.draft_of(members, readable_by_java=call.config.shared_with_java)
    job_id = jobs.add_job(call.session, draft, actor=call.actor, clock=now_ms, start=body.enabled)
    return Made(_reread_job_out(call, job_id), f"/jobs/{job_id}")


@resource.patch(
    "/jobs/<int:job_id>", body=JobPatch, answer=JobOut, right=Right.EDIT, etag=True, lock=changes.hold_job
)
def change_job(call: Call, job_id: int, body: JobPatch) -> JobOut:
    """Change the given members of a job.

    All takes effect at once: a new schedule withdraws the runs that the old one had planned. `enabled` needs
    the right `operate`, too.
    """
    changes.change_job(
        call.session,
        job_id,
        body.model_dump(mode="json", exclude_unset=True),
        actor=call.actor,
        clock=now_ms,
        readable_by_java=call.config.shared_with_java,
    )
    return _reread_job_out(call, job_id)


@resource.delete("/jobs/<int:job_id>", right=Right.EDIT, transaction=False)
def remove_job(call: Call, job_id: int) -> None:
    """Delete a job with its runs and versions. Runs in progress continue."""
    remove = partial(jobs.remove_job, job_id=job_id, actor=call.actor, now_ms=call.now_ms)
    if call.dry_run:
        with session_scope() as session:
            remove(session)
            session.rollback()
        return
    # A long log is deleted in many transactions.
    jobs.clear_before_removal(job_id, actor=call.actor, clock=now_ms)
    transact(remove)


@resource.post("/jobs/<int:job_id>/start", answer=JobOut, right=Right.OPERATE)
def start_job(call: Call, job_id: int) -> JobOut:
    """Switch the schedule of a job on; one that is on stays as it is."""
    jobs.start_job(call.session, job_id, actor=call.actor, clock=now_ms)
    return _reread_job_out(call, job_id)


@resource.post("/jobs/<int:job_id>/stop", answer=JobOut, right=Right.OPERATE)
def stop_job(call: Call, job_id: int) -> JobOut:
    """Switch the schedule of a job off and withdraw its planned runs; one that is off stays as it is."""
    jobs.stop_job(call.session, job_id, actor=call.actor, clock=now_ms)
    return _reread_job_out(call, job_id)


def _reread_job_out(call: Call, job_id: int) -> JobOut:
    call.reread()
    return job_reads.job_out_of(call, job_id)
