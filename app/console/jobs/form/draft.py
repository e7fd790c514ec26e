"""Job form and draft: fill the form from a job, and read a draft from it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

from werkzeug.datastructures import MultiDict

from app.clock import Millis
from app.console.jobs.form.forms import JobForm
from app.console.ui.forms.base_form import whole
from app.console.ui.forms.calendar_fields import calendar_json, calendar_values
from app.console.ui.forms.limit_fields import limit_values, limits_json
from app.console.ui.forms.promise_fields import escalation_json, promise_values, promises_json
from app.console.ui.forms.runs_after_fields import runs_after_json, runs_after_values
from app.console.ui.lists.ranges import read_local, write_local
from app.console.web.language import _
from app.domain.access.permissions import Actor, Right
from app.domain.enums import GlueType, ScheduleType
from app.domain.jobs.fields import PLAIN_FIELDS, JobDraft, plain_fields
from app.domain.jobs.glue_languages import GLUE_LANGUAGES
from app.domain.jobs.job_field import DIGITS_MAX, Kind
from app.domain.jobs.tags import split_tags, tags_text
from app.domain.schedules.schedule import Schedule, zone
from app.domain.text.input_errors import InputErrors
from app.domain.text.texts import N_
from app.errors import InvalidInput
from app.models.group import Group
from app.models.job import Job
from app.settings.config import Config
from app.store.calendars import current_book

#: fields whose inputs hold the stored text
TEXTS = (
    *(field.attribute for field in PLAIN_FIELDS if field.kind in (Kind.TEXT, Kind.CHOICE)),
    "child_jobid",
)
NUMBERS = plain_fields(Kind.NUMBER)
FLAGS = tuple(field.attribute for field in plain_fields(Kind.BOOLEAN))
#: inputs of the window
BOUNDS = ("not_before", "not_after")
#: inputs of the short form on the empty list
QUICK = ("job_group", "executor_handler", "job_desc")


def offer(form: JobForm, groups: list[Group]) -> None:
    """Fill the selects of the form."""
    form.offer([(group.id, f"{group.title} ({group.app_name})") for group in groups])


def form_of(
    job: Job,
    config_zone: str,
    tags: Sequence[str] = (),
    *,
    form_data: MultiDict[str, str] | None = None,
    fingerprint: str = "",
) -> JobForm:
    """Return the form of a job, with what was entered instead of its values."""
    local = _zone_of(job, config_zone)
    texts = {bound: write_local(getattr(job, f"{bound}_ms"), local) for bound in BOUNDS}
    # A box that an empty form does not name would be unticked.
    form = JobForm(form_data or None, data={**_values_of(job, tags), **texts, "loaded": fingerprint})
    form.bounds = {
        (bound, text, local.key): getattr(job, f"{bound}_ms") for bound, text in texts.items() if text
    }
    form.filled_from = job.id
    return form


def _values_of(job: Job, tags: Sequence[str]) -> dict[str, object]:
    """Return the form values of a job, apart from its window."""
    values: dict[str, object] = {name: getattr(job, name) or "" for name in TEXTS}
    values |= {number.attribute: str(getattr(job, number.attribute)) for number in NUMBERS}
    values |= {name: bool(getattr(job, name)) for name in FLAGS}
    values |= promise_values(job.promises, job.escalation) | limit_values(job.limits)
    values |= runs_after_values(job.runs_after) | calendar_values(job.calendar)
    conf = job.schedule_conf or ""
    fields = {
        ScheduleType.CRON: "cron",
        ScheduleType.FIX_RATE: "rate_s",
        ScheduleType.FIX_DELAY: "delay_s",
        ScheduleType.AT: "at",
    }
    values |= {name: conf for kind, name in fields.items() if kind == job.schedule_type}
    return values | {
        "job_group": job.job_group,
        "schedule_type": job.schedule_type,
        "time_zone": job.time_zone,
        "glue_type": job.glue_type,
        "tags": tags_text(tags),
    }


def _zone_of(job: Job, config_zone: str) -> ZoneInfo:
    """Return the zone of a job; the configured one if this host does not know it."""
    try:
        return zone(job.time_zone or config_zone)
    except InvalidInput:
        return zone(config_zone)


def new_values(group_id: int, author: str, handler: str = "") -> dict[str, object]:
    """Return the form values of a new job: the original's defaults, and no schedule if it names a handler."""
    return {
        "job_group": group_id,
        "author": author,
        "executor_handler": handler,
        "schedule_type": (ScheduleType.NONE if handler else ScheduleType.CRON).value,
        "glue_type": GlueType.BEAN.value,
        **{field.attribute: str(field.default) for field in PLAIN_FIELDS if field.default not in ("", 0)},
    }


