"""Sources of GLUE jobs and their versions. Source of the rules: XXL-JOB 2.4.1 (spec/console.md, 9)."""

from hashlib import sha256

from sqlalchemy.orm import Session

from app.clock import SECOND_MS, Millis
from app.domain.enums import GlueType
from app.domain.permissions import Actor, Right, require_right
from app.domain.texts import N_
from app.errors import Conflict, InvalidInput, NotFound
from app.models.glue import GlueVersion
from app.models.job import Job
from app.services import audit, jobs
from app.services.job_rules import clean_source, limited_text
from app.store import glue, locks

MISSING_VERSION = N_("Version id is invalid")
REMARK_MIN, REMARK_MAX = 4, 100
#: versions kept of a job
VERSIONS_MAX = 30


def get_glue_job(session: Session, job_id: int, *, actor: Actor, right: Right = Right.VIEW) -> Job:
    """Return a job that runs code of its own; Conflict where it runs a handler of the executor."""
    job = jobs.get_job(session, job_id, actor=actor, right=right)
    _require_glue(job)
    return job


def list_versions(session: Session, job_id: int, *, actor: Actor) -> list[GlueVersion]:
    """Return the versions of a job, newest first."""
    jobs.get_job(session, job_id, actor=actor)
    return glue.list_versions(session, job_id)


def get_version(session: Session, version_id: int, *, actor: Actor) -> GlueVersion:
    """Return a version of a job the actor may see."""
    version = glue.find_version(session, version_id)
    if version is None:
        raise NotFound(MISSING_VERSION)
    try:
        jobs.get_job(session, version.job_id, actor=actor)
    except NotFound as exc:
        raise NotFound(MISSING_VERSION) from exc
    return version


def save_source(session: Session, job_id: int, source: str, remark: str | None, *, actor: Actor, now_ms: Millis) -> int:
    """Make ``source`` the job's code and a version of its own; return the version's id. The newest 30 are kept."""
    job = next(iter(locks.lock_jobs(session, [job_id])), None)
    if job is None:
        raise NotFound(jobs.MISSING)
    require_right(actor, job.job_group, Right.GLUE, missing=jobs.MISSING)
    _require_glue(job)
    remark = _remark(remark)
    source = clean_source(job.glue_type, source)
    stamp_ms = _next_stamp(job, now_ms)
    job.glue_source, job.glue_remark, job.glue_updatetime, job.update_time = source, remark, stamp_ms, now_ms
    version = GlueVersion(
        job_id=job.id,
        glue_type=job.glue_type,
        glue_source=source,
        glue_remark=remark,
        add_time=stamp_ms,
        update_time=stamp_ms,
        author=actor.username[:64],
    )
    session.add(version)
    session.flush()
    glue.delete_older(session, job.id, keep=VERSIONS_MAX)
    told = {"version": version.id, "remark": remark, "characters": len(source), "sha256": sha256(source.encode()).hexdigest()}
    audit.record(session, "glue.save", actor=actor, now_ms=now_ms, target=("job", job.id), changes=told)
    return version.id


def restore_version(session: Session, version_id: int, *, actor: Actor, now_ms: Millis, remark: str | None = None) -> int:
    """Make an old version the job's code again, as a new version; return its id."""
    version = get_version(session, version_id, actor=actor)
    said = remark or f"restored: {version.glue_remark}"[:REMARK_MAX]
    return save_source(session, version.job_id, version.glue_source or "", said, actor=actor, now_ms=now_ms)


def _require_glue(job: Job) -> None:
    if job.glue_type == GlueType.BEAN:
        raise Conflict(N_("The job is no GLUE job"))


def _remark(remark: str | None) -> str:
    if remark is None:
        raise InvalidInput("glueRemark", N_("Enter a remark"))
    if not REMARK_MIN <= len(remark) <= REMARK_MAX:
        raise InvalidInput("glueRemark", N_("The remark must have %(low)s to %(high)s characters", low=REMARK_MIN, high=REMARK_MAX))
    return limited_text("glueRemark", remark, REMARK_MAX)


def _next_stamp(job: Job, now_ms: Millis) -> Millis:
    """Executors tell versions apart by this time in whole seconds: two saves within a second must differ."""
    return max(now_ms, (job.glue_updatetime or 0) + SECOND_MS)
