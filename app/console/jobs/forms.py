"""Forms of the job pages: job, run once, GLUE source, restored version."""

from wtforms import PasswordField, SelectField, StringField, TextAreaField
from wtforms.fields.core import Field

from app.console.ui import labels
from app.console.ui.base_form import ConsoleForm
from app.console.web.language import lazy_gettext as _l
from app.domain.job_fields import FIELD_OF, JOB_FIELDS, PLAIN_FIELDS, JobField, Kind
from app.errors import InvalidInput

#: fields that have their place in the upper sections of the page; all others are in its last section
_PLACED = frozenset({"job_desc", "author", "alarm_email", "executor_handler", "executor_param"})
ADVANCED = tuple(
    each.attribute
    for each in JOB_FIELDS
    if each.attribute == "child_jobid" or (not each.has_own_rules and each.attribute not in _PLACED)
)


def _label(attribute: str) -> str:
    return _l(FIELD_OF[attribute].label)


class JobForm(ConsoleForm):
    """Add, edit or copy a job. The inputs of the plain job fields are added below, from their table."""

    job_group = SelectField(_l("Executor"), coerce=int, validate_choice=False)
    tags = StringField(_l("Tags"))
    schedule_type = SelectField(_label("schedule_type"), validate_choice=False)
    cron = StringField("Cron")
    rate_s = StringField(_l("Period in seconds"))
    delay_s = StringField(_l("Delay in seconds"))
    at = StringField(_l("Time"))
    time_zone = SelectField(_l("Time zone"), validate_choice=False)
    not_before = StringField(_l("Not before"))
    not_after = StringField(_l("Not after"))
    glue_type = SelectField(_label("glue_type"), validate_choice=False)
    child_jobid = StringField(_label("child_jobid"))

    def offer(self, groups: list[tuple[int, str]], zones: list[tuple[str, str]]) -> None:
        """Fill the selects."""
        self.job_group.choices = groups
        self.time_zone.choices = zones
        for field in JOB_FIELDS:
            select = self._fields.get(field.attribute)
            if field.kind is Kind.CHOICE and isinstance(select, SelectField):
                select.choices = labels.choices(labels.LABELS_OF[field.choices])

    def conf_field(self) -> Field | None:
        """Return the field of the chosen schedule type; None for jobs without a schedule."""
        inputs = {"CRON": self.cron, "FIX_RATE": self.rate_s, "FIX_DELAY": self.delay_s, "AT": self.at}
        return inputs.get(self.schedule_type.data or "")

    def refuse(self, error: InvalidInput) -> None:
        """Show the error of a schedule at the input of its type."""
        field = self.conf_field()
        if field is not None and error.field in {"scheduleConf", "schedule_conf"}:
            error = InvalidInput(field.name, error.message)
        super().refuse(error)


def _input(field: JobField) -> StringField | SelectField:
    label = _l(field.label)
    if field.kind is Kind.CHOICE:
        return SelectField(label, validate_choice=False)
    return TextAreaField(label) if field.is_multiline else StringField(label)


for _field in PLAIN_FIELDS:
    setattr(JobForm, _field.attribute, _input(_field))


class RunForm(ConsoleForm):
    """Run a job once."""

    executor_param = TextAreaField(_l("Job parameter"))
    address_list = StringField(_l("Executor addresses"))


class GlueForm(ConsoleForm):
    """Save a GLUE source."""

    glue_source = TextAreaField(_l("Source"))
    glue_remark = StringField(_l("Remark"))
    password = PasswordField(_l("Your password"))


class RestoreForm(ConsoleForm):
    """Restore a version of a GLUE source."""

    glue_remark = StringField(_l("Remark"))
    password = PasswordField(_l("Your password"))


class ImportForm(ConsoleForm):
    """Import a file; the password is needed if it contains code."""

    password = PasswordField(_l("Your password"))