def quick_form(inputs: Mapping[str, str], author: str) -> JobForm:
    """Return the form of a new job without a schedule, from the inputs of the short form."""
    values = {name: str(value) for name, value in new_values(0, author).items()} | {
        "schedule_type": ScheduleType.NONE.value
    }
    choices = [field for field in plain_fields(Kind.CHOICE) if not field.default]
    values |= {field.attribute: str(next(iter(field.choices))) for field in choices}
    return JobForm(MultiDict(values | {name: inputs.get(name, "") for name in QUICK}))


def draft_of(form: JobForm, config: Config) -> JobDraft:
    """Return the draft in the form, with the errors of malformed numbers and times."""
    errors = InputErrors()
    values: dict[str, Any] = {name: form[name].data or "" for name in TEXTS}
    values |= {name: int(bool(form[name].data)) for name in FLAGS}
    for field in NUMBERS:
        values[field.attribute] = field.default
        if not (form[field.attribute].data or "").strip():
            continue
        with errors:
            high = min(field.high, 10**DIGITS_MAX - 1)
            values[field.attribute] = whole(form[field.attribute], low=field.low, high=high)
    values["promises"], values["escalation"] = promises_json(form, errors), escalation_json(form, errors)
    values["limits"], values["runs_after"] = limits_json(form, errors), runs_after_json(form, errors)
    values["calendar"] = calendar_json(form)
    schedule = schedule_of(form, config.time_zone, errors)
    return JobDraft(
        job_group=form.job_group.data or 0,
        schedule_type=form.schedule_type.data or "",
        schedule_conf=schedule.conf,
        glue_type=form.glue_type.data or "",
        time_zone=form.time_zone.data or "",
        not_before_ms=schedule.not_before_ms,
        not_after_ms=schedule.not_after_ms,
        tags=tuple(split_tags(form.tags.data)) if form.tags.data is not None else None,
        readable_by_java=config.shared_with_java,
        unreadable=tuple(errors.errors),
        **values,
    )


def schedule_of(form: JobForm, config_zone: str, errors: InputErrors) -> Schedule:
    """Return the schedule in the form, without malformed times; unknown types are left to the service."""
    field = form.conf_field()
    name = form.time_zone.data or config_zone
    bounds = dict.fromkeys(BOUNDS, 0)
    with errors:
        local = zone(name)
        for bound in BOUNDS:
            with errors:
                bounds[bound] = _bound(form, bound, local)
    calendar = calendar_json(form)
    calendar = "" if calendar == "null" else calendar
    is_known = form.schedule_type.data in set(ScheduleType)
    return Schedule(
        type=ScheduleType(form.schedule_type.data) if is_known else ScheduleType.NONE,
        conf=(field.data or "").strip() if field is not None else "",
        time_zone=name,
        not_before_ms=bounds["not_before"],
        not_after_ms=bounds["not_after"],
        calendar=calendar,
        rules=current_book.current().of_job(form.filled_from or 0, form.job_group.data or 0, calendar),
    )


def _bound(form: JobForm, name: str, local: ZoneInfo) -> Millis:
    """Return a bound of the window: as stored if its text and zone are unchanged; raises InvalidInput."""
    text = (form[name].data or "").strip()
    stored_ms = form.bounds.get((name, text, local.key))
    if stored_ms is not None:
        return stored_ms
    at_ms = read_local(text, local) if text else 0
    if at_ms is None:
        raise InvalidInput(name, N_('"%(value)s" is not a time such as 2030-01-31 08:00:00', value=text[:40]))
    return at_ms


def with_template(draft: JobDraft, actor: Actor) -> JobDraft:
    """Return a new job with the template of its language, if it has one and its author may write code."""
    language = GLUE_LANGUAGES.get(draft.glue_type)
    if language is None or not actor.may(draft.job_group, Right.GLUE):
        return draft
    return replace(draft, glue_source=language.template, glue_remark=_("Initial code"))
