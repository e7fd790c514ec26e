"""Forms of the job pages: job, run once, GLUE source, restored version."""

from collections.abc import Iterable, Mapping

from wtforms import (
    BooleanField,
    HiddenField,
    PasswordField,
    SelectField,
    StringField,
    TextAreaField,
)
from wtforms.fields.core import Field

from app.clock import Millis
from app.console.jobs.form.parameters import ParameterForm
from app.console.ui import labels
from app.console.ui.forms.base_form import ConsoleForm
from app.console.ui.forms.calendar_fields import CALENDAR_INPUTS, CalendarFields
from app.console.ui.forms.limit_fields import LIMIT_INPUTS, LimitFields
from app.console.ui.forms.promise_fields import ESCALATION, PROMISE_INPUTS, PromiseFields
from app.console.ui.forms.runs_after_fields import AFTER_INPUTS, RunsAfterFields
from app.console.web.language import lazy_gettext as _l
from app.domain.jobs.fields import FIELD_OF, JOB_FIELDS, PLAIN_FIELDS
from app.domain.jobs.job_field import JobField, Kind

#: fields that every job needs, in the order of the page
MAIN = (
    *("job_group", "job_desc", "glue_type", "executor_handler", "executor_param", "fill_parameter"),
    *("schedule_type", "cron", "rate_s", "delay_s", "at"),
)
_INPUTS = {
    "calendar": CALENDAR_INPUTS,
    "after": AFTER_INPUTS,
    "routing": ("executor_route_strategy", "executor_block_strategy", "child_jobid"),
    "retries": (
        *("executor_fail_retry_count", "retry_interval_s", "retry_backoff_percent"),
        "executor_timeout",
    ),
    "limits": LIMIT_INPUTS,
    "window": (
        *("time_zone", "misfire_strategy", "misfire_max", "misfire_max_age_s"),
        *("not_before", "not_after"),
    ),
    "promises": PROMISE_INPUTS,
    "archive": (),
    "alarms": ("alarm_email",),
    "owner": ("author", "tags"),
}
#: folded sections -> their fields
SECTIONS = {
    section: (*names, *(field.attribute for field in PLAIN_FIELDS if field.section == section))
    for section, names in _INPUTS.items()
}


#: attribute of a job -> its inputs, where these have other names
INPUTS = {
    "schedule_conf": ("cron", "rate_s", "delay_s", "at"),
    "not_before_ms": ("not_before",),
    "not_after_ms": ("not_after",),
    "promises": ("promise0_kind",),
    "limits": ("limit0_name",),
    "runs_after": ("after_jobs",),
    "calendar": ("calendar_name",),
    "escalation": ESCALATION[:1],
}


def _label(attribute: str) -> str:
    return _l(FIELD_OF[attribute].label)


def _group_id(text: str | int) -> int:
    """Return the chosen group; 0 for the placeholder."""
    return int(text or 0)


def _strip(text: str | None) -> str:
    return (text or "").strip()


