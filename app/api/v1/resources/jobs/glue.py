"""API: code of GLUE jobs and its versions."""

from typing import Any

from sqlalchemy.orm import Session

from app.api.v1.cursors import cut, read_id_cursor
from app.api.v1.endpoint import Call, Resource
from app.api.v1.schemas.base import Listed, ListQuery
from app.api.v1.schemas.jobs import CodeIn, CodeOut, CodeVersion, CodeVersionSource
from app.domain.access.permissions import Right
from app.errors import Conflict, NotFound
from app.models.glue import GlueVersion
from app.models.job import Job
from app.services.jobs import glue
from app.store.base import locks
from app.store.jobs.glue import list_remarks

resource = Resource(
    "glue",
    "Code of jobs whose run mode is not `BEAN`, and its versions.",
    {"glueSource": "source", "glueRemark": "remark"},
)


def _lock_job(session: Session, job_id: int) -> None:
    locks.lock_jobs(session, [job_id])


@resource.get("/jobs/<int:job_id>/code", answer=CodeOut, right=Right.GLUE, etag=True)
def get_code(call: Call, job_id: int) -> CodeOut:
    """Return the code of a job; one that runs a handler has none."""
    return _code_out(_glue_job(call, job_id))


@resource.put(
    "/jobs/<int:job_id>/code", body=CodeIn, answer=CodeOut, right=Right.GLUE, etag=True, lock=_lock_job
)
def save_code(call: Call, job_id: int, body: CodeIn) -> CodeOut:
    """Save the code of a job as a new version. The newest 30 versions are kept.

    The next run gets it, and ends a run of the job that is in progress on the same executor; runs waiting
    there fail.
    """
    glue.save_source(call.session, job_id, body.source, body.remark, actor=call.actor, now_ms=call.now_ms)
    call.reread()
    return _code_out(_glue_job(call, job_id))


@resource.get(
    "/jobs/<int:job_id>/code/versions", answer=Listed[CodeVersion], query=ListQuery, right=Right.GLUE
)
def list_code_versions(call: Call, job_id: int) -> Listed[CodeVersion]:
    """List the versions of a job's code, the newest first."""
    _glue_job(call, job_id)
    limit, before_id = call.query.limit, read_id_cursor(call.query.cursor)
    rows = list_remarks(call.session, job_id, limit=limit + 1, before_id=before_id)
    page, next_cursor = cut(rows, limit, lambda version: (version.id,))
    return Listed[CodeVersion](
        items=[CodeVersion(**_columns(version)) for version in page], next_cursor=next_cursor
    )


@resource.get("/jobs/<int:job_id>/code/versions/<int:version_id>", answer=CodeVersionSource, right=Right.GLUE)
def get_code_version(call: Call, job_id: int, version_id: int) -> CodeVersionSource:
    """Return a version of a job's code."""
    _glue_job(call, job_id)
    version = glue.get_version(call.session, version_id, actor=call.actor)
    if version.job_id != job_id:
        raise NotFound(glue.MISSING_VERSION)
    return CodeVersionSource(**_columns(version), source=version.glue_source or "")


def _glue_job(call: Call, job_id: int) -> Job:
    try:
        return glue.get_glue_job(call.session, job_id, actor=call.actor, right=Right.GLUE)
    except Conflict as exc:  # a job without code has no code resource
        raise NotFound(str(exc)) from exc


def _code_out(job: Job) -> CodeOut:
    return CodeOut(
        job_id=job.id,
        run_mode=job.glue_type,
        source=job.glue_source or "",
        remark=job.glue_remark or "",
        updated_at=job.glue_updatetime,
    )


def _columns(version: GlueVersion) -> dict[str, Any]:
    return {
        "id": version.id,
        "run_mode": version.glue_type or "",
        "remark": version.glue_remark,
        "author": version.author,
        "saved_at": version.update_time,
    }
