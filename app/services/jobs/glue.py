"""GLUE sources of jobs and their versions.

Source of the rules: XXL-JOB 2.4.1 (docs/reference/console.md, section 9).
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.database.rows import bulk
from app.domain.access.permissions import Actor, Right, require_right
from app.domain.enums import GlueType
from app.domain.text.fingerprints import require_unchanged
from app.domain.text.input_errors import InputErrors
from app.domain.text.limits import limited_text
from app.domain.text.texts import N_
from app.errors import Conflict, InvalidInput, NotFound, NotVisible
from app.models.glue import GlueVersion
from app.models.job import Job
from app.services.auditing import audit
from app.services.jobs import job_list
from app.services.jobs.rules import clean_source
from app.store.base import locks
from app.store.jobs import glue

MISSING_VERSION = N_("Version id is invalid")
REMARK_MIN, REMARK_MAX = 4, 100
#: remark on the code of a new job that has none
FIRST_REMARK = "initial code"
#: versions kept for each job
VERSIONS_MAX = 30


def get_glue_job(session: Session, job_id: int, *, actor: Actor, right: Right = Right.VIEW) -> Job:
    """Return a GLUE job; raises Conflict for a job that runs a handler."""
    job = job_list.get_job(session, job_id, actor=actor, right=right)
    _require_glue(job)
    return job


def list_versions(session: Session, job_id: int, *, actor: Actor) -> list[GlueVersion]:
    """Return the versions of a job, newest first."""
    job_list.get_job(session, job_id, actor=actor)
    return glue.list_versions(session, job_id)


def get_version(session: Session, version_id: int, *, actor: Actor) -> GlueVersion:
    """Return a version of a job the actor may see."""
    version = glue.find_version(session, version_id)
    if version is None:
        raise NotFound(MISSING_VERSION)
    try:
        job_list.get_job(session, version.job_id, actor=actor)
    except NotVisible as exc:
        raise NotVisible(MISSING_VERSION, target=exc.target) from exc
    except NotFound as exc:
        raise NotFound(MISSING_VERSION) from exc
    return version


def save_source(
    session: Session,
    job_id: int,
    source: str,
    remark: str | None,
    *,
    actor: Actor,
    now_ms: Millis,
    loaded: str = "",
) -> int:
    """Save ``source`` as the job's code and as a new version; return its id. The newest 30 are kept.

    ``loaded``: fingerprint of the code that was edited; raises ChangedMeanwhile if the job has another.
    """
    job = next(iter(locks.lock_jobs(session, [job_id])), None)
    if job is None:
        raise NotFound(job_list.MISSING)
    row = version_row(job, source, remark, actor=actor, now_ms=now_ms)
    require_unchanged(loaded, job.glue_source or "")
    return save_versions(session, [row], actor=actor, now_ms=now_ms)[0]


def version_row(job: Job, source: str, remark: str | None, *, actor: Actor, now_ms: Millis) -> dict[str, Any]:
    """Return the row of a new version; raises PermissionDenied, Conflict for a BEAN job, or InvalidInput."""
    require_right(actor, job.job_group, Right.GLUE, missing=job_list.MISSING)
    _require_glue(job)
    columns = check_version(job, source, remark)
    # Executors compare the time of a version in whole seconds, so no two may share one.
    stamp_ms = max(now_ms, (job.glue_updatetime or 0) + SECOND_MS)
    return {
        "job_id": job.id,
        "glue_type": job.glue_type,
        **columns,
        "add_time": stamp_ms,
        "update_time": stamp_ms,
        "author": actor.username[:64],
    }


def check_version(job: Job, source: str, remark: str | None) -> dict[str, str]:
    """Return source and remark as they are stored; raises InvalidInput with all errors."""
    errors, columns = InputErrors(), dict[str, str]()
    with errors:
        columns["glue_remark"] = _remark(remark)
    with errors:
        columns["glue_source"] = clean_source(job.glue_type, source)
    errors.raise_all()
    return columns


def save_versions(
    session: Session, rows: Sequence[dict[str, Any]], *, actor: Actor, now_ms: Millis
) -> list[int]:
    """Save rows of ``version_row`` as versions and as their jobs' code; return the ids of the versions.

    The code of a new job becomes a version before it is replaced. The caller holds the jobs' locks.
    """
    first = _first_versions(session, [row["job_id"] for row in rows])
    columns = [
        {
            "id": row["job_id"],
            "glue_source": row["glue_source"],
            "glue_remark": row["glue_remark"],
            "glue_updatetime": row["update_time"],
            "update_time": now_ms,
        }
        for row in rows
    ]
    bulk.update_many(session, Job, columns)
    ids = bulk.insert_with_ids(session, GlueVersion, [*first, *rows])[len(first) :]
    for job_id in glue.find_with_more(session, [row["job_id"] for row in rows], versions=VERSIONS_MAX):
        glue.delete_older(session, job_id, keep=VERSIONS_MAX)
    entries = [
        audit.Entry("glue.save", ("job", row["job_id"]), _audit_fields(version_id, row))
        for version_id, row in zip(ids, rows, strict=True)
    ]
    audit.record_many(session, entries, actor=actor, now_ms=now_ms)
    return ids


def _first_versions(session: Session, job_ids: Collection[int]) -> list[dict[str, Any]]:
    """Return the rows of first versions, as in ``version_row``; who wrote the first code is not known."""
    return [
        {
            "job_id": job.job_id,
            "glue_type": job.glue_type,
            "glue_remark": job.glue_remark or FIRST_REMARK,
            "glue_source": job.glue_source,
            "add_time": job.glue_updatetime,
            "update_time": job.glue_updatetime,
            "author": "",
        }
        for job in glue.find_unsaved(session, job_ids)
    ]


def _audit_fields(version_id: int, row: Mapping[str, Any]) -> dict[str, Any]:
    source = row["glue_source"]
    return {
        "version": version_id,
        "remark": row["glue_remark"],
        "characters": len(source),
        "sha256": sha256(source.encode()).hexdigest(),
    }


def restore_version(
    session: Session, version_id: int, *, actor: Actor, now_ms: Millis, remark: str | None = None
) -> int:
    """Save an old version as a new one; return its id."""
    version = get_version(session, version_id, actor=actor)
    remark = remark or f"restored: {version.glue_remark}"[:REMARK_MAX]
    return save_source(session, version.job_id, version.glue_source or "", remark, actor=actor, now_ms=now_ms)


def _require_glue(job: Job) -> None:
    if job.glue_type == GlueType.BEAN:
        raise Conflict(N_("This job is not a GLUE job"))


def _remark(remark: str | None) -> str:
    if remark is None:
        raise InvalidInput("glueRemark", N_("Enter a remark"))
    if not REMARK_MIN <= len(remark) <= REMARK_MAX:
        raise InvalidInput(
            "glueRemark",
            N_("The remark must have %(low)s to %(high)s characters", low=REMARK_MIN, high=REMARK_MAX),
        )
    return limited_text("glueRemark", remark, REMARK_MAX)