class JobForm(CalendarFields, RunsAfterFields, LimitFields, PromiseFields):
    """Add, edit or copy a job. The inputs of the plain job fields are added below, from their table."""

    ORDER = (*MAIN, *(name for names in SECTIONS.values() for name in names))

    #: fields of the handler's parameters, beside ``executor_param``
    parameters: ParameterForm | None = None
    #: stored bounds of the window by input, shown text and zone: a text alone may mean two instants
    bounds: Mapping[tuple[str, str, str], Millis] = {}
    #: id of the job that the form was filled from; None for a new one
    filled_from: int | None = None

    loaded = HiddenField()
    job_group = SelectField(_l("Executor"), coerce=_group_id, validate_choice=False)
    tags = StringField(_l("Tags"))
    schedule_type = SelectField(_label("schedule_type"), validate_choice=False)
    cron = StringField("Cron")
    rate_s = StringField(_l("Period in seconds"))
    delay_s = StringField(_l("Delay in seconds"))
    at = StringField(_l("Time"))
    time_zone = StringField(_l("Time zone"), filters=[_strip])
    not_before = StringField(_l("Not before"))
    not_after = StringField(_l("Not after"))
    glue_type = SelectField(_label("glue_type"), validate_choice=False)
    child_jobid = StringField(_label("child_jobid"))

    def offer(self, groups: list[tuple[int, str]]) -> None:
        """Fill the selects; among several groups none is chosen for the user."""
        is_open = len(groups) > 1 and self.job_group.data not in dict(groups)
        self.job_group.choices = [("", str(_l("Choose an executor"))), *groups] if is_open else groups
        for field in JOB_FIELDS:
            select = self._fields.get(field.attribute)
            if field.kind is Kind.CHOICE and isinstance(select, SelectField):
                select.choices = labels.choices(labels.LABELS_OF[field.choices])
        run_modes, run_mode = labels.choices(labels.GLUE_TYPES), self.glue_type.data
        if run_mode and run_mode not in dict(run_modes):  # XXL-JOB 3.2 has GLUE_PYTHON2
            self.glue_type.choices = [*run_modes, (run_mode, run_mode)]

    def mark_managed(self, attributes: Iterable[str]) -> None:
        """Mark the inputs of attributes that code owns; those without an input are ignored."""
        for attribute in attributes:
            for name in INPUTS.get(attribute, (attribute,)):
                if name in self._fields:
                    self._fields[name].flags.managed = True

    def conf_field(self) -> Field | None:
        """Return the field of the chosen schedule type; None for jobs without a schedule."""
        inputs = {"CRON": self.cron, "FIX_RATE": self.rate_s, "FIX_DELAY": self.delay_s, "AT": self.at}
        return inputs.get(self.schedule_type.data or "")

    @property
    def wrong_fields(self) -> list[Field]:
        """Fields with errors, those of the parameters last."""
        return super().wrong_fields + (self.parameters.form.wrong_fields if self.parameters else [])

    def field_at(self, name: str) -> Field | None:
        """Return the field of a name; a schedule is at the input of its type."""
        if name in {"scheduleConf", "schedule_conf"} and (conf := self.conf_field()) is not None:
            return conf
        if self.parameters is not None and (field := self.parameters.form.field_at(name)) is not None:
            return field
        return super().field_at(name)


def _input(field: JobField) -> StringField | SelectField | BooleanField:
    label = _l(field.label)
    if field.kind is Kind.CHOICE:
        return SelectField(label, validate_choice=False)
    if field.kind is Kind.BOOLEAN:
        return BooleanField(label)
    return TextAreaField(label) if field.is_multiline else StringField(label)


for _field in PLAIN_FIELDS:
    if _field.kind is Kind.STRUCTURE:  # It has several inputs.
        continue
    setattr(JobForm, _field.attribute, _input(_field))


class RunForm(ConsoleForm):
    """Run a job once."""

    executor_param = TextAreaField(_l("Job parameter"))
    address_list = StringField(_l("Executor addresses"))
    when = StringField(default="now")
    at = StringField(_l("Start at"))
    logical_time = StringField(_l("Logical time"))
    force = BooleanField(_l("Run even if the limit is reached"))
    chain = BooleanField(_l("And all that follows"))
    #: exact logical time of the run that is run again
    repeated_ms = HiddenField()


class GlueForm(ConsoleForm):
    """Save a GLUE source."""

    ORDER = ("glue_source", "password", "glue_remark")

    loaded = HiddenField()
    glue_source = TextAreaField(_l("Source"))
    glue_remark = StringField(_l("Remark"))
    password = PasswordField(_l("Your password"))


class RestoreForm(ConsoleForm):
    """Restore a version of a GLUE source."""

    glue_remark = StringField(_l("Remark"))
    password = PasswordField(_l("Your password"))


class ImportForm(ConsoleForm):
    """Import a file; the password is needed if it contains code."""

    with_switches = BooleanField(
        _l("Switch schedules on or off as the file says"),
        description=_l("Otherwise new jobs are off, and changed ones stay on or off."),
    )
    #: of the plan that was shown
    plan_hash = HiddenField()
    file_name = HiddenField()
    password = PasswordField(_l("Your password"))
