"""The original's JSON endpoints of jobs and of their code. docs/reference/console.md, sections 7 to 9."""

from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from flask import Blueprint, Response
from sqlalchemy.orm import Session

from app.clock import LATEST_MS, Millis, now_ms
from app.console.scripting.rows import job_row
from app.console.web import refusals
from app.console.web.access import Access
from app.console.web.confirmation import require_confirmed_browser
from app.console.web.current import current_actor, settings, translate
from app.console.web.envelope import (
    FAIL,
    bean_int,
    envelope,
    int_parameter,
    page_range,
    table,
    text_or_empty,
    text_parameter,
)
from app.database.flask_db import read_scope, session_scope, transact
from app.domain.access.permissions import Right
from app.domain.enums import GlueType, ParamForm, ScheduleType, TriggerStatus
from app.domain.jobs.children import FIELD as CHILDREN
from app.domain.jobs.fields import JOB_FIELDS, JobDraft
from app.domain.jobs.job_field import JobField, Kind
from app.domain.schedules.cron.fields import InvalidCronExpression
from app.domain.schedules.schedule import Schedule, check_schedule, next_times
from app.domain.text.texts import N_
from app.errors import InvalidInput, NotFound
from app.models.job import Job
from app.services.jobs import changes, glue, jobs
from app.services.jobs.jobs import JobFilter

blueprint = Blueprint("scripting_jobs", __name__)
POLICY = {
    "page_list": Access.VIEW,
    "add": Access.EDIT,
    "update": Access.EDIT,
    "remove": Access.EDIT,
    "start": Access.OPERATE,
    "stop": Access.OPERATE,
    "trigger": Access.OPERATE,
    "next_trigger_time": Access.LOGIN,
    "save_code": Access.GLUE,
}

TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


@blueprint.route("/jobinfo/pageList", methods=["GET", "POST"])
def page_list() -> Response:
    """List jobs."""
    job_filter = JobFilter(
        group_id=int_parameter("jobGroup"),
        status=int_parameter("triggerStatus"),
        description=text_or_empty("jobDesc"),
        handler=text_or_empty("executorHandler"),
        author=text_or_empty("author"),
    )
    start, length = page_range()
    actor = current_actor()
    with read_scope() as session:
        page = jobs.list_jobs(session, job_filter, actor=actor, start=start, length=length)
        return table(page, [job_row(job, actor) for job in page.rows])


@blueprint.post("/jobinfo/add")
def add() -> Response:
    """Add a job; ``triggerStatus=1`` starts it, which auto-registration starters use."""
    draft = _draft(None)
    if draft.glue_type != GlueType.BEAN and draft.glue_source.strip():
        require_confirmed_browser()
    start = bean_int("triggerStatus") == TriggerStatus.RUNNING and draft.schedule_type != ScheduleType.NONE
    with session_scope() as session:
        job_id = jobs.add_job(session, draft, actor=current_actor(), clock=now_ms, start=start)
    return envelope(str(job_id))


@blueprint.post("/jobinfo/update")
def update() -> Response:
    """Change a job; fields unknown to the original keep their values."""
    job_id = bean_int("id")
    transact(partial(_update, job_id=job_id))
    return envelope()


@blueprint.post("/jobinfo/remove")
def remove() -> Response:
    """Delete a job; succeeds if there is none."""
    job_id, actor = int_parameter("id"), current_actor()
    try:
        jobs.clear_before_removal(job_id, actor=actor, clock=now_ms)
        transact(partial(jobs.remove_job, job_id=job_id, actor=actor, now_ms=now_ms()))
    except NotFound as exc:
        refusals.note_error(exc)
    return envelope()


@blueprint.post("/jobinfo/start")
def start() -> Response:
    """Switch a schedule on."""
    with session_scope() as session:
        jobs.start_job(session, int_parameter("id"), actor=current_actor(), clock=now_ms)
    return envelope()


@blueprint.post("/jobinfo/stop")
def stop() -> Response:
    """Switch a schedule off."""
    with session_scope() as session:
        jobs.stop_job(session, int_parameter("id"), actor=current_actor(), clock=now_ms)
    return envelope()


@blueprint.post("/jobinfo/trigger")
def trigger() -> Response:
    """Run a job once. As in the original, a missing parameter is an empty one, not the job's own."""
    with session_scope() as session:
        jobs.trigger_job(
            session,
            int_parameter("id"),
            executor_param=text_or_empty("executorParam"),
            address_list=text_or_empty("addressList"),
            actor=current_actor(),
            now_ms=now_ms(),
            param_form=ParamForm.TEXT,
        )
    return envelope()


@blueprint.route("/jobinfo/nextTriggerTime", methods=["GET", "POST"])
def next_trigger_time() -> Response:
    """Preview a schedule: up to five local times."""
    name, conf = text_or_empty("scheduleType"), text_or_empty("scheduleConf").strip()
    zone = settings().time_zone
    if name not in list(ScheduleType) or name == ScheduleType.NONE:
        return envelope([])
    schedule = Schedule(type=ScheduleType(name), conf=conf, time_zone=zone)
    try:
        check_schedule(schedule)
        times = next_times(schedule, now_ms())
    except (InvalidInput, InvalidCronExpression) as exc:
        return envelope(
            code=FAIL, msg=translate(N_("Schedule type is invalid: %(reason)s", reason=exc.message))
        )
    return envelope([_local(time_ms, zone) for time_ms in times])


@blueprint.post("/jobcode/save")
def save_code() -> Response:
    """Save the source of a GLUE job as a new version; a browser must have confirmed its login."""
    require_confirmed_browser()
    job_id, source, remark = int_parameter("id"), text_or_empty("glueSource"), text_parameter("glueRemark")
    with session_scope() as session:
        glue.save_source(session, job_id, source, remark, actor=current_actor(), now_ms=now_ms())
    return envelope()


def _update(session: Session, *, job_id: int) -> None:
    changes.hold_job(session, job_id, gets_children=bool(text_or_empty(CHILDREN).strip()))
    job = jobs.get_job(session, job_id, actor=current_actor(), right=Right.EDIT)
    jobs.update_job(session, job_id, _draft(job), actor=current_actor(), clock=now_ms)


def _draft(job: Job | None) -> JobDraft:
    """Return the draft of the posted bean: missing texts are empty, missing numbers 0."""
    values = {field.attribute: _posted_value(field, job) for field in JOB_FIELDS}
    return JobDraft(**values, readable_by_java=settings().shared_with_java)


def _posted_value(field: JobField, job: Job | None) -> Any:
    """Return a posted value; a field unknown to the original keeps its value if the script omits it."""
    is_number = field.kind is Kind.NUMBER
    if field.is_original:
        return bean_int(field.wire_name) if is_number else text_or_empty(field.wire_name)
    current = getattr(job, field.attribute) if job is not None else field.default
    if current is None and field.kind is Kind.TEXT:
        current = ""
    if not field.wire_name:
        return current
    if is_number:
        return int_parameter(field.wire_name, current)
    text = text_parameter(field.wire_name)
    return current if text is None else text


def _local(time_ms: Millis, zone: str) -> str:
    return datetime.fromtimestamp(min(time_ms, LATEST_MS) // 1000, ZoneInfo(zone)).strftime(TIME_FORMAT)
