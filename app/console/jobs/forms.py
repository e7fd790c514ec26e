"""Forms of the job pages: job, run once, GLUE source and version."""

from wtforms import SelectField, StringField, TextAreaField
from wtforms.fields.core import Field

from app.console.ui import labels
from app.console.ui.base_form import ConsoleForm
from app.console.web.language import lazy_gettext as _l
from app.errors import InvalidInput


class JobForm(ConsoleForm):
    """Add, edit or copy a job."""

    job_group = SelectField(_l("Executor"), coerce=int, validate_choice=False)
    job_desc = StringField(_l("Job description"))
    author = StringField(_l("Owner"))
    alarm_email = StringField(_l("Alarm mail"))
    tags = StringField(_l("Tags"))
    schedule_type = SelectField(_l("Schedule type"), validate_choice=False)
    cron = StringField("Cron")
    rate_s = StringField(_l("Period in seconds"))
    delay_s = StringField(_l("Delay in seconds"))
    at = StringField(_l("Time"))
    time_zone = SelectField(_l("Time zone"), validate_choice=False)
    not_before = StringField(_l("Not before"))
    not_after = StringField(_l("Not after"))
    glue_type = SelectField(_l("Run mode"), validate_choice=False)
    executor_handler = StringField("JobHandler")
    executor_param = TextAreaField(_l("Job parameter"))
    executor_route_strategy = SelectField(_l("Route strategy"), validate_choice=False)
    child_jobid = StringField(_l("Child job ids"))
    misfire_strategy = SelectField(_l("Misfire strategy"), validate_choice=False)
    executor_block_strategy = SelectField(_l("Block strategy"), validate_choice=False)
    executor_timeout = StringField(_l("Time-out"))
    executor_fail_retry_count = StringField(_l("Retries after a failure"))
    retry_interval_s = StringField(_l("Wait before a retry"))
    retry_backoff_percent = StringField(_l("Growth of the wait, in percent"))
    delivery = SelectField(_l("Send again after a loss of contact"), validate_choice=False)

    def offer(self, groups: list[tuple[int, str]], zones: list[tuple[str, str]]) -> None:
        """Fill the selects."""
        self.job_group.choices = groups
        self.time_zone.choices = zones
        self.schedule_type.choices = labels.choices(labels.SCHEDULE_TYPES)
        self.glue_type.choices = labels.choices(labels.GLUE_TYPES)
        self.executor_route_strategy.choices = labels.choices(labels.ROUTE_STRATEGIES)
        self.misfire_strategy.choices = labels.choices(labels.MISFIRE_STRATEGIES)
        self.executor_block_strategy.choices = labels.choices(labels.BLOCK_STRATEGIES)
        self.delivery.choices = labels.choices(labels.DELIVERIES)

    def conf_field(self) -> Field | None:
        """Return the field that holds the schedule of the chosen type."""
        return {"CRON": self.cron, "FIX_RATE": self.rate_s, "FIX_DELAY": self.delay_s, "AT": self.at}.get(
            self.schedule_type.data or ""
        )

    def refuse(self, error: InvalidInput) -> None:
        """Show a bad schedule at the input of its type."""
        field = self.conf_field()
        if field is not None and error.field in {"scheduleConf", "schedule_conf"}:
            error = InvalidInput(field.name, error.message)
        super().refuse(error)


class RunForm(ConsoleForm):
    """Run a job once."""

    executor_param = TextAreaField(_l("Job parameter"))
    address_list = StringField(_l("Executor addresses"))


class GlueForm(ConsoleForm):
    """Save a GLUE source."""

    glue_source = TextAreaField(_l("Source"))
    glue_remark = StringField(_l("Remark"))


class RestoreForm(ConsoleForm):
    """Restore a version of a GLUE source."""

    glue_remark = StringField(_l("Remark"))
