"""Job rules: checks before a job is stored.

Source of the rules and their order: XXL-JOB 2.4.1 XxlJobServiceImpl (docs/reference/console.md, section 8).
Stricter than the source where a value would overflow its column or has no meaning. Every error names the
field by its wire name; scripts get the first one, forms all of them.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from app.clock import LATEST_MS, Millis
from app.domain.access.permissions import Actor, Right
from app.domain.alarms.mail_addresses import check_mails, mails_of
from app.domain.calendars.day_rule import CALENDAR
from app.domain.calendars.rule_book import RuleBook
from app.domain.calendars.rules import check_rule
from app.domain.enums import GlueType, ScheduleType
from app.domain.jobs.beside_java import check_readable_by_java
from app.domain.jobs.children import FIELD as CHILDREN
from app.domain.jobs.children import child_ids_text, not_found, parse_child_ids
from app.domain.jobs.fields import FIELD_OF, SOURCE_MAX, JobDraft, plain_fields
from app.domain.jobs.job_field import JobField, Kind
from app.domain.jobs.misfires import check_misfire
from app.domain.jobs.plain_values import checked_choice, checked_number
from app.domain.jobs.structures import read_structure, structure_column
from app.domain.jobs.tags import check_tags
from app.domain.limits.rules import EnteredLimits, check_limits
from app.domain.promises.rules import check_escalation, check_promises
from app.domain.rounds.runs_after import parse_runs_after
from app.domain.schedules.schedule import MAX_CONF_LENGTH, Schedule, check_schedule
from app.domain.text.input_errors import InputErrors
from app.domain.text.limits import limited_text
from app.domain.text.texts import N_
from app.errors import DeniedValue, ForeignValue, InvalidInput, PermissionDenied
from app.models.base import zone_name
from app.models.job import Job
from app.services.jobs.lookup import JobLookup
from app.services.rounds.rules import check_predecessors, links_of, path_text
from app.store.calendars import current_book

__all__ = ["JobDraft"]

REMARK_MAX = FIELD_OF["glue_remark"].max_length
ESCALATION = FIELD_OF["escalation"]
CHILDREN_MAX = FIELD_OF["child_jobid"].max_length
NO_GROUP = N_("Choose an executor group")
CHILD_DENIED = N_("You have no permission to run one of these child jobs")
#: columns that are not audited
NOT_AUDITED = frozenset({"glue_source", "update_time"})


def schedule_of(
    job: Job | JobDraft, config_zone: str, book: RuleBook | None = None, *, job_id: int = 0
) -> Schedule:
    """Return a job's schedule, in ``config_zone`` if it has no zone; raises InvalidInput.

    ``book``: calendars and blackouts to go by; None: those of this process. ``job_id``: of a draft of a job.
    """
    book, job_id = book or current_book.current(), (job_id if isinstance(job, JobDraft) else job.id) or 0
    calendar = job.calendar if job.calendar != FIELD_OF[CALENDAR].default else ""
    return Schedule(
        type=ScheduleType(checked_choice(FIELD_OF["schedule_type"], job.schedule_type)),
        conf=(job.schedule_conf or "").strip(),
        time_zone=job.time_zone or config_zone,
        not_before_ms=job.not_before_ms,
        not_after_ms=job.not_after_ms,
        calendar=calendar or "",
        rules=book.of_job(job_id, job.job_group, calendar),
    )


def check_draft(
    lookup: JobLookup,
    draft: JobDraft,
    *,
    actor: Actor,
    now_ms: Millis,
    job: Job | None = None,
    exempt: Collection[str] = (),
) -> dict[str, object]:
    """Return the columns of a job as they are stored; raises InvalidInput with all errors.

    ``job``: the one to change; its run mode and source stay, and it must not become its own descendant.
    ``exempt``: attributes whose values are restored unchecked.
    """
    errors = InputErrors(draft.unreadable)
    columns: dict[str, object] = {"job_group": draft.job_group}
    with errors:
        if job is None:
            _check_group(lookup, draft.job_group, actor)
    columns |= _plain_columns(draft, Kind.TEXT, errors, job, exempt)
    columns["limit_key"] = columns.get("limit_key") or None  # as in a table that was adopted
    with errors:
        if "alarm_email" not in exempt:
            check_mails(draft.alarm_email, current=mails_of(job.alarm_email) if job is not None else ())
    with errors:
        columns |= _schedule_columns(draft)
        if CALENDAR not in exempt:
            _check_calendar(lookup, draft, now_ms)
    with errors:
        _check_filling(lookup, draft, exempt)
    if job is None:
        columns |= _code_columns(draft, errors)
    with errors:
        if "executor_handler" not in exempt:
            _check_handler(draft, job)
    for kind in (Kind.CHOICE, Kind.NUMBER, Kind.BOOLEAN, Kind.STRUCTURE):
        columns |= _plain_columns(draft, kind, errors, exempt=exempt)
    _check_structures(lookup, draft, job, errors, exempt)
    with errors:
        columns["child_jobid"] = child_ids_text(_check_children(lookup, draft, actor, job))
    with errors:
        if "runs_after" not in exempt:
            check_predecessors(lookup, draft, actor, job)
    with errors:
        check_tags(draft.tags or ())
    if job is not None:
        with errors:
            check_move(lookup, job, draft.job_group, actor)
    errors.raise_all()
    return columns


def _check_filling(lookup: JobLookup, draft: JobDraft, exempt: Collection[str]) -> None:
    if not draft.fill_parameter:
        return
    if draft.readable_by_java:
        raise InvalidInput(
            "fill_parameter",
            N_(
                "A Java admin on the same database would send placeholders as they are"
                " (XXL_JOB_SHARED_WITH_JAVA)"
            ),
        )
    if "executor_param" not in exempt:
        lookup.check_parameter(draft.executor_param, draft.job_group, _predecessors(lookup, draft))


def _predecessors(lookup: JobLookup, draft: JobDraft) -> set[str]:
    """Return the names of the jobs that a job runs after in its placeholders."""
    runs_after = parse_runs_after(draft.runs_after)
    job_ids = runs_after.jobs if runs_after is not None else ()
    return {*map(str, job_ids), *lookup.keys_of(job_ids).values()}


def _check_structures(
    lookup: JobLookup, draft: JobDraft, job: Job | None, errors: InputErrors, exempt: Collection[str]
) -> None:
    with errors:
        if "misfire_strategy" not in exempt:
            check_misfire(draft)
    with errors:
        check_promises(draft.promises, draft.schedule_type)
    with errors:
        if "limits" not in exempt:
            check_limits(_limits_of(draft), lookup.find_limits)
    with errors:
        if job is None or read_structure(ESCALATION, draft.escalation) != read_structure(
            ESCALATION, job.escalation
        ):
            check_escalation(draft.escalation, lookup.has_channel)


def _limits_of(draft: JobDraft) -> EnteredLimits:
    return EnteredLimits(*(getattr(draft, name) for name in ("job_group", *EnteredLimits._fields[1:])))


def _check_handler(draft: JobDraft, job: Job | None) -> None:
    glue_type = job.glue_type if job is not None else draft.glue_type
    if glue_type == GlueType.BEAN and not draft.executor_handler.strip():
        raise InvalidInput("executorHandler", N_("Enter the JobHandler"))


def check_move(lookup: JobLookup, job: Job, group_id: int, actor: Actor) -> None:
    """Check that the actor may move the job to the group; a GLUE job needs the GLUE right on both.

    Without it on the old group, the actor could not read the code that the new group would show.
    """
    _check_group(lookup, group_id, actor)
    if group_id == job.job_group or job.glue_type == GlueType.BEAN:
        return
    if not all(actor.may(own_group_id, Right.GLUE) for own_group_id in (job.job_group, group_id)):
        raise PermissionDenied(N_("permission denied"))


def _check_group(lookup: JobLookup, group_id: int, actor: Actor) -> None:
    """Check that the actor may put jobs into the group; a group the actor cannot see counts as missing."""
    if not lookup.has_group(group_id):
        raise InvalidInput("jobGroup", NO_GROUP)
    if not actor.may(group_id, Right.VIEW):
        raise ForeignValue("jobGroup", NO_GROUP)
    if not actor.may(group_id, Right.EDIT):
        raise PermissionDenied(N_("permission denied"))


def _plain_columns(
    draft: JobDraft,
    kind: Kind,
    errors: InputErrors,
    job: Job | None = None,
    exempt: Collection[str] = (),
) -> dict[str, object]:
    """Return the columns of the plain fields of one kind, valid or exempt."""
    checks: dict[Kind, Callable[[JobField, Any], object]] = {
        Kind.TEXT: _text,
        Kind.CHOICE: checked_choice,
        Kind.NUMBER: checked_number,
        Kind.BOOLEAN: _flag,
        Kind.STRUCTURE: structure_column,
    }
    columns: dict[str, object] = {}
    for column in plain_fields(kind):
        value = getattr(draft, column.attribute)
        with errors:
            is_exempt = column.attribute in exempt or (job and _is_long_already(column, value, job))
            columns[column.attribute] = value if is_exempt else checks[kind](column, value)
    return columns


def _is_long_already(field: JobField, value: Any, job: Job) -> bool:
    """Whether a text is too long and that of the job: XXL-JOB 3.4 has longer parameters."""
    is_long = field.kind is Kind.TEXT and len(value) > field.max_length
    return is_long and value == getattr(job, field.attribute)


def _text(field: JobField, value: str) -> str:
    text = value if field.keeps_blanks else value.strip()
    if field.is_required and not text:
        raise InvalidInput(field.error_name, field.missing)
    return limited_text(field.error_name, text, field.max_length)


def _flag(_field: JobField, value: int) -> int:
    return int(bool(value))


def _schedule_columns(draft: JobDraft) -> dict[str, object]:
    schedule = schedule_of(draft, zone_name(), RuleBook())
    if not 0 <= schedule.not_before_ms <= LATEST_MS or not 0 <= schedule.not_after_ms <= LATEST_MS:
        raise InvalidInput("notBefore", N_("The time is invalid"))
    check_schedule(schedule)
    limited_text("scheduleConf", schedule.conf, MAX_CONF_LENGTH)  # of a NONE anything is accepted
    if draft.readable_by_java:
        check_readable_by_java(draft, schedule)
    return {
        "schedule_type": schedule.type.value,
        "schedule_conf": schedule.conf,
        "time_zone": draft.time_zone,
        "not_before_ms": draft.not_before_ms,
        "not_after_ms": draft.not_after_ms,
    }


def _check_calendar(lookup: JobLookup, draft: JobDraft, now_ms: Millis) -> None:
    schedule = schedule_of(draft, zone_name(), RuleBook())
    check_rule(schedule, lookup.calendars, now_ms=now_ms, readable_by_java=draft.readable_by_java)


def _code_columns(draft: JobDraft, errors: InputErrors) -> dict[str, object]:
    columns: dict[str, object] = {}
    with errors:
        columns["glue_type"] = checked_choice(FIELD_OF["glue_type"], draft.glue_type)
    with errors:
        columns["glue_source"] = clean_source(draft.glue_type, draft.glue_source)
    with errors:
        columns["glue_remark"] = limited_text("glueRemark", draft.glue_remark, REMARK_MAX)
    return columns


def clean_source(glue_type: str, source: str) -> str:
    """Return a source as it is stored (shell scripts without carriage returns); raises InvalidInput."""
    if glue_type == GlueType.GLUE_SHELL:
        source = source.replace("\r", "")
    return limited_text("glueSource", source, SOURCE_MAX)


def _check_children(lookup: JobLookup, draft: JobDraft, actor: Actor, job: Job | None) -> list[int]:
    """Return the child ids. The actor must be allowed to see and to run the new ones; the others stay."""
    ids = parse_child_ids(draft.child_jobid)
    # an import uses negative ids for jobs that have none yet
    limited_text(CHILDREN, child_ids_text([abs(job_id) for job_id in ids]), CHILDREN_MAX)
    groups, errors = lookup.groups_of(ids), InputErrors()
    for job_id in ids:
        with errors:
            _check_child(lookup, job_id, groups.get(job_id), draft, actor, job)
    errors.raise_all()
    return ids


def _check_child(
    lookup: JobLookup, job_id: int, group_id: int | None, draft: JobDraft, actor: Actor, job: Job | None
) -> None:
    if group_id is None:
        raise not_found(job_id)
    if job is not None and job_id == job.id:
        raise InvalidInput(CHILDREN, N_("A job cannot be its own child (%(id)s)", id=job_id))
    if job is not None and job_id in job.child_ids:
        return
    if not actor.may(group_id, Right.VIEW):
        raise ForeignValue(CHILDREN, not_found(job_id).message)
    links = links_of(draft, job)
    path = lookup.find_path(job_id, links.job_id, links)
    if path:
        names = path_text(lookup, [links.job_id, *path], draft, links.job_id)
        raise InvalidInput(
            CHILDREN, N_("Child job %(id)s leads back to this job: %(jobs)s", id=job_id, jobs=names)
        )
    if not actor.may(group_id, Right.OPERATE):
        raise DeniedValue(N_("permission denied"), field=CHILDREN, reason=CHILD_DENIED)


def audit_fields(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that are audited."""
    return {name: value for name, value in columns.items() if name not in NOT_AUDITED}
