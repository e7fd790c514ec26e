"""API: jobs, their schedules and next times; what changes them is in ``job_changes``."""

from app.api.v1.cursors import cut, read_id_cursor
from app.api.v1.endpoint import Call, Resource
from app.api.v1.resources.jobs.schedules import times_out
from app.api.v1.schemas.base import Listed
from app.api.v1.schemas.jobs import (
    JobOut,
    JobQuery,
    LastRun,
    ManagedJob,
    NextTimes,
    NextTimesQuery,
    ParameterPreview,
    ParameterPreviewQuery,
    PreviewedRun,
)
from app.domain.enums import TriggerStatus
from app.domain.jobs.members import MEMBER_OF_ERROR, read_members
from app.domain.runs.logical_times import check_logical
from app.domain.runs.outcome import state_of
from app.models.base import zone_name
from app.services.jobs import job_list
from app.services.jobs.details import (
    JobDetails,
    details_of,
    planned_ms,
    upcoming,
    upcoming_fates,
    upcoming_logical,
)
from app.services.jobs.placeholders import preview_job
from app.store.jobs.filtering import JobFilter
from app.store.jobs.managed_objects import ManagedObject
from app.store.runs.recent import Run

resource = Resource("jobs", "Jobs, their schedules and next times.", MEMBER_OF_ERROR)
ANY_STATUS = -1


@resource.get("/jobs", answer=Listed[JobOut], query=JobQuery)
def list_jobs(call: Call) -> Listed[JobOut]:
    """List jobs, the newest first."""
    query: JobQuery = call.query
    job_filter = JobFilter(
        group_id=query.group_id or 0,
        status=ANY_STATUS if query.enabled is None else int(query.enabled),
        description=query.q,
        handler=query.handler,
        author=query.owner,
        tag=query.tag,
        app_name=query.app_name,
        schedule_type=query.schedule_type or "",
    )
    before_id = read_id_cursor(query.cursor) or 0
    rows = job_list.list_newest(
        call.session, job_filter, actor=call.actor, before_id=before_id, limit=query.limit + 1
    )
    page, next_cursor = cut(rows, query.limit, lambda job: (job.id,))
    details = details_of(call.session, page, actor=call.actor)
    return Listed[JobOut](items=[_job_out(job_details) for job_details in details], next_cursor=next_cursor)


@resource.get("/jobs/<int:job_id>", answer=JobOut, etag=True)
def get_job(call: Call, job_id: int) -> JobOut:
    """Return a job.

    Its ETag names the version of its members; next times and last run are not part of it.
    """
    return job_out_of(call, job_id)


@resource.get("/jobs/<int:job_id>/next-times", answer=NextTimes, query=NextTimesQuery)
def next_times(call: Call, job_id: int) -> NextTimes:
    """Return the next times of a job's schedule, or those it would have if it were switched on now."""
    job = job_list.get_job(call.session, job_id, actor=call.actor)
    count, at_ms = call.query.count, call.now_ms
    fates = upcoming_fates(job, count, now_ms=at_ms)
    return times_out(upcoming(job, count, now_ms=at_ms), job.time_zone or zone_name(), fates)


@resource.get("/jobs/<int:job_id>/parameter-preview", answer=ParameterPreview, query=ParameterPreviewQuery)
def preview_parameter(call: Call, job_id: int) -> ParameterPreview:
    """Return what the next runs of a job would get as their parameter; without a schedule, a run now.

    Secrets are named, as `‹secret NAME›`; so is what only the run itself will have, as `‹parent.result›`.
    """
    job = job_list.get_job(call.session, job_id, actor=call.actor)
    query: ParameterPreviewQuery = call.query
    times = upcoming_logical(job, query.count, now_ms=call.now_ms)
    if query.logical_time is not None:
        check_logical(query.logical_time, now_ms=call.now_ms)
        times = [query.logical_time]
    local = times_out(times, job.time_zone or zone_name())
    runs = preview_job(call.session, job, times)
    return ParameterPreview(
        fill_parameter=bool(job.fill_parameter),
        time_zone=local.time_zone,
        items=[
            PreviewedRun(logical_time=at.at, local=at.local, param=run.text, reason=run.problem or "")
            for at, run in zip(local.items, runs, strict=True)
        ],
    )


def job_out_of(call: Call, job_id: int) -> JobOut:
    """Return a job as this API answers it."""
    job = job_list.get_job(call.session, job_id, actor=call.actor)
    return _job_out(details_of(call.session, [job], actor=call.actor)[0])


def _job_out(details: JobDetails) -> JobOut:
    job, next_ms = details.job, planned_ms(details.job)
    return JobOut(
        id=job.id,
        **read_members(job, details.tags),
        enabled=job.trigger_status == TriggerStatus.RUNNING,
        next_times=[] if next_ms is None else [next_ms],
        last_run=_last_run(details.last_run) if details.last_run is not None else None,
        managed=_managed(details.managed) if details.managed is not None else None,
        created_at=job.add_time,
        updated_at=job.update_time,
    )


def _last_run(run: Run) -> LastRun:
    return LastRun(
        id=str(run.id),
        state=state_of(run.trigger_code, run.handle_code, run.killed),
        started_at=run.trigger_time,
        ended_at=run.handle_time,
        duration_ms=run.duration_ms,
    )


def _managed(job: ManagedObject) -> ManagedJob:
    return ManagedJob(
        key=job.key,
        source=job.source,
        members=list(job.fields),
        applied_at=job.applied_ms,
    )
