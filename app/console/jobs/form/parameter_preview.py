"""Preview of a parameter with placeholders, in the forms of a job and of a run: what runs would get."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from app.clock import Millis, now_ms
from app.console.jobs.form.draft import schedule_of
from app.console.jobs.form.forms import JobForm, RunForm
from app.console.jobs.form.parameters import parameters_of, sent_parameter
from app.console.jobs.form.run_times import requested_logical, requested_start
from app.console.runs.trace import run_reason
from app.console.ui.lists.listing import whole_number
from app.console.ui.lists.ranges import write_local
from app.console.web.access import Access
from app.console.web.current import current_actor, settings, translate
from app.database.flask_db import read_scope
from app.domain.access.permissions import Right
from app.domain.enums import GlueType, RouteStrategy
from app.domain.runs.logical_times import chosen_logical, logical_of
from app.domain.schedules.schedule import zone
from app.domain.text.input_errors import InputErrors
from app.errors import InvalidInput
from app.models.base import zone_name
from app.models.job import Job
from app.models.log import JobLog
from app.services.jobs import jobs, placeholders
from app.services.jobs.placeholders import (
    PreviewedJob,
    PreviewedRun,
    next_logical_times,
    usable_placeholders,
)
from app.services.runs import logs
from app.services.runs.sent_parameters import sent_text

blueprint = Blueprint("parameter_previews", __name__, url_prefix="/jobinfo")
POLICY = {
    "of_job": Access.LOGIN,
    "of_run": Access.OPERATE,
}


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """What one run would get."""

    logical_ms: Millis
    #: local time in the zone of the job
    local: str
    #: None: nothing, because of the problem
    text: str | None
    problem: str


@dataclass(frozen=True, slots=True)
class ParameterPreview:
    """What runs would get, or why they would get nothing."""

    #: of the logical times
    zone: str
    runs: tuple[PreviewRow, ...] = ()
    #: what is wrong in the parameter
    error: str = ""
    #: placeholders of variables and secrets that it may have
    names: tuple[str, ...] = ()

    @property
    def has_gaps(self) -> bool:
        """Whether something is filled in only when a run is sent."""
        return any("\u2039" in (run.text or "") for run in self.runs)


@blueprint.post("/parameter-preview")
def of_job() -> ResponseReturnValue:
    """Return the preview of the job form while it is edited; ``?jobId=`` is the job that is edited."""
    form = JobForm(request.form)
    try:
        form["executor_param"].data = _compose(
            form.job_group.data or 0,
            form["executor_handler"].data or "",
            form.glue_type.data or GlueType.BEAN,
            form["executor_param"].data or "",
        )
    except InvalidInput:
        return ""  # The fields of the parameter are not complete.
    return _part(preview_of_job(form, whole_number("jobId", 0) or None))


@blueprint.post("/<int(max=2147483647):job_id>/parameter-preview")
def of_run(job_id: int) -> ResponseReturnValue:
    """Return the preview of a run by hand while its form is edited."""
    form = RunForm(request.form)
    with read_scope() as session:
        job = jobs.get_job(session, job_id, actor=current_actor(), right=Right.OPERATE)
    try:
        form.executor_param.data = _compose(
            job.job_group, job.executor_handler or "", job.glue_type, form.executor_param.data or ""
        )
    except InvalidInput:
        return ""
    return _part(preview_of_run(job, form, run_to_repeat(job)))


def run_to_repeat(job: Job) -> JobLog | None:
    """Return the run of the job that is run again, ``log`` of the request; None without one."""
    log_id = whole_number("log", 0)
    if not log_id:
        return None
    with read_scope() as session:
        log = logs.get_log(session, log_id, actor=current_actor())
    return log if log.job_id == job.id else None


def preview_of_job(form: JobForm, job_id: int | None) -> ParameterPreview | None:
    """Return the preview of the parameter in the job form; None if it is sent as it is."""
    group_id = form.job_group.data or 0
    if not form["fill_parameter"].data or not current_actor().may(group_id, Right.EDIT):
        return None
    schedule = schedule_of(form, settings().time_zone, InputErrors())
    job = PreviewedJob(
        group_id,
        job_id,
        form["job_desc"].data or "",
        schedule.time_zone,
        form["executor_route_strategy"].data == RouteStrategy.SHARDING_BROADCAST,
    )
    times = next_logical_times(schedule, now_ms=now_ms())
    return _preview(job, form["executor_param"].data or "", times, with_secrets=True)


def preview_of_run(job: Job, form: RunForm, log: JobLog | None = None) -> ParameterPreview | None:
    """Return the preview of a run by hand; None if its parameter is sent as it is, or its time is wrong.

    ``log``: the run that is run again; with the same template and logical time its text is sent again.
    """
    if not job.fill_parameter:
        return None
    at_ms = now_ms()
    try:
        logical_ms = chosen_logical(
            requested_logical(form), None, due_ms=requested_start(form) or at_ms, now_ms=at_ms
        )
    except InvalidInput:
        return None
    text = form.executor_param.data or ""
    preview_job = PreviewedJob.of(job)._replace(has_no_parent=log is None)
    if log is not None and (text, logical_ms) == (log.executor_param, logical_of(log)):
        log_text = sent_text(log)
        if log_text is not None:
            return _with_times(preview_job, [PreviewedRun(logical_ms, log_text, None)])
    is_own = text.replace("\r\n", "\n") == (job.executor_param or "").replace("\r\n", "\n")
    return _preview(preview_job, text, [logical_ms], with_secrets=is_own)


def _preview(
    job: PreviewedJob, text: str, logical_times: Iterable[Millis], *, with_secrets: bool
) -> ParameterPreview:
    with read_scope() as session:
        names = tuple(usable_placeholders(session, job.group_id))
        try:
            runs = placeholders.preview(session, text, job, logical_times, with_secrets=with_secrets)
        except InvalidInput as exc:
            return ParameterPreview(job.zone, error=translate(exc.message), names=names)
    return _with_times(job, runs, names)


def _with_times(
    job: PreviewedJob, runs: Sequence[PreviewedRun], names: tuple[str, ...] = ()
) -> ParameterPreview:
    try:
        local = zone(job.zone)
    except InvalidInput:  # It is shown at its own field.
        local = zone(zone_name())
    rows = [
        PreviewRow(
            run.logical_ms, write_local(run.logical_ms, local), run.text, run_reason(run.problem or "")
        )
        for run in runs
    ]
    return ParameterPreview(local.key, tuple(rows), names=names)


def _compose(group_id: int, handler: str, glue_type: str, text: str) -> str:
    """Return the parameter that was sent, as fields or as text; raises InvalidInput."""
    parameter = sent_parameter(parameters_of(group_id, handler, glue_type, text))
    return text if parameter is None else parameter


def _part(preview: ParameterPreview | None) -> str:
    return render_template("jobs/_parameter_preview.html", parameter_preview=preview)
